// SPDX-License-Identifier: MIT
#pragma once
#include <hip/attributes.h>
