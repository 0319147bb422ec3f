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

/// Whether lanes can take a register of any of the sixteen beside them (row_newbcast).
#if defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__)
inline constexpr bool has_row_broadcast = true;
#else
inline constexpr bool has_row_broadcast = false;
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

    /// Whether a tile is one block of K: the products of each warp tile are scaled and added to the sums
    /// while the next one is multiplied, so that one set of sums is enough. Elements that CK Tile
    /// converts on their way to registers are its own to read.
    static constexpr bool adds_at_once =
        !is_mx && tiles_per_block == 1 && !requires { BlockGemm::repeat_k; } &&
        std::is_same_v<typename Pipeline::BDataType, typename BlockGemm::WarpGemm::BDataType>;

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

        // A share of K may begin inside a block.
        index_t block = amd_wave_read_first_lane(k / ck_tile::max(block_k, 1));
        // Before any tile: whoever waits for a load waits for those before it.
        const auto& scale_of_a = ScaleOf<ASource>::get(a);
        const auto& scale_of_b = ScaleOf<BSource>::get(b);
        auto of_a              = scales_ahead<0>(scale_of_a, M, K, m, k);
        auto of_b              = scales_ahead<1>(scale_of_b, N, K, n, k);

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
        auto a_registers = registers<typename Pipeline::ADataType>(
            BlockGemm::MakeABlockDistributionEncode());
        auto b_registers = registers<typename Pipeline::BDataType>(
            BlockGemm::MakeBBlockDistributionEncode());
        const auto fetch = [&] {
            if constexpr(adds_at_once)
            {
                read<Pipeline::is_a_load_tr_v.value>(a_registers, a_fragment);
                read<Pipeline::is_b_load_tr_v.value>(b_registers, b_fragment);
            }
            else
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
            for(; rest > 0; --rest)
                take([&] {
                    const auto taken_a = of_tile(of_a);
                    const auto taken_b = of_tile(of_b);
                    block_gemm.multiply(sums, taken_a, taken_b);
                });
        }
        else
        {
            index_t tiles = amd_wave_read_first_lane((block_k - k % block_k) / Shape::kK);
            const index_t last = integer_divide_ceil(K, block_k) - 1;
            const auto block_b = [&](index_t place) {
                return scales<1, Shape::kN>(scale_of_b, N, n, place);
            };
            auto next_b = block_b(block);
            for(; rest > 0; rest -= tiles, tiles = tiles_per_block, ++block)
            {
                const auto scale_b = next_b;
                next_b             = block_b(ck_tile::min(block + 1, last));
                const auto scale_a = [&] {
                    if constexpr(rows_are_shared)
                        return of_a.template take<1>();
                    else
                        return scales<0, Shape::kM>(scale_of_a, M, m, block);
                }();
                if constexpr(adds_at_once)
                    take([&] {
                        with_scales(scale_a, scale_b, [&](const auto&... of) {
                            add_products(sums, a_registers, b_registers, of...);
                        });
                    });
                else
                {
                    auto part = Acc::make();
                    clear_tile(part);
                    tiles = ck_tile::min(tiles, rest);
                    for(index_t i = 0; i < tiles; ++i)
                        take([&] { block_gemm(part, a_fragment, b_fragment); });
                    with_scales(scale_a, scale_b, [&](const auto&... of) {
                        add<0>(sums, part, of...);
                    });
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
        return ck_tile::make_tile_window(window.get_bottom_tensor_view(),
                                         window.get_window_lengths(),
                                         window.get_window_origin(),
                                         tile.get_tile_distribution());
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

    /// Scales that are loaded for several blocks of K at once.
    template <index_t axis, typename Scale>
    CK_TILE_DEVICE static auto
    scales_ahead(const Scale& scale, index_t extent, index_t K, index_t at, index_t k)
    {
        if constexpr(is_mx)
            return exponents<axis>(scale, extent, K, at, k);
        else if constexpr(axis == 0 && rows_are_shared)
            return row_scales(scale, extent, K, at, k / block_k);
        else
            return 0; // of no use
    }

    template <typename Exponents>
    CK_TILE_DEVICE static auto of_tile(Exponents& exponents)
    {
        if constexpr(std::is_arithmetic_v<Exponents>)
            return exponents;
        else
            return exponents.take();
    }

    /// How the sums are spread over registers and lanes.
    using Encoding = ck_tile::remove_cvref_t<
        decltype(Acc::Type::get_tile_distribution().get_static_tile_distribution_encoding())>;

    /// For each sum of a thread, which of its rows (axis 0) or columns it is in: of the loops over
    /// a thread's elements, those that run along the axis count. Plain loops, since a template for
    /// each element would take as long to compile as the pipeline.
    template <index_t axis>
    CK_TILE_DEVICE static constexpr auto places()
    {
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

    static constexpr index_t lanes = 16;

    /// Whether sixteen lanes side by side have sums in the same rows: the lowest digit of a lane's number
    /// is a column then.
    static constexpr bool lanes_share_rows = [] {
        constexpr auto majors  = Encoding::ps_to_rhss_major_.at(ck_tile::number<Encoding::NDimP - 1>{});
        constexpr auto minors  = Encoding::ps_to_rhss_minor_.at(ck_tile::number<Encoding::NDimP - 1>{});
        constexpr index_t last = majors.size() - 1;
        if constexpr(majors.at(last) != 2)
            return false;
        else
            return Encoding::hs_lengthss_.at(ck_tile::number<1>{}).at(minors.at(last)) % lanes == 0;
    }();

    /// Whether A has scales of rows that each of sixteen lanes loads for one row in sixteen, and the others
    /// take from it.
    static constexpr bool rows_are_shared = [] {
        if constexpr(std::is_same_v<ScaleA, NoScale>)
            return false;
        else
            return has_row_broadcast && lanes_share_rows && ScaleA::block % Shape::kM != 0;
    }();

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

    /// Calls `apply` with the scales of all rows of a thread, from those that its neighbours have, and
    /// with those of its columns, unless all are in one block: rows' scales are then products.
    template <typename ScalesA, typename ScalesB, typename Apply>
    CK_TILE_DEVICE static void
    with_scales(const ScalesA& of_a, const ScalesB& of_b, const Apply& apply)
    {
        if constexpr(!rows_are_shared)
            apply(of_a, of_b);
        else if constexpr(std::is_arithmetic_v<ScalesB>)
            apply(of_rows(of_a, [&](auto row) { return ScaleA::Number::product(row, of_b); }),
                  NoScale{});
        else
            apply(of_rows(of_a, [](auto row) { return row; }), of_b);
    }

    /// The scales of all rows of a thread, from those that its neighbours have.
    template <typename Runs, typename Change>
    CK_TILE_DEVICE static auto of_rows(const Runs& runs, const Change& change)
    {
        using Number = typename ScaleA::Number;
        using Stored = typename Number::Stored;
        using Read   = decltype(Number::read(Stored{}));
        std::array<int, Rows::count> own;
        for(index_t i = 0; i < Rows::count; ++i)
        {
            const auto bytes = static_cast<std::conditional_t<sizeof(Stored) == 4, int, signed char>>(runs[i][0]);
            own[i] = __builtin_bit_cast(int, change(Number::read(__builtin_bit_cast(Stored, bytes))));
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

    /// A lane's part of a tile of an operand.
    template <typename T, typename Encoding>
    CK_TILE_DEVICE static auto registers(Encoding encoding)
    {
        return ck_tile::make_static_distributed_tensor<T>(
            ck_tile::make_static_tile_distribution(encoding));
    }

    template <bool transposed, typename Tile, typename Window>
    CK_TILE_DEVICE static void read(Tile& tile, const Window& window)
    {
        if constexpr(transposed)
            tile = ck_tile::load_tile_transpose(window);
        else
            ck_tile::load_tile(tile, window);
    }

    /// Adds A B to the sums, one warp tile after the other.
    template <typename Sums, typename A, typename B, typename ScalesA, typename ScalesB>
    CK_TILE_DEVICE static void add_products(
        Sums& sums, const A& a, const B& b, const ScalesA& scales_a, const ScalesB& scales_b)
    {
        using namespace ck_tile;
        using Warp = typename BlockGemm::WarpGemm;
        using Part = typename Warp::CWarpTensor;
        static_for<0, BlockGemm::MIterPerWarp, 1>{}([&](auto i) {
            static_for<0, BlockGemm::NIterPerWarp, 1>{}([&](auto j) {
                Part part;
                clear_tile(part);
                static_for<0, BlockGemm::KIterPerWarp, 1>{}([&](auto k) {
                    typename Warp::AWarpTensor of_a;
                    typename Warp::BWarpTensor of_b;
                    of_a.get_thread_buffer() = a.get_y_sliced_thread_data(
                        merge_sequences(sequence<i, k>{}, BlockGemm::a_warp_y_index_zeros),
                        merge_sequences(sequence<1, 1>{}, BlockGemm::a_warp_y_lengths));
                    of_b.get_thread_buffer() = b.get_y_sliced_thread_data(
                        merge_sequences(sequence<j, k>{}, BlockGemm::b_warp_y_index_zeros),
                        merge_sequences(sequence<1, 1>{}, BlockGemm::b_warp_y_lengths));
                    Warp{}(part, of_a, of_b);
                });
                constexpr index_t place = i * BlockGemm::NIterPerWarp + j;
                add<place * Part::get_thread_buffer_size()>(sums, part, scales_a, scales_b);
            });
        });
    }

    /// Adds a part of the sums that begins at `first`.
    template <index_t first, typename Sums, typename Part, typename ScalesA, typename ScalesB>
    CK_TILE_DEVICE static void
    add(Sums& sums, const Part& part, const ScalesA& scales_a, const ScalesB& scales_b)
    {
        constexpr auto rows    = places<0>();
        constexpr auto columns = places<1>();
#pragma unroll
        for(index_t i = 0; i < Part::get_thread_buffer_size(); ++i)
        {
            const auto sum   = part.get_thread_buffer()[i];
            auto& total      = sums.get_thread_buffer()(first + i);
            const index_t row = rows[first + i], column = columns[first + i];
            if constexpr(std::is_same_v<ScalesB, NoScale>)
                total += ScaleA::Number::scaled(sum, at(scales_a, row));
            else if constexpr(std::is_same_v<ScalesA, NoScale>)
                total += ScaleB::Number::scaled(sum, at(scales_b, column));
            else
                total += ScaleA::Number::scaled(
                    sum, ScaleA::Number::product(at(scales_a, row), at(scales_b, column)));
        }
    }
};

} // namespace cklang
