// SPDX-License-Identifier: MIT
// hipRAND's device functions, over the generators of rocRAND.
#pragma once

#include <rocrand/rocrand_kernel.h>

using hiprandStateXORWOW           = rocrand_state_xorwow;
using hiprandStateXORWOW_t         = rocrand_state_xorwow;
using hiprandState                 = rocrand_state_xorwow;
using hiprandState_t               = rocrand_state_xorwow;
using hiprandStatePhilox4_32_10    = rocrand_state_philox4x32_10;
using hiprandStatePhilox4_32_10_t  = rocrand_state_philox4x32_10;
using hiprandStateMRG32k3a         = rocrand_state_mrg32k3a;
using hiprandStateMRG32k3a_t       = rocrand_state_mrg32k3a;

CKLANG_BEGIN_LIBRARY
CKLANG_RANDOM_LIBRARY(hiprand, _double, 2_double, 4_double)
CKLANG_END_LIBRARY
