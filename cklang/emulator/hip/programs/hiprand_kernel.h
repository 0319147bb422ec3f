// SPDX-License-Identifier: MIT
// The place of this header in older versions of ROCm.
#pragma once

#include <hiprand/hiprand_kernel.h>
