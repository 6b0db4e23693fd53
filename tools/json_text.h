// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// JSON as weft writes it: keys in a fixed order, numbers with the decimals that their schema says, a line for each item
// of a list.
#include <nlohmann/json.hpp>
#include <string>

#include "dataplane/time.h"

namespace weft {

using Json = nlohmann::ordered_json;

/// A number with so many decimals, whatever its value.
Json fixed(double value, int decimals);
/// Picoseconds as nanoseconds, every picosecond shown.
Json ns(TimePs time);

/// The document, and a line break at its end.
std::string json_text(const Json& document);

}  // namespace weft
