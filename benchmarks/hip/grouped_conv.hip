// SPDX-License-Identifier: MIT
// CK Tile's own grouped convolution, with the tile that macros name: bf16, two dimensions, channels last, one group,
// accesses of 4, 8 and 8 elements, as the example's launcher puts it together.
#include <functional>
#include <numeric>
#include <stdexcept>

#include "grouped_convolution_utils.hpp"

#include "grouped_convolution_forward_invoker.hpp"

namespace {

struct Tiled : ConvConfigBase {
  static constexpr ck_tile::index_t M_Tile = TILE_M, N_Tile = TILE_N, K_Tile = TILE_K;
  static constexpr ck_tile::index_t M_Warp = WARPS_M, N_Warp = WARPS_N, K_Warp = 1;
  static constexpr ck_tile::index_t M_Warp_Tile = WARP_TILE_MN, N_Warp_Tile = WARP_TILE_MN, K_Warp_Tile = WARP_TILE_K;
  static constexpr bool DoubleSmemBuffer = false;
};

}  // namespace

extern "C" int run(const int* extents, const void* image, const void* weight, void* out) {
  const auto [images, channels, features, h, w, y, x, stride_h, stride_w, pad_h, pad_w] =
      *reinterpret_cast<const std::array<int, 11>*>(extents);
  namespace layout = ck_tile::tensor_layout::convolution;
  const ck_tile::conv::ConvParam param{
      2, 1, images, features, channels, {y, x}, {h, w}, {stride_h, stride_w}, {1, 1}, {pad_h, pad_w}, {pad_h, pad_w}};
  const ck_tile::GroupedConvFwdHostArgs<> args(param, image, weight, {}, out, 1);
  try {
    GroupedConvolutionForwardInvoker::grouped_conv_fwd<
        2, Tiled, ck_tile::bf16_t, ck_tile::bf16_t, float, ck_tile::bf16_t, layout::NHWGC, layout::GKYXC, layout::NHWGK>(
        args, ck_tile::stream_config{nullptr, false});
  } catch (const std::exception&) {
    return 1;
  }
  return 0;
}
