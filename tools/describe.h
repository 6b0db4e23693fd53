// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What a configuration asks for, in a few lines for people.
#include <string>

#include "tools/config.h"

namespace weft {

std::string describe(const Config& config);

/// A leaf's host rate over its fabric rate, of the worst leaf; 0 where there are no fabric links.
double oversubscription(const Topology& topology);

}  // namespace weft
