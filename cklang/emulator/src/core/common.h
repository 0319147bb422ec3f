// SPDX-License-Identifier: MIT
//
// What most files include: precompiled once by build.py, since reading these headers would
// otherwise be the larger part of compiling each file.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/lanes.h"
