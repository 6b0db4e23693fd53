// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Classic pcap, read by libpcap. It gets the stamps in the file's own resolution (asked for nanoseconds it multiplies
// microseconds in 32 bits, and a nonsense stamp may come out looking good), and only headers are taken from it: a
// record longer than the snaplen in the file's header is cut by it without a word, so lengths come from where it stands
// in the file.
#include <cstdint>
#include <span>
#include <string>

#include "dataplane/capture_index.h"

namespace weft {

/// a1b2c3d4 (µs), a1b23c4d (ns), a1b2cd34 (µs, 24-byte record headers), in either byte order.
bool is_pcap(std::span<const std::uint8_t> file);

/// Throws CaptureError where the file header is of no use; a bad record ends the reading and is told in index.stopped.
void read_pcap(const std::string& name, std::span<const std::uint8_t> file, CaptureIndex& index);

}  // namespace weft
