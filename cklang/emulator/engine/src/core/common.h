// SPDX-License-Identifier: MIT
//
// What most units read: precompiled once by build.py, since reading these headers would otherwise be
// the larger part of compiling each of them.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/lanes.h"
#include "hip/device.h"
#include "ops/handlers.h"
#include "translate/section.h"
