// SPDX-License-Identifier: MIT
#pragma once
#include <hip/vector_types.h>
