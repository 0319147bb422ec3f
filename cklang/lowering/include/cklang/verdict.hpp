// SPDX-License-Identifier: MIT
// CK Tile says why it refuses an argument by printing to stderr when an environment variable is
// set. Here the sentence is kept for the caller instead; nothing is printed and no stream is
// linked in. Overloads that are not templates win over CK Tile's templates.
#pragma once

#include "ck_tile/core/utility/env.hpp"

#if !defined(__HIP_DEVICE_COMPILE__)
namespace cklang {

inline thread_local const char* refusal = nullptr;

} // namespace cklang

namespace ck_tile {

inline void CK_TILE_ERROR(const char* message) noexcept { cklang::refusal = message; }

inline bool EnvIsEnabled(env::CK_TILE_LOGGING) { return true; }

} // namespace ck_tile
#endif
