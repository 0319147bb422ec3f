// SPDX-License-Identifier: MIT
// Kernels of rows: reductions, and the user's functions before, between and after them.
//
// Some threads share a row. In each stage a thread joins what the user's function makes of its
// elements, the lanes of a wave exchange what they have, and waves that share a row meet in LDS;
// all in one order. Then the outputs are stored. What several passes need of an element is kept in
// registers, or computed again in each pass where rows are longer than registers.
//
// The last vector of a row ends with the row: where the length is no multiple of a vector, it
// overlaps the one before, and the elements that both have are neither joined nor stored again.
#pragma once

#include <hip/hip_runtime.h>

#include "cklang/narrow.hpp"

#include "cklang/math.h"
#include "cklang/rowwise_hole.h"

// The user's functions: open holes in a stencil.
extern "C" __device__ void ck_row_common(float*, CK_ROW_PARAMS);
extern "C" __device__ void ck_row_load(float*, CK_ROW_PARAMS);
extern "C" __device__ void ck_row_part0(float*, CK_ROW_PARAMS);
extern "C" __device__ void ck_row_part1(float*, CK_ROW_PARAMS);
extern "C" __device__ void ck_row_part2(float*, CK_ROW_PARAMS);
extern "C" __device__ void ck_row_part3(float*, CK_ROW_PARAMS);
extern "C" __device__ void ck_row_store(float*, CK_ROW_PARAMS);
extern "C" __device__ void ck_row_finish(float*, CK_ROW_PARAMS);

namespace cklang {

using ck_tile::index_t;

/// Joins of f32; NaN if either is NaN, as NumPy has it.
struct RowSum
{
    static constexpr float identity = 0;
    CK_TILE_DEVICE static float join(float a, float b) { return a + b; }
};

struct RowProd
{
    static constexpr float identity = 1;
    CK_TILE_DEVICE static float join(float a, float b) { return a * b; }
};

struct RowMax
{
    static constexpr float identity = -__builtin_inff();
    CK_TILE_DEVICE static float join(float a, float b) { return a < b || b != b ? b : a; }
};

struct RowMin
{
    static constexpr float identity = __builtin_inff();
    CK_TILE_DEVICE static float join(float a, float b) { return b < a || b != b ? b : a; }
};

/// Joins of i32, which are handed over as the bits of a float; sums and products wrap.
template <typename Join, int first>
struct RowOfInt
{
    static constexpr float identity = __builtin_bit_cast(float, first);
    CK_TILE_DEVICE static float join(float a, float b)
    {
        return ck_row_word(Join::join(ck_row_int(a), ck_row_int(b)));
    }
};

struct WrappedSum
{
    CK_TILE_DEVICE static int join(int a, int b) { return int(unsigned(a) + unsigned(b)); }
};

struct WrappedProd
{
    CK_TILE_DEVICE static int join(int a, int b) { return int(unsigned(a) * unsigned(b)); }
};

struct IntMax
{
    CK_TILE_DEVICE static int join(int a, int b) { return a < b ? b : a; }
};

struct IntMin
{
    CK_TILE_DEVICE static int join(int a, int b) { return b < a ? b : a; }
};

using RowIntSum  = RowOfInt<WrappedSum, 0>;
using RowIntProd = RowOfInt<WrappedProd, 1>;
using RowIntMax  = RowOfInt<IntMax, -2147483647 - 1>;
using RowIntMin  = RowOfInt<IntMin, 2147483647>;

/// The joins of one stage.
template <typename... Joins>
struct RowStage
{
    static constexpr index_t count = sizeof...(Joins);
    template <index_t i>
    using Join = __type_pack_element<i, Joins...>;
};

/// Element types of outputs.
template <typename... Types>
struct RowOutputs
{
    static constexpr index_t count = sizeof...(Types);
    template <index_t i>
    using Type = __type_pack_element<i, Types...>;
};

/// How a kernel runs: threads of a row, elements of a vector, vectors of a thread that are kept (0:
/// none), values of an element that are kept for one row, those that all rows have in common, and
/// axes that count rows.
template <index_t threads_,
          index_t vector_,
          index_t chunks_,
          index_t kept_,
          index_t common_,
          index_t axes_>
struct RowShape
{
    static constexpr index_t threads = threads_;
    static constexpr index_t vector  = vector_;
    static constexpr index_t chunks  = chunks_;
    static constexpr index_t kept    = kept_;
    static constexpr index_t common  = common_;
    static constexpr index_t axes    = axes_;
    static constexpr index_t block   = threads_ < 256 ? 256 : threads_;
};

template <typename Shape, typename Elements, typename Rows, typename... Stages>
struct RowwiseKernel
{
    static constexpr index_t block  = Shape::block;
    static constexpr index_t vector = Shape::vector;
    static constexpr index_t wave   = ck_tile::get_warp_size();
    static constexpr index_t total  = (Stages::count + ... + 0); // reductions
    static constexpr bool is_map    = sizeof...(Stages) == 0 && Rows::count == 0;
    // Elements that registers hold: rows of so many have no last vector of their own.
    static constexpr uint32_t capacity = Shape::threads * vector * Shape::chunks;
    // A workgroup goes on with other rows, for which registers hold what they have in common.
    static constexpr bool goes_on = Shape::common > 0 && Shape::chunks > 0;

    /// Part of the kernel, however long: a function of its own would not know its arguments.
    __attribute__((always_inline)) CK_TILE_DEVICE static void run(const ck_row_args& args)
    {
        RowwiseKernel kernel(args);
        kernel.compute();
    }

    private:
    CK_TILE_DEVICE explicit RowwiseKernel(const ck_row_args& args) : args_(args)
    {
        lane_ = threadIdx.x % Shape::threads;
    }

    /// Begin with the rows of a group, of which a workgroup has as many as its threads allow.
    CK_TILE_DEVICE void begin(uint32_t group)
    {
        const uint32_t row = group * rows + threadIdx.x / Shape::threads;
        is_row_            = row < args_.count;
        // Threads without a row have no element: all meet at the barriers.
        length_       = is_row_ ? args_.length : 0;
        last_         = length_ - vector;
        uint32_t rest = is_row_ ? row : 0;
#pragma unroll
        for(index_t axis = Shape::axes - 1; axis > 0; --axis)
        {
            const uint32_t extent = args_.rows[CK_ROWWISE_MAX_AXES - Shape::axes + axis];
            place_[axis]          = rest % extent;
            rest /= extent;
        }
        place_[0] = rest;
    }

    CK_TILE_DEVICE void compute()
    {
        if constexpr(goes_on)
        {
            begin(0);
            load_common();
            for(uint32_t group = blockIdx.x; group * rows < args_.count; group += gridDim.x)
            {
                begin(group);
                // Addresses are computed anew: those of all elements would fill the registers.
                asm volatile("" : "+v"(lane_));
                compute_any_row();
                // With several stages the barriers between them are enough.
                if constexpr(Shape::threads > wave && sizeof...(Stages) == 1)
                    __syncthreads();
            }
        }
        else
        {
            begin(blockIdx.x);
            compute_any_row();
        }
    }

    /// Rows that fill the registers have code of their own, without branches.
    CK_TILE_DEVICE void compute_any_row()
    {
        if constexpr(Shape::chunks > 0 && !is_map)
            if(args_.length == capacity)
                return compute_row<true>();
        compute_row<false>();
    }

    template <bool full>
    CK_TILE_DEVICE void compute_row()
    {
        if constexpr(is_map)
        {
            const uint32_t step = gridDim.y * Shape::threads * vector;
            for(uint32_t j = (blockIdx.y * Shape::threads + lane_) * vector; j < length_; j += step)
                store(nullptr, start(j), j);
        }
        else
        {
            keep<full>();
            stages<full, 0, 0, Stages...>();
            each_vector<full>([&](const float* kept, uint32_t at, uint32_t j) {
                if(!full || is_row_)
                    store(kept, at, j);
            });
            if constexpr(Rows::count > 0)
                if(is_row_ && lane_ == 0)
                    finish();
        }
    }

    CK_TILE_DEVICE const CK_CONSTANT ck_row_args* args() const
    {
        return (const CK_CONSTANT ck_row_args*)__builtin_amdgcn_kernarg_segment_ptr();
    }

#define CK_ROW_HERE reduced_, place_[0], place_[1], place_[2], place_[3], place_[4]

    CK_TILE_DEVICE static constexpr uint32_t first(index_t chunk, uint32_t lane)
    {
        return (chunk * Shape::threads + lane) * vector;
    }

    /// Where the vector of element j begins: the last one ends with the row.
    CK_TILE_DEVICE uint32_t start(uint32_t j) const { return j < last_ ? j : last_; }

    /// Load what rows have in common, which threads without a row have too.
    CK_TILE_DEVICE void load_common()
    {
        length_ = args_.length;
        last_   = length_ - vector;
#pragma unroll
        for(index_t chunk = 0; chunk < Shape::chunks; ++chunk)
            if(const uint32_t j = first(chunk, lane_); j < length_)
                common(kept_[chunk], start(j));
    }

    CK_TILE_DEVICE void common(float* kept, uint32_t at) const
    {
        if constexpr(Shape::common > 0)
            ck_row_common(kept + Shape::kept * vector, nullptr, CK_ROW_HERE, at, args());
    }

    CK_TILE_DEVICE void load(float* kept, uint32_t at) const
    {
        if constexpr(Shape::kept > 0)
            ck_row_load(kept, kept, CK_ROW_HERE, at, args());
    }

    /// Load what is kept, where registers hold a row.
    template <bool full>
    CK_TILE_DEVICE void keep()
    {
        if constexpr(Shape::kept > 0 && Shape::chunks > 0)
        {
#pragma unroll
            for(index_t chunk = 0; chunk < Shape::chunks; ++chunk)
                if(const uint32_t j = first(chunk, lane_); full || j < length_)
                    load(kept_[chunk], full ? j : start(j));
        }
    }

    /// Call a function with what is kept of each vector of this thread, where the vector begins, and
    /// its first element that is no other vector's.
    template <bool full, typename Use>
    CK_TILE_DEVICE void each_vector(Use use)
    {
        if constexpr(Shape::chunks > 0)
        {
#pragma unroll
            for(index_t chunk = 0; chunk < Shape::chunks; ++chunk)
                if(const uint32_t j = first(chunk, lane_); full || j < length_)
                    use(kept_[chunk], full ? j : start(j), j);
        }
        else
        {
            for(uint32_t j = first(0, lane_); j < length_; j += Shape::threads * vector)
            {
                common(kept_[0], start(j));
                load(kept_[0], start(j));
                use(kept_[0], start(j), j);
            }
        }
    }

    template <bool full, index_t stage, index_t before>
    CK_TILE_DEVICE void stages()
    {
    }

    template <bool full, index_t stage, index_t before, typename Stage, typename... Later>
    CK_TILE_DEVICE void stages()
    {
        float joined[Stage::count * vector];
        ck_tile::static_for<0, Stage::count, 1>{}([&](auto i) {
#pragma unroll
            for(index_t e = 0; e < vector; ++e)
                joined[i * vector + e] = Stage::template Join<i>::identity;
        });
        bool is_first = true;
        each_vector<full>([&](const float* kept, uint32_t at, uint32_t j) {
            float parts[Stage::count * vector];
            part<stage>(parts, kept, at);
            if(!full && at < j)
                forget<Stage>(parts, j - at);
            ck_tile::static_for<0, Stage::count, 1>{}([&](auto i) {
#pragma unroll
                for(index_t e = 0; e < vector; ++e)
                {
                    float& all = joined[i * vector + e];
                    // Joining with the neutral element is an instruction too.
                    const float part = parts[i * vector + e];
                    all = full && is_first ? part : Stage::template Join<i>::join(all, part);
                }
            });
            is_first = false;
        });
        ck_tile::static_for<0, Stage::count, 1>{}([&](auto i) {
            using Join   = typename Stage::template Join<i>;
            float result = joined[i * vector];
#pragma unroll
            for(index_t e = 1; e < vector; ++e)
                result = Join::join(result, joined[i * vector + e]);
            reduced_[before + i] = of_wave<Join>(result);
        });
        if constexpr(Shape::threads > wave)
            of_row<before, Stage>();
        stages<full, stage + 1, before + Stage::count, Later...>();
    }

    /// Make the first elements of a vector's parts the neutral ones of their joins.
    template <typename Stage>
    CK_TILE_DEVICE static void forget(float* parts, uint32_t count)
    {
        ck_tile::static_for<0, Stage::count, 1>{}([&](auto i) {
#pragma unroll
            for(index_t e = 0; e < vector; ++e)
                if(e < count)
                    parts[i * vector + e] = Stage::template Join<i>::identity;
        });
    }

    template <index_t stage>
    CK_TILE_DEVICE void part(float* parts, const float* kept, int64_t j) const
    {
        static_assert(stage < 4);
        if constexpr(stage == 0)
            ck_row_part0(parts, kept, CK_ROW_HERE, j, args());
        else if constexpr(stage == 1)
            ck_row_part1(parts, kept, CK_ROW_HERE, j, args());
        else if constexpr(stage == 2)
            ck_row_part2(parts, kept, CK_ROW_HERE, j, args());
        else
            ck_row_part3(parts, kept, CK_ROW_HERE, j, args());
    }

    /// What the lanes of a row have together, as far as they are of one wave.
    template <typename Join>
    CK_TILE_DEVICE static float of_wave(float part)
    {
        constexpr index_t lanes = Shape::threads < wave ? Shape::threads : wave;
#pragma unroll
        for(index_t distance = lanes / 2; distance > 0; distance /= 2)
            part = Join::join(part, from_lane(part, (threadIdx.x % wave) ^ distance));
        return part;
    }

    /// Join what the waves of a row have.
    template <index_t before, typename Stage>
    CK_TILE_DEVICE void of_row()
    {
        // Stages have places of their own, so one barrier a stage is enough.
        __shared__ float of_waves[Stage::count][block / wave];
        ck_tile::static_for<0, Stage::count, 1>{}(
            [&](auto i) { of_waves[i][threadIdx.x / wave] = reduced_[before + i]; });
        __syncthreads();
        const index_t first = threadIdx.x / Shape::threads * (Shape::threads / wave);
        ck_tile::static_for<0, Stage::count, 1>{}([&](auto i) {
            float result = of_waves[i][first];
#pragma unroll
            for(index_t other = 1; other < Shape::threads / wave; ++other)
                result = Stage::template Join<i>::join(result, of_waves[i][first + other]);
            reduced_[before + i] = result;
        });
    }

    CK_TILE_DEVICE static float from_lane(float value, uint32_t lane)
    {
        const int bits = __builtin_bit_cast(int, value);
        return __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute(lane * 4, bits));
    }

    /// Store the elements of a vector that begins at ``at``, from element j on.
    CK_TILE_DEVICE void store(const float* kept, uint32_t at, uint32_t j) const
    {
        if constexpr(Elements::count > 0)
        {
            float words[Elements::count * vector];
            ck_row_store(words, kept, CK_ROW_HERE, at, args());
            ck_tile::static_for<0, Elements::count, 1>{}([&](auto i) {
                put<typename Elements::template Type<i>>(i, words + i * vector, at, j - at);
            });
        }
    }

    template <typename E>
    CK_TILE_DEVICE void put(index_t output, const float* words, uint32_t at, uint32_t skipped) const
    {
        const ck_row_tensor& tensor = args_.outputs[output];
        CK_GLOBAL E* const row      = (CK_GLOBAL E*)tensor.data + base(tensor);
        if((args_.vectors >> output & 1) && skipped == 0)
        {
            // GPUs store dwords at any address.
            using Vector = E __attribute__((ext_vector_type(vector), aligned(sizeof(E))));
            Vector narrowed;
#pragma unroll
            for(index_t e = 0; e < vector; ++e)
                narrowed[e] = value<E>(words[e]);
            *(CK_GLOBAL Vector*)(row + at) = narrowed;
            return;
        }
#pragma unroll
        for(index_t e = 0; e < vector; ++e)
            if(e >= skipped)
                row[along(tensor, output, at + e)] = value<E>(words[e]);
    }

    /// Where an element is in a row of an output.
    CK_TILE_DEVICE int64_t along(const ck_row_tensor& tensor, index_t output, uint32_t j) const
    {
        if(args_.linear >> output & 1)
            return j * tensor.stride[CK_ROWWISE_MAX_AXES - 1];
        uint32_t rest = j;
        int64_t place = 0;
#pragma unroll
        for(index_t axis = CK_ROWWISE_MAX_AXES - 1; axis >= 0; --axis)
        {
            uint32_t extent = args_.elements[axis];
            // Reciprocals are computed here, not by kernels whose outputs have vectors.
            asm volatile("" : "+s"(extent));
            place += int64_t(rest % extent) * tensor.stride[axis];
            rest /= extent;
        }
        return place;
    }

    CK_TILE_DEVICE int64_t base(const ck_row_tensor& tensor) const
    {
        int64_t place = 0;
#pragma unroll
        for(index_t axis = 0; axis < Shape::axes; ++axis)
            place += int64_t(place_[axis]) * tensor.row_stride[CK_ROWWISE_MAX_AXES - Shape::axes + axis];
        return place;
    }

    CK_TILE_DEVICE void finish() const
    {
        float words[Rows::count];
        ck_row_finish(words, nullptr, CK_ROW_HERE, 0, args());
        ck_tile::static_for<0, Rows::count, 1>{}([&](auto i) {
            using E                     = typename Rows::template Type<i>;
            const ck_row_tensor& tensor = args_.outputs[Elements::count + i];
            reinterpret_cast<E*>(tensor.data)[base(tensor)] = value<E>(words[i]);
        });
    }

    template <typename E>
    CK_TILE_DEVICE static E value(float word)
    {
        // CK Tile's 8-bit floats are integers of C++.
        if constexpr(ck_tile::is_any_of<E, int8_t, int32_t>::value)
            return static_cast<E>(ck_row_int(word));
        else
            return narrow<E>(word);
    }

#undef CK_ROW_HERE

    static constexpr index_t chunks = Shape::chunks > 0 ? Shape::chunks : 1;
    static constexpr index_t values = Shape::kept + Shape::common;
    static constexpr index_t rows   = block / Shape::threads; // of a workgroup at once

    const ck_row_args& args_;
    uint32_t lane_;
    bool is_row_;
    uint32_t length_; // less than 2^31; a step more is less than 2^32
    uint32_t last_;    // where the last vector of a row begins
    uint32_t place_[CK_ROWWISE_MAX_AXES] = {};
    float kept_[chunks][values > 0 ? values * vector : 1]; // of a row, then what rows have in common
    float reduced_[total > 0 ? total : 1];
};

} // namespace cklang
