// SPDX-License-Identifier: MIT
// The host shim of pairs of products of segments.
#pragma once

#include "cklang/describe_pair.hpp"
#include "cklang/describe_segmented.hpp"
