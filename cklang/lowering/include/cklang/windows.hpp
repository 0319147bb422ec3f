// SPDX-License-Identifier: MIT
// Kernels that move a window over images: convolutions of few channels a group, and pooling.
//
// A thread computes a tile of pixels of some neighbouring channels. It loads each pixel that its
// windows have once, row by row, and adds it to the sums of all windows that contain it. Neighbouring
// threads have neighbouring channels, where these are contiguous, and weights come from LDS; or they
// have neighbouring pixels along x, and a workgroup has one channel, or some features of a group, which
// all need the pixels that it loads; their weights are scalars.
//
// Buffers end with an image. What is beyond its borders has places beyond its end: loads give zeros
// there, and stores do nothing.
#pragma once

#include <hip/hip_runtime.h>

#include "cklang/narrow.hpp"
#include "cklang/operand.hpp"
#include "cklang/windows_args.h"

namespace cklang {

/// The window: extent, stride and dilation along z, y and x, and channels and features of a group.
template <int z_, int y_, int x_, int sz_, int sy_, int sx_, int dz_, int dy_, int dx_, int c_, int k_>
struct Window
{
    static constexpr int z = z_, y = y_, x = x_, sz = sz_, sy = sy_, sx = sx_;
    static constexpr int dz = dz_, dy = dy_, dx = dx_, c = c_, k = k_;
    static constexpr int taps = z * y * x * c;
};

/// The tile of a thread: channels, pixels along x, y and z; the threads of a workgroup, and the chiplets
/// that take workgroups in turn.
template <int vector_, int columns_, int rows_, int planes_, int threads_, bool channels_, uint32_t chiplets_>
struct WindowTile
{
    static constexpr uint32_t chiplets = chiplets_;
    static constexpr int vector = vector_, columns = columns_, rows = rows_;
    static constexpr int planes = planes_, threads = threads_;
    static constexpr bool channels = channels_; // whether neighbouring threads have neighbouring channels
};

/// What becomes of a window.
enum class Windowed
{
    products, // the sum of its elements times weights
    largest,
    mean,   // elements beyond the borders are zeros
    inside, // the mean of the elements that there are
};

/// An operand of the user's function: whether its channels are contiguous, and whether all pixels of
/// an image have the same.
template <typename T, bool contiguous_, bool common_>
struct WindowOperand
{
    using DataType                   = T;
    static constexpr bool contiguous = contiguous_, common = common_;
};

template <typename A, typename B, typename E, typename Window, typename Tile, Windowed how, typename Function, typename... Ds>
struct WindowKernel
{
    static constexpr int threads = Tile::threads;
    static constexpr int vector  = Tile::vector;
    using Vector                 = float __attribute__((ext_vector_type(vector)));

    __attribute__((always_inline)) CK_TILE_DEVICE static void run(const ck_window_args& p)
    {
        const uint32_t group = workgroup(), rest = group / p.parts;
        const uint32_t block = rest % p.blocks, layers = rest / p.blocks;
        const uint32_t deep  = (p.out[0] - 1) / Tile::planes + 1;
        const uint32_t z = layers % deep * Tile::planes, image = layers / deep;
        uint32_t place = group % p.parts * threads + threadIdx.x, local = 0, first = block * vector;
        if constexpr(Tile::channels)
        {
            local = place % p.block;
            place /= p.block;
            first = (block * p.block + local) * vector;
        }
        Weights weights;
        if constexpr(how == Windowed::products)
            weights.fill(p, block, local);
        if(first >= static_cast<uint32_t>(p.channels) || place >= static_cast<uint32_t>(p.across * p.down))
            return;
        const int x = place % p.across * Tile::columns, y = place / p.across * Tile::rows;
        Sums sums;
        add(sums, p, weights, image, z, y, x, first);
        if constexpr(how == Windowed::mean || how == Windowed::inside)
            divide(sums, p, z, y, x);
        store(sums, p, image, z, y, x, first, std::make_index_sequence<sizeof...(Ds)>{});
    }

    private:
    using Sums = Vector[Tile::planes][Tile::rows][Tile::columns];

    static constexpr uint32_t beyond = CK_WINDOW_REACH;
    static constexpr int block_most  = 128 / static_cast<int>(sizeof(A)) / vector;
    static constexpr int width       = (Tile::columns - 1) * Window::sx + (Window::x - 1) * Window::dx + 1;
    static constexpr int depth       = (Tile::planes - 1) * Window::sz + (Window::z - 1) * Window::dz + 1;
    static constexpr int height      = (Tile::rows - 1) * Window::sy + (Window::y - 1) * Window::dy + 1;

    /// The number of this workgroup, by which neighbours are on one chiplet: they read the same pixels.
    CK_TILE_DEVICE static uint32_t workgroup()
    {
        constexpr uint32_t chiplets = Tile::chiplets;
        const uint32_t chiplet = blockIdx.x % chiplets, turn = blockIdx.x / chiplets;
        const uint32_t each = gridDim.x / chiplets, longer = gridDim.x % chiplets;
        return chiplet * each + ck_tile::min(chiplet, longer) + turn;
    }

    /// Whether some window of a tile has place `at` along an axis.
    static constexpr bool is_read(int at, int tile, int stride, int window, int dilation)
    {
        for(int t = 0; t < tile; ++t)
            for(int tap = 0; tap < window; ++tap)
                if(t * stride + tap * dilation == at)
                    return true;
        return false;
    }

    struct Weights
    {
        static constexpr int pitch   = (block_most + 1) * vector;
        static constexpr bool is_one = !Tile::channels && vector == 1; // which has all its weights at once
        const float* column;
        float scalars[is_one ? Window::taps : 1];
        const B* features[vector];

        CK_TILE_DEVICE void fill(const ck_window_args& p, uint32_t block, uint32_t local)
        {
            if constexpr(Tile::channels)
            {
                __shared__ float shared[Window::taps * pitch];
                const uint32_t many = p.block * vector, begin = block * many;
                for(uint32_t i = threadIdx.x; i < many * Window::taps; i += threads)
                {
                    const uint32_t channel = i / Window::taps, tap = i % Window::taps;
                    if(begin + channel < static_cast<uint32_t>(p.channels))
                        shared[tap * pitch + channel] = load(p, of_channel(p, begin + channel), tap);
                }
                __syncthreads();
                column = shared + local * vector;
            }
            else
            {
#pragma unroll
                for(int v = 0; v < vector; ++v)
                    features[v] = of_channel(p, block * vector + v);
                if constexpr(is_one)
#pragma unroll
                    for(int tap = 0; tap < Window::taps; ++tap)
                        scalars[tap] = load(p, features[0], tap);
            }
        }

        CK_TILE_DEVICE Vector of_tap(const ck_window_args& p, int z, int y, int x, int c) const
        {
            const int tap = ((z * Window::y + y) * Window::x + x) * Window::c + c;
            if constexpr(Tile::channels)
                return *reinterpret_cast<const Vector*>(column + tap * pitch);
            if constexpr(is_one)
                return scalars[tap];
            Vector result;
#pragma unroll
            for(int v = 0; v < vector; ++v)
                result[v] = load(p, features[v], z, y, x, c);
            return result;
        }

        private:
        CK_TILE_DEVICE static const B* of_channel(const ck_window_args& p, uint32_t channel)
        {
            return static_cast<const B*>(p.b) + static_cast<int>(channel / Window::k) * p.b_step[0] +
                   static_cast<int>(channel % Window::k) * p.b_step[1];
        }

        CK_TILE_DEVICE static float load(const ck_window_args& p, const B* channel, uint32_t tap)
        {
            const uint32_t c = tap % Window::c, x = tap / Window::c % Window::x;
            const uint32_t rest = tap / (Window::c * Window::x);
            return load(p, channel, rest / Window::y, rest % Window::y, x, c);
        }

        /// The weight of a tap; its place is in bytes so that a scalar load adds it to the address.
        CK_TILE_DEVICE static float
        load(const ck_window_args& p, const B* channel, uint32_t z, uint32_t y, uint32_t x, uint32_t c)
        {
            const uint32_t at = p.b_begin + z * p.b_step[2] + y * p.b_step[3] + x * p.b_step[4] +
                                c * p.b_step[5];
            return widen(*reinterpret_cast<const B*>(
                reinterpret_cast<const char*>(channel) + at * static_cast<uint32_t>(sizeof(B))));
        }
    };

    /// A vector of channels has one of pixels, one of features a pixel.
    static constexpr int wide = Tile::channels ? vector : 1;
    using Pixel               = std::conditional_t<Tile::channels, Vector, float>;

    /// How many planes or channels of pixels the code has: scalars for all weights of some features
    /// there are not.
    static constexpr int unrolled(int count) { return wide == vector ? count : 1; }

    /// Whether the first or last place of an axis, which the window has itself, is read in the place
    /// of those beyond.
    static constexpr bool limits =
        how == Windowed::largest && Window::dz * Window::dy * Window::dx == 1;

    /// Where a place along an axis is, in elements; beyond all if it is none of the image's.
    CK_TILE_DEVICE static uint32_t along(int at, int extent, int step, uint32_t size)
    {
        if constexpr(limits)
            return static_cast<uint32_t>(ck_tile::max(0, ck_tile::min(at, extent - 1)) * step) * size;
        else
            return static_cast<uint32_t>(at) < static_cast<uint32_t>(extent) ? at * step * size : beyond;
    }

    template <typename T, int count>
    CK_TILE_DEVICE static auto load(ck_tile::int32x4_t buffer, uint32_t at)
    {
        return ck_tile::amd_buffer_load_impl<T, count>(buffer, at, 0);
    }

    CK_TILE_DEVICE static void add(Sums& sums,
                                   const ck_window_args& p,
                                   const Weights& weights,
                                   uint32_t image,
                                   int z,
                                   int y,
                                   int x,
                                   uint32_t channel)
    {
        constexpr float none = how == Windowed::largest ? -__builtin_inff() : 0.f;
        const auto buffer    = ck_tile::make_wave_buffer_resource(
            static_cast<const A*>(p.a) + image * p.a_image, p.a_bytes);
        const uint32_t group = channel / Window::k * p.a_step[3];
        uint32_t columns[width];
#pragma unroll
        for(int i = 0; i < width; ++i)
            columns[i] = along(x * Window::sx - p.before[2] + i, p.in[2], p.a_step[2], sizeof(A));
#pragma unroll
        for(int i = 0; i < pixels_of_thread; ++i)
            at_place(sums, i) = none;
        // Places along z: all that the planes of a thread read, or those of the one plane.
        constexpr bool is_one = Tile::planes == 1;
#pragma unroll unrolled(is_one ? Window::z : depth)
        for(int i = 0; i < (is_one ? Window::z : depth); ++i)
        {
            const int deep = is_one ? i * Window::dz : i;
            if(!is_one && !is_read(deep, Tile::planes, Window::sz, Window::z, Window::dz))
                continue;
            int plane = z * Window::sz - p.before[0] + deep;
            if constexpr(limits)
                plane = ck_tile::max(0, ck_tile::min(plane, p.in[0] - 1));
            else if(static_cast<uint32_t>(plane) >= static_cast<uint32_t>(p.in[0]))
                continue;
#pragma unroll unrolled(Window::c)
            for(int c = 0; c < Window::c; ++c)
            {
                const uint32_t begin = (group + plane * p.a_step[0] + c * p.a_step[4]) * sizeof(A);
                ck_tile::static_for<0, height, 1>{}([&](auto row) {
                    if constexpr(is_read(row, Tile::rows, Window::sy, Window::y, Window::dy))
                        add_row<row>(sums, p, weights, buffer, begin, y, columns, deep, c);
                });
            }
        }
    }

    /// Add a row of pixels to the sums of the windows that have it.
    template <int row>
    CK_TILE_DEVICE static void add_row(Sums& sums,
                                       const ck_window_args& p,
                                       const Weights& weights,
                                       ck_tile::int32x4_t buffer,
                                       uint32_t begin,
                                       int y,
                                       const uint32_t (&columns)[width],
                                       int deep,
                                       int c)
    {
        begin += along(y * Window::sy - p.before[1] + row, p.in[1], p.a_step[1], sizeof(A));
        Pixel pixels[width];
        ck_tile::static_for<0, width, 1>{}([&](auto i) {
            if constexpr(is_read(i, Tile::columns, Window::sx, Window::x, Window::dx))
            {
                const uint32_t at = begin + columns[i];
                const auto part   = load<A, wide>(buffer, at);
                const bool absent = how == Windowed::largest && !limits && at >= beyond;
#pragma unroll
                for(int v = 0; v < wide; ++v)
                    reinterpret_cast<float*>(&pixels[i])[v] = absent ? -__builtin_inff() : widen(part[v]);
            }
        });
#pragma unroll
        for(int i = 0; i < Tile::planes * Window::y; ++i)
        {
            const int own = i / Window::y, ky = i % Window::y;
            const int kz = (deep - own * Window::sz) / Window::dz;
            const int of = row - ky * Window::dy;
            if(of < 0 || of % Window::sy || of / Window::sy >= Tile::rows)
                continue;
            if(Tile::planes > 1 && (deep < own * Window::sz || (deep - own * Window::sz) % Window::dz || kz >= Window::z))
                continue;
#pragma unroll
            for(int kx = 0; kx < Window::x; ++kx)
            {
                Vector weight = 1.f;
                if constexpr(how == Windowed::products)
                    weight = weights.of_tap(p, kz, ky, kx, c);
#pragma unroll
                for(int column = 0; column < Tile::columns; ++column)
                {
                    Vector& sum       = sums[own][of / Window::sy][column];
                    const Vector mine = pixels[column * Window::sx + kx * Window::dx];
                    if constexpr(how == Windowed::products)
                        sum = __builtin_elementwise_fma(mine, weight, sum);
                    else if constexpr(how == Windowed::largest)
                        sum = __builtin_elementwise_maximum(mine, sum);
                    else
                        sum += mine;
                }
            }
        }
    }

    CK_TILE_DEVICE static void
    divide(Sums& sums, const ck_window_args& p, int z, int y, int x)
    {
#pragma unroll
        for(int i = 0; i < pixels_of_thread; ++i)
        {
            const int column = i % Tile::columns, row = i / Tile::columns % Tile::rows;
            const int plane = i / (Tile::columns * Tile::rows);
            float count = Window::z * Window::y * Window::x;
            if constexpr(how == Windowed::inside)
                count = float(inside((z + plane) * Window::sz - p.before[0], Window::z, p.in[0]) *
                              inside((y + row) * Window::sy - p.before[1], Window::y, p.in[1]) *
                              inside((x + column) * Window::sx - p.before[2], Window::x, p.in[2]));
            sums[plane][row][column] *= 1.f / count;
        }
    }

    static constexpr int pixels_of_thread = Tile::planes * Tile::rows * Tile::columns;

    template <typename S>
    CK_TILE_DEVICE static auto& at_place(S& sums, int place)
    {
        constexpr int of_plane = Tile::rows * Tile::columns;
        return sums[place / of_plane][place % of_plane / Tile::columns][place % Tile::columns];
    }

    /// How many places of a window are an image's.
    CK_TILE_DEVICE static int inside(int begin, int window, int extent)
    {
        return ck_tile::min(begin + window, extent) - ck_tile::max(begin, 0);
    }

    template <std::size_t... i>
    CK_TILE_DEVICE static void store(const Sums& sums,
                                     const ck_window_args& p,
                                     uint32_t image,
                                     int z,
                                     int y,
                                     int x,
                                     uint32_t channel,
                                     std::index_sequence<i...>)
    {
        const auto buffer = ck_tile::make_wave_buffer_resource(
            static_cast<E*>(p.e) + image * p.e_image, p.e_bytes);
        const auto reads = ck_tile::make_tuple(Read<Ds>(p, i, image, z, channel)...);
#pragma unroll
        for(int place = 0; place < pixels_of_thread; ++place)
        {
            const int plane  = place / (Tile::rows * Tile::columns);
            const int row    = y + place / Tile::columns % Tile::rows;
            const int column = x + place % Tile::columns;
            const Vector sum = at_place(sums, place);
            const bool there = z + plane < p.out[0] && row < p.out[1] && column < p.out[2];
            ck_tile::thread_buffer<E, vector> result;
            const auto operands = ck_tile::make_tuple(
                reads[ck_tile::number<i>{}].at(p.d_step[i], plane, row, column, there)...);
            ck_tile::static_for<0, vector, 1>{}([&](auto v) {
                result(v) = narrow<E>(
                    Function{}(sum[v.value], widen(operands[ck_tile::number<i>{}][v])...));
            });
            const uint32_t at = offset(p.e_step, z + plane, channel) + row * p.e_step[1] + column * p.e_step[2];
            ck_tile::static_for<0, vector, wide>{}([&](auto v) {
                ck_tile::thread_buffer<E, wide> part;
                ck_tile::static_for<0, wide, 1>{}([&](auto own) { part(own) = result[v + own]; });
                const uint32_t of_part = (at + v * p.e_step[4]) * sizeof(E);
                ck_tile::amd_buffer_store_impl<E, wide>(part, buffer, there ? of_part : beyond, 0);
            });
        }
    }

    CK_TILE_DEVICE static uint32_t offset(const int32_t* steps, int z, uint32_t channel)
    {
        return z * steps[0] + channel / Window::k * steps[3] + channel % Window::k * steps[4];
    }

    /// An operand of the function, at the channels of a thread.
    template <typename D>
    struct Read
    {
        using T    = typename D::DataType;
        using Part = ck_tile::thread_buffer<T, vector>;
        ck_tile::int32x4_t buffer;
        uint32_t begin, step;
        Part common;

        CK_TILE_DEVICE Read(const ck_window_args& p, std::size_t i, uint32_t image, int z, uint32_t channel)
            : buffer(ck_tile::make_wave_buffer_resource(
                  static_cast<const T*>(p.d[i]) + image * p.d_image[i], p.d_bytes[i])),
              begin(offset(p.d_step[i], z, channel)),
              step(p.d_step[i][wide == vector ? 3 : 4])
        {
            if constexpr(D::common)
                common = part(begin, true);
        }

        CK_TILE_DEVICE Part at(const int32_t* steps, int plane, int row, int column, bool there) const
        {
            if constexpr(D::common)
                return common;
            else
                return part(begin + plane * steps[0] + row * steps[1] + column * steps[2], there);
        }

        private:
        CK_TILE_DEVICE Part part(uint32_t at, bool there) const
        {
            if constexpr(D::contiguous && wide == vector)
                return load<T, vector>(buffer, there ? at * sizeof(T) : beyond);
            Part result;
            ck_tile::static_for<0, vector, 1>{}([&](auto v) {
                result(v) = load<T, 1>(buffer, there ? (at + v * step) * sizeof(T) : beyond)[0];
            });
            return result;
        }
    };
};

} // namespace cklang
