// SPDX-License-Identifier: MIT
#pragma once
#include <hip/hip_runtime_api.h>
void scale(int* data, int n, int factor, hipStream_t stream);
void set_managed(int* where, int value);
