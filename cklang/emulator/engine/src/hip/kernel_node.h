// SPDX-License-Identifier: MIT
//
// A launch described as a node of a graph.
#pragma once

#include "hip/module.h"

namespace ckemu {

/// hipKernelNodeParams.
struct KernelNode {
  Dim3 block;
  void** extra;
  void* function;
  Dim3 grid;
  void** parameters;
  u32 dynamic_lds;
};

/// Checks and prepares the launch for the current device; none if there is an `error`.
Ref<PreparedLaunch> prepare_node(const KernelNode& node, hipError_t& error);

}  // namespace ckemu
