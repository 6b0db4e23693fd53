// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The one place that says which weft this is; meson passes the project's version.

namespace weft {

#ifndef WEFT_VERSION
#define WEFT_VERSION "0.1.0"
#endif

inline constexpr const char* version = WEFT_VERSION;

}  // namespace weft
