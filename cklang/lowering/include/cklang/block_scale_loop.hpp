// SPDX-License-Identifier: MIT
// The main loop of a product with block scales: CK Tile's compute pipeline (one LDS buffer, the next
// tile in registers) over its own block GEMM, windows and policies. Either the sums of each block of
// K are scaled and added to those of the tile, or the matrix instructions take the scales (mx.hpp).
#pragma once

#include "cklang/block_scale.hpp"
#include "cklang/byte_tiles.hpp"
#include "cklang/mainloop.hpp"
#include "cklang/mx.hpp"
#include "cklang/scale_runs.hpp"

namespace cklang {

/// Whether matrix instructions with exponents can apply the scales.
template <typename Scale>
constexpr bool mx_takes = std::is_same_v<Scale, NoScale> ||
                          std::is_same_v<Scale, BlockScale<E8m0Scale, 1, mx_block>>;

/// Whether loops are as measured on gfx950: elsewhere they took longer so.
#if defined(__gfx950__)
inline constexpr bool is_gfx950 = true;
#else
inline constexpr bool is_gfx950 = false;
#endif

/// A tile as words: one of bytes that is carried round a loop would be split into its bytes.
template <typename Tile>
struct Carried
{
    using Bytes = ck_tile::remove_cvref_t<decltype(std::declval<Tile>().get_thread_buffer())>;
    using Word  = std::conditional_t<sizeof(Bytes) % 4 == 0, int32_t, char>;
    using All   = ck_tile::ext_vector_t<Word, sizeof(Bytes) / sizeof(Word)>;
    // The size of a vector is a power of two; a tile of another size is carried as it is.
    using Words = std::conditional_t<sizeof(All) == sizeof(Bytes), All, Bytes>;

    Words words;

    CK_TILE_DEVICE explicit Carried(const Tile& tile)
        : words(__builtin_bit_cast(Words, tile.get_thread_buffer()))
    {
    }

    CK_TILE_DEVICE Tile tile() const
    {
        Tile tile;
        tile.get_thread_buffer() = __builtin_bit_cast(Bytes, words);
        return tile;
    }
};

template <typename Pipeline, typename Acc, index_t step, typename ASource, typename BSource>
struct BlockScaleLoop;

template <typename Problem,
          typename Policy,
          typename Acc,
          index_t step,
          typename ASource,
          typename BSource>
struct BlockScaleLoop<ck_tile::GemmPipelineAgBgCrCompV3<Problem, Policy>, Acc, step, ASource, BSource>
    : private Mainloop<ck_tile::GemmPipelineAgBgCrCompV3<Problem, Policy>, Acc, step, ASource, BSource>
{
    using Pipeline  = ck_tile::GemmPipelineAgBgCrCompV3<Problem, Policy>;
    using Windows   = Mainloop<Pipeline, Acc, step, ASource, BSource>;
    using Base      = typename Pipeline::PipelineImplBase;
    using BlockGemm = typename Pipeline::BlockGemm;
    using Shape     = typename Pipeline::BlockGemmShape;
    using ScaleA    = typename ScaleOf<ASource>::Type;
    using ScaleB    = typename ScaleOf<BSource>::Type;
    using RowMajor  = ck_tile::tensor_layout::gemm::RowMajor;

    static constexpr bool is_mx = requires { BlockGemm::repeat_k; } &&
                                  mx_takes<ScaleA> && mx_takes<ScaleB>;

    /// What the loop does between two looks at the scales, along K.
    static constexpr index_t block_k =
        ck_tile::max(ScaleOf<ASource>::block_k, ScaleOf<BSource>::block_k);
    static constexpr index_t tiles_per_block = block_k / Shape::kK;

    static_assert(is_mx || (block_k > 0 && block_k % Shape::kK == 0)); // fp4 needs no scales

    CK_TILE_DEVICE static void run(typename Acc::DataType* acc,
                                   const ASource& a,
                                   const BSource& b,
                                   index_t M,
                                   index_t N,
                                   index_t K,
                                   index_t m,
                                   index_t n,
                                   index_t k,
                                   CK_TILE_LDS_ADDR char* shared)
    {
        using namespace ck_tile;

        const Base base{};
        const auto lds  = lds_views((char*)shared);
        const auto as   = base.GetAWindows(Windows::a_window(a, M, K, m, k),
                                         lds.at(number<0>{}),
                                         make_static_tile_distribution(
                                             BlockGemm::MakeABlockDistributionEncode()));
        const auto bs   = base.GetBWindows(Windows::b_window(b, N, K, n, k),
                                         lds.at(number<1>{}),
                                         make_static_tile_distribution(
                                             BlockGemm::MakeBBlockDistributionEncode()));
        auto a_memory   = as.at(number<0>{});
        auto b_memory   = bs.at(number<0>{});
        auto a_lds      = as.at(number<1>{});
        auto b_lds      = bs.at(number<1>{});
        auto a_fragment = as.at(number<2>{});
        auto b_fragment = bs.at(number<2>{});

        // Tiles beyond K load zeros.
        auto a_tile     = Carried{load_tile(a_memory)};
        auto b_tile     = Carried{load_tile(b_memory)};
        const auto load = [&] {
            move_tile_window(a_memory, a_step());
            move_tile_window(b_memory, b_step());
            a_tile = Carried{load_tile(a_memory)};
            b_tile = Carried{load_tile(b_memory)};
        };
        BlockGemm block_gemm;
        const auto fetch = [&] {
            block_gemm.LocalPrefetch(
                a_fragment, b_fragment, Pipeline::is_a_load_tr_v, Pipeline::is_b_load_tr_v);
        };
        // With a distribution, so that addresses are computed once.
        auto a_store    = window_of(a_lds, stored_a(a_tile.tile()));
        auto b_store    = window_of(b_lds, stored_b(b_tile.tile()));
        const auto fill = [&] {
            store_tile(a_store, stored_a(a_tile.tile()));
            store_tile(b_store, stored_b(b_tile.tile()));
        };

        auto sums = Acc::make();
        clear_tile(sums);
        fill();
        load();
        block_sync_lds();
        fetch();
        __builtin_amdgcn_sched_barrier(0);

        const auto take = [&](const auto& multiply) {
            block_sync_lds();
            fill();
            load();
            multiply();
            block_sync_lds();
            fetch();
            Pipeline::template PipelineImpl<GemmPipelineScheduler::Intrawave>::HotLoopScheduler();
            __builtin_amdgcn_sched_barrier(0);
        };
        index_t rest = amd_wave_read_first_lane(integer_divide_ceil(K - k, Shape::kK));
        if constexpr(is_mx)
        {
            auto of_a = exponents<0>(ScaleOf<ASource>::get(a), M, K, m, k);
            auto of_b = exponents<1>(ScaleOf<BSource>::get(b), N, K, n, k);
            for(; rest > 0; --rest)
                take([&] {
                    const auto taken_a = of_tile(of_a);
                    const auto taken_b = of_tile(of_b);
                    block_gemm.multiply(sums, taken_a, taken_b);
                });
        }
        else
        {
            // A share of K may begin inside a block.
            index_t block = amd_wave_read_first_lane(k / block_k);
            index_t tiles = amd_wave_read_first_lane((block_k - k % block_k) / Shape::kK);
            const index_t last = integer_divide_ceil(K, block_k) - 1;
            auto rows_of_a     = row_scales(ScaleOf<ASource>::get(a), M, K, m, block);
            const auto of_b    = [&](index_t place) {
                return scales<1, Shape::kN>(ScaleOf<BSource>::get(b), N, n, place);
            };
            // Where one instruction takes a block, parts are added while others are computed, and take
            // fewer registers; their scales are loaded a block ahead.
            constexpr bool adds_at_once =
                Shape::kK == block_k && Shape::WarpTile::at(number<2>{}) == block_k;
            auto next_b = of_b(block);
            for(; rest > 0; rest -= tiles, tiles = tiles_per_block, ++block)
            {
                const auto scale_a = [&] {
                    if constexpr(rows_are_shared)
                        return rows_of_a.template take<1>();
                    else
                        return scales<0, Shape::kM>(ScaleOf<ASource>::get(a), M, m, block);
                }();
                const auto scale_b = adds_at_once ? next_b : of_b(block);
                if constexpr(adds_at_once)
                    next_b = of_b(ck_tile::min(block + 1, last));
                auto part = Acc::make();
                clear_tile(part);
                const auto add_part = [&] {
                    if constexpr(rows_are_shared)
                        add(sums, part, of_rows(scale_a), scale_b);
                    else
                        add(sums, part, scale_a, scale_b);
                };
                if constexpr(adds_at_once)
                    take([&] {
                        block_gemm(part, a_fragment, b_fragment);
                        add_part();
                    });
                else
                {
                    tiles = ck_tile::min(tiles, rest);
                    for(index_t i = 0; i < tiles; ++i)
                        take([&] { block_gemm(part, a_fragment, b_fragment); });
                    add_part();
                }
            }
        }
#pragma unroll
        for(index_t i = 0; i < Acc::size; ++i)
            acc[i] = sums.get_thread_buffer()[i];
    }

    private:
    /// The tiles of A and B in LDS. CK Tile's own views leave a byte for each element of A, packed
    /// ones too.
    CK_TILE_DEVICE static auto lds_views(char* shared)
    {
        using namespace ck_tile;
        using A          = typename Pipeline::ADataType;
        using B          = typename Pipeline::BDataType;
        constexpr auto a = Policy::template MakeALdsBlockDescriptor<Problem>();
        constexpr auto b = Policy::template MakeBLdsBlockDescriptor<Problem>();
        char* after_a    = shared + tile_lds<a.get_element_space_size(), A>;
        return make_tuple(
            make_tensor_view<address_space_enum::lds>(reinterpret_cast<A*>(shared), a),
            make_tensor_view<address_space_enum::lds>(reinterpret_cast<B*>(after_a), b));
    }

    static constexpr bool a_turned = !std::is_same_v<typename Pipeline::ALayout, RowMajor>;
    static constexpr bool b_turned = std::is_same_v<typename Pipeline::BLayout, RowMajor>;

    CK_TILE_DEVICE static constexpr auto a_step()
    {
        return ck_tile::make_array(a_turned ? Shape::kK : 0, a_turned ? 0 : Shape::kK);
    }

    CK_TILE_DEVICE static constexpr auto b_step()
    {
        return ck_tile::make_array(b_turned ? Shape::kK : 0, b_turned ? 0 : Shape::kK);
    }

    // A tile whose K axis is not contiguous is transposed on its way to LDS, unless the reads from
    // LDS do that.
    template <typename Tile>
    CK_TILE_DEVICE static auto stored_a(const Tile& tile)
    {
        if constexpr(a_turned && !Pipeline::is_a_load_tr_v.value)
            return turned(tile, Policy::template MakeShuffledARegTileDistribution<Problem>());
        else
            return tile;
    }

    template <typename Tile>
    CK_TILE_DEVICE static auto stored_b(const Tile& tile)
    {
        if constexpr(b_turned && !Pipeline::is_b_load_tr_v.value)
            return turned(tile, Policy::template MakeShuffledBRegTileDistribution<Problem>());
        else
            return tile;
    }

    template <typename Tile, typename Distribution>
    CK_TILE_DEVICE static auto turned(const Tile& tile, Distribution distribution)
    {
        auto shuffled =
            ck_tile::make_static_distributed_tensor<typename Tile::DataType>(distribution);
        ck_tile::transpose_tile2d(shuffled, tile);
        return shuffled;
    }

    template <typename Window, typename Tile>
    CK_TILE_DEVICE static auto window_of(const Window& window, const Tile& tile)
    {
        if constexpr(is_gfx950)
            return ck_tile::make_tile_window(window.get_bottom_tensor_view(),
                                             window.get_window_lengths(),
                                             window.get_window_origin(),
                                             tile.get_tile_distribution());
        else
            return window;
    }

    template <index_t axis, index_t tile, typename Scale>
    CK_TILE_DEVICE static auto
    scales(const Scale& scale, index_t extent, index_t at, index_t block)
    {
        if constexpr(std::is_same_v<Scale, NoScale>)
            return NoScale{};
        else
            return scale.template load<Acc, axis, tile>(extent, at, block);
    }

    template <index_t axis, typename Scale>
    CK_TILE_DEVICE static auto
    exponents(const Scale& scale, index_t extent, index_t K, index_t at, index_t k)
    {
        if constexpr(std::is_same_v<Scale, NoScale>)
            return mx_one; // of no effect on sums
        else
            return BlockGemm::template exponents<axis>(scale, extent, K, at, k);
    }

    template <typename Exponents>
    CK_TILE_DEVICE static auto of_tile(Exponents& exponents)
    {
        if constexpr(std::is_arithmetic_v<Exponents>)
            return exponents;
        else
            return exponents.take();
    }

    /// For each sum of a thread, which of its rows (axis 0) or columns it is in: of the loops over
    /// a thread's elements, those that run along the axis count. Plain loops, since a template for
    /// each element would take as long to compile as the pipeline.
    template <index_t axis>
    CK_TILE_DEVICE static constexpr auto places()
    {
        using Encoding = ck_tile::remove_cvref_t<
            decltype(Acc::Type::get_tile_distribution().get_static_tile_distribution_encoding())>;
        std::array<index_t, Acc::size> found{};
        for(index_t i = 0; i < Acc::size; ++i)
        {
            index_t rest = i, weight = 1;
            for(index_t y = Encoding::NDimY - 1; y >= 0; --y)
            {
                const index_t length = Encoding::detail::ys_lengths_[y];
                if(Encoding::ys_to_rhs_major_[y] == axis + 1)
                {
                    found[i] += rest % length * weight;
                    weight *= length;
                }
                rest /= length;
            }
        }
        return found;
    }

    /// How many different rows the sums of a thread are in.
    static constexpr index_t rows = [] {
        index_t last = 0;
        for(index_t row : places<0>())
            last = ck_tile::max(last, row);
        return last + 1;
    }();

    /// Whether A has scales of rows, and sixteen lanes side by side have sums in the same rows, as they
    /// do unless an instruction computes the transposed product: each of them loads the scales of one
    /// row in sixteen, and the others take them from it.
    static constexpr bool rows_are_shared = [] {
        if constexpr(std::is_same_v<ScaleA, NoScale>)
            return false;
        else
            return is_gfx950 && !Problem::TransposeC && ScaleA::block % Shape::kM != 0;
    }();
    static constexpr index_t lanes = 16;

    /// Where the scales of a lane's rows begin.
    struct Rows
    {
        static constexpr index_t count = (rows + lanes - 1) / lanes;

        std::array<unsigned, count> at;

        CK_TILE_DEVICE unsigned operator()(index_t i) const { return at[i]; }
    };

    template <typename Scale>
    CK_TILE_DEVICE static auto
    row_scales(const Scale& scale, index_t extent, index_t K, index_t at, index_t block)
    {
        if constexpr(rows_are_shared)
        {
            using Stored = typename Scale::Stored;
            ScaleRuns<Stored, Rows> runs{static_cast<const Stored*>(scale.data),
                                         scale.stride_k,
                                         {},
                                         block,
                                         ck_tile::integer_divide_ceil(K, block_k)};
            for(index_t i = 0; i < Rows::count; ++i)
            {
                const index_t place = i * lanes + ck_tile::get_lane_id() % lanes;
                const index_t row   = at + row_at(ck_tile::min(place, rows - 1));
                runs.rows.at[i] = ck_tile::min(row, extent - 1) / Scale::block * scale.stride;
            }
            runs.load();
            return runs;
        }
        else
            return 0; // of no use
    }

    /// Which row of a tile a thread's row `place` is.
    CK_TILE_DEVICE static index_t row_at(index_t place)
    {
        using namespace ck_tile;
        constexpr auto distribution =
            make_static_tile_distribution(detail::make_reduce_tile_distribution_encoding(
                Acc::Type::get_tile_distribution().get_static_tile_distribution_encoding(),
                sequence<1>{}));
        constexpr auto lengths = distribution.get_ys_to_d_descriptor().get_lengths();
        constexpr index_t axes = decltype(lengths)::size();
        array<index_t, axes> ys;
        static_for<0, axes, 1>{}([&](auto i) {
            constexpr index_t axis   = axes - 1 - i;
            constexpr index_t length = lengths[number<axis>{}];
            ys(number<axis>{})       = place % length;
            place /= length;
        });
        return distribution.get_ps_ys_to_xs_adaptor().calculate_bottom_index(
            container_concat(detail::get_partition_index(distribution), ys))[number<0>{}];
    }

    /// The scales of all rows of a thread, from those that its neighbours have.
    template <typename Runs>
    CK_TILE_DEVICE static auto of_rows(const Runs& runs)
    {
        using Number = typename ScaleA::Number;
        using Stored = typename Number::Stored;
        using Read   = decltype(Number::read(Stored{}));
        std::array<int, Rows::count> own;
        for(index_t i = 0; i < Rows::count; ++i)
        {
            const auto bytes = static_cast<std::conditional_t<sizeof(Stored) == 4, int, signed char>>(runs[i][0]);
            own[i] = __builtin_bit_cast(int, Number::read(__builtin_bit_cast(Stored, bytes)));
        }
        std::array<Read, rows> all;
        ck_tile::static_for<0, rows, 1>{}([&](auto row) {
            constexpr int from = 0x150 + row % lanes; // row_newbcast
            all[row]           = __builtin_bit_cast(
                Read, __builtin_amdgcn_mov_dpp(own[row / lanes], from, 0xf, 0xf, true));
        });
        return all;
    }

    /// The scale of a thread's row or column.
    template <typename Scales>
    CK_TILE_DEVICE static auto at(const Scales& scales, index_t place)
    {
        if constexpr(std::is_arithmetic_v<Scales>)
            return scales;
        else if constexpr(requires { scales.get_thread_buffer(); })
            return scales.get_thread_buffer()[place];
        else
            return scales[place];
    }

    template <typename Sums, typename Part, typename ScalesA, typename ScalesB>
    CK_TILE_DEVICE static void
    add(Sums& sums, const Part& part, const ScalesA& scales_a, const ScalesB& scales_b)
    {
        constexpr auto rows    = places<0>();
        constexpr auto columns = places<1>();
#pragma unroll
        for(index_t i = 0; i < Acc::size; ++i)
        {
            const auto sum = part.get_thread_buffer()[i];
            auto& total    = sums.get_thread_buffer()(i);
            if constexpr(std::is_same_v<ScaleB, NoScale>)
                total += ScaleA::Number::scaled(sum, at(scales_a, rows[i]));
            else if constexpr(std::is_same_v<ScaleA, NoScale>)
                total += ScaleB::Number::scaled(sum, at(scales_b, columns[i]));
            else
                total += ScaleA::Number::scaled(
                    sum,
                    ScaleA::Number::product(at(scales_a, rows[i]), at(scales_b, columns[i])));
        }
    }
};

} // namespace cklang
