// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// pcapng, read by ourselves. libpcap 1.10 can't be used for it: it refuses files whose interfaces differ in link type
// or snaplen, and tells neither the interface of a packet nor its name, which replay needs to find the host port.
// Sections in either byte order; enhanced, simple and (obsolete) packet blocks; if_tsresol in powers of 10 and 2;
// if_tsoffset; other blocks are stepped over. Never reads past a block, never believes a length before it has been
// checked. Source of the layout: draft-ietf-opsawg-pcapng.
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "dataplane/capture_index.h"

namespace weft {

bool is_pcapng(std::span<const std::uint8_t> file);

/// Throws CaptureError where the first section header is of no use; a bad block ends the reading and is told in
/// index.stopped. Interfaces of all sections are numbered through in CaptureIndex::interfaces.
void read_pcapng(const std::string& name, std::span<const std::uint8_t> file, CaptureIndex& index);

/// `units` of the resolution `tsresol` (if_tsresol as in the file: 10^-n, or 2^-n with the top bit set) plus whole
/// seconds. Rounded down to a picosecond; nullopt outside of the years that 64-bit nanoseconds reach (1678 to 2262).
std::optional<Stamp> stamp_of(std::uint64_t units, std::uint8_t tsresol, std::int64_t offset_s);

}  // namespace weft
