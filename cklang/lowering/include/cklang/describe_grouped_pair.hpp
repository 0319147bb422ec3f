// SPDX-License-Identifier: MIT
// The host shim of a group of pairs.
#pragma once

#include "cklang/describe_grouped.hpp"
#include "cklang/describe_pair.hpp"
