// SPDX-License-Identifier: MIT
// What is precompiled once for each GPU. A file of its own that stays where it is: a precompiled
// header names the file it was made from.
#include "cklang/gemm.hpp"
