// SPDX-License-Identifier: MIT
//
// Process-wide state that is never destroyed: programs call HIP from their own static destructors, and
// threads of ours may still run then.
#pragma once

namespace ckemu {

template <class T>
T& immortal() {
  static T& one = *new T;
  return one;
}

}  // namespace ckemu
