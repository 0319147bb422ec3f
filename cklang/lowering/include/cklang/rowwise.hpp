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
//
// Where registers hold a row, a workgroup issues all loads of its first row at once, those of what
// rows have in common too, and waits for them together. For that there is no branch between them:
// lanes beyond the row load its last vector again.
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
    CK_TILE_DEVICE static float join(float a, float b)
    {
        return __builtin_elementwise_maximum(a, b);
    }
};

struct RowMin
{
    static constexpr float identity = __builtin_inff();
    CK_TILE_DEVICE static float join(float a, float b)
    {
        return __builtin_elementwise_minimum(a, b);
    }
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

/// Exchanges between lanes, all of which are active.
struct RowLanes
{
    /// What neighbouring lanes have together, in groups of so many; each lane has the result.
    template <typename Join, index_t lanes>
    CK_TILE_DEVICE static float joined(float part)
    {
        // Lanes of one group of 16 read each other's registers.
        if constexpr(lanes > 1)
            part = Join::join(part, permuted<0xb1>(part)); // quad_perm:[1,0,3,2]
        if constexpr(lanes > 2)
            part = Join::join(part, permuted<0x4e>(part)); // quad_perm:[2,3,0,1]
        if constexpr(lanes > 4)
            part = Join::join(part, permuted<0x141>(part)); // row_half_mirror
        if constexpr(lanes > 8)
            part = Join::join(part, permuted<0x140>(part)); // row_mirror
#if defined(__GFX9__)
        if constexpr(lanes == 64)
        {
            // The last of 16 lanes to the next 16, then the last of 32 to the others.
            part = Join::join(part, permuted<0x142>(part)); // row_bcast:15
            part = Join::join(part, permuted<0x143>(part)); // row_bcast:31
            const int bits = __builtin_amdgcn_readlane(__builtin_bit_cast(int, part), 63);
            return __builtin_bit_cast(float, bits);
        }
#endif
        if constexpr(lanes > 16)
            part = Join::join(part, from_lane(part, ck_tile::get_lane_id() ^ 16));
        if constexpr(lanes > 32)
            part = Join::join(part, from_lane(part, ck_tile::get_lane_id() ^ 32));
        return part;
    }

    private:
    template <int control>
    CK_TILE_DEVICE static float permuted(float value)
    {
        const int bits = __builtin_bit_cast(int, value);
        return __builtin_bit_cast(float, __builtin_amdgcn_mov_dpp(bits, control, 0xf, 0xf, true));
    }

    CK_TILE_DEVICE static float from_lane(float value, uint32_t lane)
    {
        const int bits = __builtin_bit_cast(int, value);
        return __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute(lane * 4, bits));
    }
};

template <typename Shape, typename Elements, typename Rows, typename... Stages>
struct RowwiseKernel
{
    static constexpr index_t block  = Shape::block;
    static constexpr index_t vector = Shape::vector;
    static constexpr index_t wave   = ck_tile::get_warp_size();
    static constexpr index_t total  = (Stages::count + ... + 0); // reductions
    static constexpr bool is_map    = sizeof...(Stages) == 0 && Rows::count == 0;
    // A workgroup goes on with other rows, for which registers hold what they have in common.
    static constexpr bool goes_on = Shape::common > 0 && Shape::chunks > 0;

    /// Part of the kernel, however long: a function of its own would not know its arguments.
    __attribute__((always_inline)) CK_TILE_DEVICE static void run(const ck_row_args&)
    {
        RowwiseKernel kernel;
        kernel.compute();
    }

    private:
    CK_TILE_DEVICE RowwiseKernel() { lane_ = threadIdx.x % Shape::threads; }

    /// Read where the fills read, so that both are one load.
    CK_TILE_DEVICE static const CK_CONSTANT ck_row_args* args()
    {
        return (const CK_CONSTANT ck_row_args*)__builtin_amdgcn_kernarg_segment_ptr();
    }

    /// Which of a workgroup's rows this thread has: the same one for a wave, if rows have waves.
    CK_TILE_DEVICE static uint32_t of_group()
    {
        if constexpr(rows == 1)
            return 0;
        else if constexpr(Shape::threads % wave == 0)
            return __builtin_amdgcn_readfirstlane(threadIdx.x / Shape::threads);
        else
            return threadIdx.x / Shape::threads;
    }

    /// Begin with the rows of a group, of which a workgroup has as many as its threads allow.
    CK_TILE_DEVICE void begin(uint32_t group)
    {
        const uint32_t row    = group * rows + of_group();
        const uint32_t length = args()->length;
        is_row_               = rows == 1 || row < args()->count;
        // Threads without a row have no element: all meet at the barriers.
        length_       = is_row_ ? length : 0;
        last_         = length - vector;
        uint32_t rest = is_row_ ? row : 0;
#pragma unroll
        for(index_t axis = Shape::axes - 1; axis > 0; --axis)
        {
            const uint32_t extent = args()->rows[CK_ROWWISE_MAX_AXES - Shape::axes + axis];
            place_[axis]          = rest % extent;
            rest /= extent;
        }
        place_[0] = rest;
    }

    CK_TILE_DEVICE void compute()
    {
        prefetch();
        begin(blockIdx.x);
        if constexpr(is_map)
        {
            if(args()->whole)
                map<true>();
            else
                map<false>();
        }
        else if constexpr(Shape::chunks > 0)
        {
            if(args()->whole)
                compute_rows<true>();
            else
                compute_rows<false>();
        }
        else
            compute_row<false>();
    }

    /// Have the arguments that most kernels need loaded at once, before the first branch: each load
    /// that waits for another takes as long as a row's. A kernel without so many tensors has zeros.
    CK_TILE_DEVICE static void prefetch()
    {
        constexpr index_t last   = CK_ROWWISE_MAX_AXES - 1;
        constexpr index_t before = Shape::axes > 1 ? last - 1 : last;
        constexpr index_t most   = Elements::count + Rows::count - 1;
        constexpr index_t second = most < 1 ? most : 1, third = most < 2 ? most : 2;
        // Who keeps nothing mostly has one operand or two.
        constexpr bool is_simple = Shape::kept + Shape::common == 0;
        const auto& reads        = args()->reads;
        const auto& outputs      = args()->outputs;
        const auto length        = static_cast<uint32_t>(args()->length);
        const uint32_t grid      = is_map ? gridDim.y : goes_on ? gridDim.x : 0;
#define CK_ROW_TENSOR(t) "s"((t).data), "s"((t).row_stride[last]), "s"((t).row_stride[before])
        asm volatile("" ::"s"(length),
                     "s"(args()->count),
                     "s"(args()->whole),
                     "s"(Shape::axes > 1 ? args()->rows[last] : 0),
                     "s"(grid),
                     "s"(is_map && Shape::threads < wave ? reads[0].stride[last] : 0),
                     CK_ROW_TENSOR(reads[0]),
                     CK_ROW_TENSOR(reads[1]),
                     CK_ROW_TENSOR(reads[is_simple ? 1 : 2]),
                     CK_ROW_TENSOR(reads[is_simple ? 1 : 3]),
                     CK_ROW_TENSOR(outputs[0]),
                     CK_ROW_TENSOR(outputs[second]),
                     CK_ROW_TENSOR(outputs[third]));
#undef CK_ROW_TENSOR
    }

    /// Compute each element by itself. ``whole``: rows are vectors, in operands and results.
    template <bool whole>
    CK_TILE_DEVICE void map() const
    {
        if(!is_row_)
            return;
        const auto length   = static_cast<uint32_t>(args()->length);
        const uint32_t step = gridDim.y * Shape::threads * vector;
        for(uint32_t j = (blockIdx.y * Shape::threads + lane_) * vector; j < length; j += step)
            store<whole>(nullptr, whole ? j : start(j), j);
    }

    /// Compute the rows of a workgroup. ``full``: each row fills the registers and results are
    /// contiguous, so there are no branches.
    template <bool full>
    CK_TILE_DEVICE void compute_rows()
    {
        if(full || args()->length > 0)
        {
            load_common<full>();
            keep<full>();
        }
        if constexpr(goes_on)
        {
            const uint32_t step = gridDim.x;
            for(uint32_t group = blockIdx.x;;)
            {
                compute_row<full>();
                group += step;
                if(group * rows >= args()->count)
                    return;
                // With several stages the barriers between them are enough.
                if constexpr(Shape::threads > wave && sizeof...(Stages) == 1)
                    __syncthreads();
                begin(group);
                // Addresses are computed anew: those of all elements would fill the registers.
                asm volatile("" : "+v"(lane_));
                if(full || args()->length > 0)
                    keep<full>();
                opaque();
            }
        }
        else
            compute_row<full>();
    }

    /// Keep conversions of what is loaded apart from the loop's, which would convert again.
    CK_TILE_DEVICE void opaque()
    {
#pragma unroll
        for(index_t chunk = 0; chunk < Shape::chunks; ++chunk)
#pragma unroll
            for(index_t e = 0; e < Shape::kept * vector; ++e)
                asm("" : "+v"(kept_[chunk][e]));
    }

    /// Compute a row, which is loaded if registers hold it.
    template <bool full>
    CK_TILE_DEVICE void compute_row()
    {
        stages<full, 0, 0, Stages...>();
        each_vector<full>([&](const float* kept, uint32_t at, uint32_t j) {
            if(!full || is_row_)
                store<full>(kept, at, j);
        });
        if constexpr(Rows::count > 0)
            if(is_row_ && lane_ == 0)
                finish();
    }

#define CK_ROW_HERE reduced_, place_[0], place_[1], place_[2], place_[3], place_[4]

    CK_TILE_DEVICE static constexpr uint32_t first(index_t chunk, uint32_t lane)
    {
        return (chunk * Shape::threads + lane) * vector;
    }

    /// Where the vector of element j begins: the last one ends with the row.
    CK_TILE_DEVICE uint32_t start(uint32_t j) const { return j < last_ ? j : last_; }

    /// Load what rows have in common, which threads without a row have too.
    template <bool full>
    CK_TILE_DEVICE void load_common()
    {
#pragma unroll
        for(index_t chunk = 0; chunk < Shape::chunks; ++chunk)
        {
            const uint32_t j = first(chunk, lane_);
            common(kept_[chunk], full ? j : start(j));
        }
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

    /// Load what is kept, where registers hold a row; threads without a row load the first.
    template <bool full>
    CK_TILE_DEVICE void keep()
    {
        if constexpr(Shape::kept > 0)
        {
#pragma unroll
            for(index_t chunk = 0; chunk < Shape::chunks; ++chunk)
            {
                const uint32_t j = first(chunk, lane_);
                load(kept_[chunk], full ? j : start(j));
            }
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
        float joined[Stage::count * chains];
        ck_tile::static_for<0, Stage::count, 1>{}([&](auto i) {
#pragma unroll
            for(index_t e = 0; e < chains; ++e)
                joined[i * chains + e] = Stage::template Join<i>::identity;
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
                    float& all = joined[i * chains + e % chains];
                    // Joining with the neutral element is an instruction too.
                    const float part = parts[i * vector + e];
                    const bool alone = full && is_first && e < chains;
                    all              = alone ? part : Stage::template Join<i>::join(all, part);
                }
            });
            is_first = false;
        });
        ck_tile::static_for<0, Stage::count, 1>{}([&](auto i) {
            using Join   = typename Stage::template Join<i>;
            float result = joined[i * chains];
#pragma unroll
            for(index_t e = 1; e < chains; ++e)
                result = Join::join(result, joined[i * chains + e]);
            reduced_[before + i] = RowLanes::joined<Join, lanes>(result);
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

    /// Join what the waves of a row have: lanes read one each.
    template <index_t before, typename Stage>
    CK_TILE_DEVICE void of_row()
    {
        // Stages have places of their own, so one barrier a stage is enough.
        __shared__ float of_waves[Stage::count][block / wave];
        ck_tile::static_for<0, Stage::count, 1>{}(
            [&](auto i) { of_waves[i][threadIdx.x / wave] = reduced_[before + i]; });
        __syncthreads();
        constexpr index_t waves = Shape::threads / wave;
        const index_t mine      = threadIdx.x / Shape::threads * waves + threadIdx.x % waves;
        ck_tile::static_for<0, Stage::count, 1>{}([&](auto i) {
            using Join           = typename Stage::template Join<i>;
            reduced_[before + i] = RowLanes::joined<Join, waves>(of_waves[i][mine]);
        });
    }

    /// Store the elements of a vector that begins at ``at``, from element j on. ``whole``: it is all
    /// of them, and results are contiguous.
    template <bool whole>
    CK_TILE_DEVICE void store(const float* kept, uint32_t at, uint32_t j) const
    {
        if constexpr(Elements::count > 0)
        {
            float words[Elements::count * vector];
            ck_row_store(words, kept, CK_ROW_HERE, at, args());
            ck_tile::static_for<0, Elements::count, 1>{}([&](auto i) {
                put<typename Elements::template Type<i>, whole>(i, words + i * vector, at, j - at);
            });
        }
    }

    template <typename E, bool whole>
    CK_TILE_DEVICE void put(index_t output, const float* words, uint32_t at, uint32_t skipped) const
    {
        const CK_CONSTANT ck_row_tensor* tensor = &args()->outputs[output];
        CK_GLOBAL E* const row                  = (CK_GLOBAL E*)tensor->data + base(tensor);
        if(whole || ((args()->vectors >> output & 1) && skipped == 0))
        {
            // GPUs store dwords at any address.
            using Vector = E __attribute__((ext_vector_type(vector), aligned(sizeof(E))));
            Vector narrowed;
#pragma unroll
            for(index_t e = 0; e < vector; ++e)
                narrowed[e] = value<E>(words[e]);
            *(CK_GLOBAL Vector*)(row + at) = narrowed;
        }
        else if(args()->linear >> output & 1)
        {
            const int64_t stride  = tensor->stride[CK_ROWWISE_MAX_AXES - 1];
            CK_GLOBAL E* const to = row + at * stride;
#pragma unroll
            for(index_t e = 0; e < vector; ++e)
                if(e >= skipped)
                    to[e * stride] = value<E>(words[e]);
        }
        else
        {
            // Unrolled, the divisions would be half of a kernel. Elements move to the first's place.
            float left[vector];
#pragma unroll
            for(index_t e = 0; e < vector; ++e)
                left[e] = words[e];
#pragma unroll 1
            for(uint32_t e = 0; e < vector; ++e)
            {
                if(e >= skipped)
                    row[along(tensor, at + e)] = value<E>(left[0]);
#pragma unroll
                for(index_t next = 1; next < vector; ++next)
                    left[next - 1] = left[next];
            }
        }
    }

    /// Where an element is in a row that runs along several axes.
    CK_TILE_DEVICE static int64_t along(const CK_CONSTANT ck_row_tensor* tensor, uint32_t j)
    {
        uint32_t rest = j;
        int64_t place = 0;
#pragma unroll 1
        for(index_t axis = CK_ROWWISE_MAX_AXES - 1; axis > 0; --axis)
        {
            const uint32_t extent = args()->elements[axis];
            place += int64_t(rest % extent) * tensor->stride[axis];
            rest /= extent;
        }
        return place + int64_t(rest) * tensor->stride[0];
    }

    CK_TILE_DEVICE int64_t base(const CK_CONSTANT ck_row_tensor* tensor) const
    {
        constexpr index_t before = CK_ROWWISE_MAX_AXES - Shape::axes;
        int64_t place            = 0;
#pragma unroll
        for(index_t axis = 0; axis < Shape::axes; ++axis)
            place += int64_t(place_[axis]) * tensor->row_stride[before + axis];
        return place;
    }

    CK_TILE_DEVICE void finish() const
    {
        float words[Rows::count];
        ck_row_finish(words, nullptr, CK_ROW_HERE, 0, args());
        ck_tile::static_for<0, Rows::count, 1>{}([&](auto i) {
            using E                                 = typename Rows::template Type<i>;
            const CK_CONSTANT ck_row_tensor* tensor = &args()->outputs[Elements::count + i];
            ((CK_GLOBAL E*)tensor->data)[base(tensor)] = value<E>(words[i]);
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
    static constexpr index_t lanes  = Shape::threads < wave ? Shape::threads : wave; // of a row
    // A thread joins its elements into so many numbers at once: few, since they are joined in turn,
    // and more for long rows, of whose sums each is then nearer to the right one.
    static constexpr index_t most_chains = Shape::chunks > 0 ? 2 : 4;
    static constexpr index_t chains      = vector < most_chains ? vector : most_chains;

    uint32_t lane_;
    bool is_row_;
    uint32_t length_; // less than 2^31; a step more is less than 2^32
    uint32_t last_;    // where the last vector of a row begins
    uint32_t place_[CK_ROWWISE_MAX_AXES] = {};
    float kept_[chunks][values > 0 ? values * vector : 1]; // of a row, then what rows have in common
    float reduced_[total > 0 ? total : 1];
};

} // namespace cklang
