// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Checksums that a sender has left to its network device. An operating system whose device says that it can (veth,
// virtio) sends TCP and UDP with only the sum of the pseudo-header in the checksum field; the device adds the rest. A
// frame taken from behind such a device by a packet socket never saw that done, and would arrive broken elsewhere.
#include <cstdint>
#include <span>

namespace weft {

/// Completes the checksum of a TCP or UDP frame, IPv4 or IPv6, tagged or not, if it is such a partial one; true if so.
/// Looks at headers alone where it is not. A right checksum that happens to look partial is computed to what it was.
bool complete_checksum(std::span<std::uint8_t> frame);

}  // namespace weft
