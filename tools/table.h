// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A RunResult as a page for people: what went in, what came out, how long it took, where to look next.
#include <string>

#include "dataplane/results.h"
#include "tools/config.h"
#include "tools/text.h"

namespace weft {

/// `folder`: where the result files lie.
std::string result_table(const RunResult& result, const Config& config, const std::string& folder);

}  // namespace weft
