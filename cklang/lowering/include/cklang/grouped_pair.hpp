// SPDX-License-Identifier: MIT
// Pairs of products of different sizes in one launch.
#pragma once

#include "cklang/grouped.hpp"
#include "cklang/pair.hpp"
