// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Cells and control cells as bytes, for captures: Ethernet frames of EtherType 0x88B5 (IEEE local experimental).
// docs/cell-format.md is the reference; this is its only implementation.
#include <cstdint>
#include <vector>

#include "cells/cell.h"

namespace weft::cells {

inline constexpr std::uint16_t cell_ethertype = 0x88B5;

/// Replaces the contents of `out`. The frames with bytes in the cell must still be alive.
void materialise(const Cell& cell, std::vector<std::uint8_t>& out);
void materialise(const ControlCell& cell, std::vector<std::uint8_t>& out);

}  // namespace weft::cells
