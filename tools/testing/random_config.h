// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Valid configurations without end, the same one for the same seed.
#include <cstdint>

#include "tools/config.h"

namespace weft {

Config random_config(std::uint64_t seed);

}  // namespace weft
