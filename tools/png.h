// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A picture of a few colours as a PNG file, for heat maps in reports.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace weft {

struct Picture {
  std::uint32_t width = 0, height = 0;
  std::vector<std::uint8_t> pixels;                  // row by row, each an index into the palette
  std::vector<std::array<std::uint8_t, 3>> palette;  // red, green, blue; up to 256
  bool first_is_transparent = false;                 // palette[0]
};

/// Throws std::invalid_argument where the sizes do not fit together.
std::string png(const Picture& picture);

std::string base64(const std::string& bytes);

}  // namespace weft
