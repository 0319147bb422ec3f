// SPDX-License-Identifier: MIT
// What is precompiled once for each GPU for attention kernels.
#include "cklang/attention.hpp"
