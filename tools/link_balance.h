// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// How evenly fabric links were loaded. Links that carry traffic by the same choice are compared with each other: the
// uplinks of a leaf, and the links down to a leaf. Over all leaves the figures are weighted by what was carried, so
// that a leaf that hardly sends has hardly a say. Load is the busy share of a link, keep-alives left out.
#include <optional>
#include <string>
#include <vector>

#include "dataplane/results.h"

namespace weft {

struct LinkBalance {
  double max_over_mean = 0;  // busiest link of a leaf over the mean of its links: 1 is even, n is one link of n
  double jain = 0;           // Jain's fairness index, (sum x)^2 / (n sum x^2): 1 is even, 1/n is one link of n
  std::string busiest;       // link with the highest load
  double busiest_load = 0, busiest_over_mean = 0;
};

enum class Direction : std::uint8_t { up, down };

/// None: nothing crossed the fabric that way after warm-up.
std::optional<LinkBalance> link_balance(const std::vector<LinkResult>& links, Direction direction);

}  // namespace weft
