// SPDX-License-Identifier: MIT
// Attention that skips blocks of scores. A function of the user's says how much of the block around
// query i and key j the mask shows. A workgroup lists the tiles of keys that are not hidden from its
// queries; the pipeline walks over that list as if its tiles were neighbours in memory.
#pragma once

#include "cklang/attention.hpp"
#include "cklang/attention_launched.hpp"

// What the mask shows of the block around query i and key j: 0 nothing, 2 all, else some.
extern "C" __device__ int ck_block(CK_ATTENTION_PARAMS);
// Whether it shows key j to query i, in a block that it shows in part.
extern "C" __device__ int ck_inside(CK_ATTENTION_PARAMS);

namespace cklang {

/// The tiles that a list has room for; those behind its last follow as they lie, none skipped.
constexpr index_t listed_tiles = 1024;

/// A list of tiles of `keys` keys in LDS: twice a tile's number, plus 1 where all of it is seen.
template <index_t keys>
struct TileList
{
    const uint32_t* entries = nullptr;

    /// The entry of the tile at `place`.
    CK_TILE_DEVICE uint32_t at(index_t place) const
    {
        const index_t behind = ck_tile::max(place - (listed_tiles - 1), 0);
        return ck_tile::amd_wave_read_first_lane(entries[place - behind]) + 2 * behind;
    }

    /// How far key `column` of the list is from the key that it is; the lanes of a wave have one
    /// tile.
    CK_TILE_DEVICE index_t distance(index_t column) const
    {
        const index_t place = ck_tile::amd_wave_read_first_lane(column / keys);
        return (static_cast<index_t>(at(place) >> 1) - place) * keys;
    }
};

/// Writes the list of a workgroup. All waves count its tiles, the first one stores them.
template <index_t rows, index_t keys, index_t block_rows, index_t block_keys>
struct TileLister
{
    const At& at;
    index_t row;
    uint32_t* entries;

    /// List the tiles from key `first` to key `end`, and return how many there are.
    CK_TILE_DEVICE index_t operator()(index_t first, index_t end) const
    {
        using namespace ck_tile;
        const index_t last = integer_divide_ceil(end, keys);
        index_t count      = 0;
        for(index_t start = first / keys; start < last; start += get_warp_size())
        {
            const index_t tile = start + static_cast<index_t>(get_lane_id());
            const index_t seen = tile < last ? shown(tile * keys) : 0;
            const uint64_t all = __ballot(seen != 0);
            const auto before  = __builtin_amdgcn_mbcnt_lo(static_cast<uint32_t>(all), 0u);
            const index_t place =
                count + __builtin_amdgcn_mbcnt_hi(static_cast<uint32_t>(all >> 32), before);
            if(seen != 0 && place < listed_tiles && threadIdx.x < get_warp_size())
                entries[place] = 2 * tile + (seen == 2);
            count += __builtin_popcountll(all);
        }
        block_sync_lds();
        if(count <= listed_tiles)
            return amd_wave_read_first_lane(count);
        // What follows the last entry is not known, so all of it is masked.
        const uint32_t entry = entries[listed_tiles - 1] & ~1u;
        block_sync_lds();
        if(threadIdx.x == 0)
            entries[listed_tiles - 1] = entry;
        block_sync_lds();
        return amd_wave_read_first_lane(listed_tiles - 1 + last - static_cast<index_t>(entry >> 1));
    }

    /// What the queries see of the tile that begins with key `column`: 0 nothing, 2 all, else 1.
    CK_TILE_DEVICE index_t shown(index_t column) const
    {
        const index_t end_row = ck_tile::min(row + rows, at.seqlen_q);
        const index_t end_key = ck_tile::min(column + keys, at.seqlen_k);
        bool none = true, all = true;
        for(index_t i = row; i < end_row; i = (i / block_rows + 1) * block_rows)
            for(index_t j = column; j < end_key; j = (j / block_keys + 1) * block_keys)
            {
                const int seen = ck_block(CK_ATTENTION_ARGS(at, i, j));
                none           = none & (seen == 0);
                all            = all & (seen == 2);
            }
        return none ? 0 : all ? 2 : 1;
    }
};

/// The tile that the mask was asked about last.
struct ListedTile
{
    index_t distance; // from its keys in the list to the keys that they are
    bool whole;       // all of it is seen, but for the edges of the window
    bool hidden;      // none of it is, though the pipeline walks over it
};

/// The mask of listed tiles: the pipeline walks over those from place `first` to place `end`.
template <typename Base, index_t rows, index_t keys, index_t block_rows, index_t block_keys>
struct ListedMask : Base
{
    using Lister = TileLister<rows, keys, block_rows, block_keys>;

    Lister lister;
    index_t first = 0;
    index_t end;
    ListedTile* tile;

    CK_TILE_DEVICE
    ListedMask(const Base& base, const Lister& lister_, index_t count, ListedTile* tile_)
        : Base(base), lister(lister_), end(count), tile(tile_)
    {
        // Workgroups that share the keys of a row share the list.
        if constexpr(requires { base.splits; })
        {
            const index_t share = ck_tile::integer_divide_ceil(count, base.splits);
            first               = base.split * share;
            end                 = ck_tile::min(count, first + share);
        }
    }

    template <index_t height, index_t width>
    CK_TILE_DEVICE auto GetTileRangeAlongX(index_t, number<height>, number<width>) const
    {
        return ck_tile::make_tuple(first * keys, end * keys);
    }

    template <index_t height, index_t width>
    CK_TILE_DEVICE bool
    IsEdgeTile(index_t row, index_t column, number<height>, number<width>) const
    {
        const index_t place  = column / keys;
        const uint32_t entry = TileList<keys>{lister.entries}.at(place);
        const index_t key    = static_cast<index_t>(entry >> 1) * keys;
        index_t seen         = 1 + static_cast<index_t>(entry & 1);
        if(place >= listed_tiles - 1)
            seen = lister.shown(key);
        *tile = {key - column, seen == 2, seen == 0};
        return seen != 2 ||
               this->WindowMask::IsEdgeTile(row, key, number<height>{}, number<width>{});
    }
};

/// The variant of listed tiles, asked after the mask about the same tile. If each of these is `part`
/// of one block, what it asks has no need to look the block up again.
template <typename Base, bool part>
struct ListedVariant : Base
{
    const ListedTile* tile;

    CK_TILE_DEVICE ListedVariant(const Base& base, const ListedTile* tile_)
        : Base(base), tile(tile_)
    {
    }

    template <typename Params>
    CK_TILE_DEVICE bool LogitsMask(const Params& params,
                                   uint32_t batch,
                                   uint32_t row,
                                   uint32_t column,
                                   uint32_t head,
                                   uint32_t kv_head) const
    {
        const index_t key = column + tile->distance;
        if constexpr(!part)
            return Base::LogitsMask(params, batch, row, key, head, kv_head);
        const index_t i = ck_tile::min(static_cast<index_t>(row), params.at.seqlen_q - 1);
        const index_t j = ck_tile::min(key, params.at.seqlen_k - 1);
        int seen        = ck_inside(CK_ATTENTION_ARGS(params.at, i, j));
        asm("" : "+v"(seen)); // as in lets_through
        const bool shown = ((seen != 0) | tile->whole) & !tile->hidden;
        return shown & !params.impl_mask.IsOutOfBound(row, key);
    }
};

template <index_t rows, index_t keys, index_t block_rows, index_t block_keys>
constexpr bool tile_in_block = block_rows % rows == 0 && block_keys % keys == 0;

template <typename Base, index_t keys>
struct ListedEncoding
{
    mutable Base base; // CK Tile's change nothing, but are not const
    TileList<keys> list;

    CK_TILE_DEVICE void update(float& x, index_t row, index_t column) const
    {
        base.update(x, row, column + list.distance(column));
    }
};

/// Rows of K, or of V where keys are the second axis, in the order of the list.
template <typename Base, index_t keys, bool keys_first>
struct ListedView : Base
{
    TileList<keys> list{};

    CK_TILE_HOST_DEVICE constexpr ListedView() = default;
    CK_TILE_DEVICE ListedView(const Base& base, const TileList<keys>& list_)
        : Base(base), list(list_)
    {
    }

    template <typename Vector, bool check = true, typename Coordinate>
    CK_TILE_DEVICE auto get_vectorized_elements(const Coordinate& at,
                                                index_t offset,
                                                ck_tile::bool_constant<check> = {}) const
    {
        using namespace ck_tile;
        const index_t key   = at.get_index()[number<keys_first ? 0 : 1>{}];
        const index_t moved = list.distance(key);
        auto place          = at;
        move_tensor_coordinate(Base::get_tensor_descriptor(),
                               place,
                               keys_first ? make_multi_index(moved, 0)
                                          : make_multi_index(0, moved));
        return Base::template get_vectorized_elements<Vector>(
            place, offset, bool_constant<check>{});
    }
};

template <index_t keys, bool keys_first, typename Window>
CK_TILE_DEVICE auto listed(const Window& window, const TileList<keys>& list)
{
    using View = ck_tile::remove_cvref_t<decltype(window.get_bottom_tensor_view())>;
    return ck_tile::make_tile_window(
        ListedView<View, keys, keys_first>{window.get_bottom_tensor_view(), list},
        window.get_window_lengths(),
        window.get_window_origin());
}

/// A pipeline that skips what `ck_block` says is hidden, in blocks of so many queries and keys.
template <typename Base, index_t block_rows, index_t block_keys>
struct BlockSparse : Base
{
    template <typename Q, typename K, typename V, typename Bias, typename Lse, typename Same,
              typename Random, typename MaskAll, typename Encoding, typename Variant,
              typename Params, typename Indices, typename Dropout>
    CK_TILE_DEVICE auto
    operator()(const Q& q, Same same, const K& k, Same, const V& v, Same, const Bias& bias, Same,
               Random& random, Lse& lse, Same, Same, const auto& p_function,
               const auto& o_function, const MaskAll& visible, const Encoding& encoding,
               float scale, const Variant& variant, const Params& params, const Indices& indices,
               char* shared, Dropout& dropout) const
    {
        using namespace ck_tile;
        constexpr index_t rows = Base::kM0;
        constexpr index_t keys = Base::kN0;
        constexpr bool part    = tile_in_block<rows, keys, block_rows, block_keys>;
        __shared__ uint32_t entries[listed_tiles];

        const index_t row        = q.get_window_origin().at(number<0>{});
        const WindowMask& window = visible;
        const auto [first, end]  = window.GetTileRangeAlongX(row, number<rows>{}, number<keys>{});
        const TileLister<rows, keys, block_rows, block_keys> lister{params.at, row, entries};
        const index_t count = lister(first, end);
        const TileList<keys> list{entries};
        ListedTile tile{};
        const Base& base = *this;
        return base(q, same, listed<keys, true>(k, list), same, listed<keys, false>(v, list), same,
                    bias, same, random, lse, same, same, p_function, o_function,
                    ListedMask<MaskAll, rows, keys, block_rows, block_keys>{
                        visible, lister, count, &tile},
                    ListedEncoding<Encoding, keys>{encoding, list}, scale,
                    ListedVariant<Variant, part>{variant, &tile}, params, indices, shared, dropout);
    }
};

} // namespace cklang
