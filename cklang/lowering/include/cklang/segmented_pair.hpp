// SPDX-License-Identifier: MIT
// Pairs of products of segments of rows.
#pragma once

#include "cklang/pair.hpp"
#include "cklang/segmented.hpp"
