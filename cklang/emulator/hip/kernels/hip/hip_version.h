// SPDX-License-Identifier: MIT
// The HIP level these headers describe. CK Tile compares HIP_VERSION in a few places.
#pragma once

#define HIP_VERSION_MAJOR 7
#define HIP_VERSION_MINOR 1
#define HIP_VERSION_PATCH 0
#define HIP_VERSION (HIP_VERSION_MAJOR * 10000000 + HIP_VERSION_MINOR * 100000 + HIP_VERSION_PATCH)
