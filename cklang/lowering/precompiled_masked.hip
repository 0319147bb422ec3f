// SPDX-License-Identifier: MIT
// What is precompiled once for each GPU for products whose masked loads are moved out of range.
#define CK_TILE_EXPERIMENTAL_USE_BUFFER_LOAD_OOB_CHECK_OFFSET_TRICK 1
#include "cklang/gemm.hpp"
