// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Addresses: text to bytes, and those of modelled hosts. Host n is the n-th host port.
#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/bytes.h"
#include "dataplane/forward.h"

namespace weft {

/// The first address of modelled hosts, as a number: 02:00:00:00:00:00 (locally administered).
inline constexpr std::uint64_t first_host_mac = 0x0200'0000'0000;
/// Modelled hosts live in 198.18.0.0/15, which RFC 2544 sets aside for measurements: room for 131,070.
inline constexpr std::uint32_t host_network = 198u << 24 | 18u << 16;
inline constexpr std::uint32_t max_modelled_hosts = 131'070;

/// 02:00:00:00:00:00 + n
constexpr std::uint64_t host_mac(std::uint32_t host) { return first_host_mac + host; }
/// 198.18.0.1 + n
constexpr std::uint32_t host_ipv4(std::uint32_t host) { return host_network + host + 1; }
/// 2001:db8::/64 (documentation) + n + 1
std::array<std::uint8_t, 16> host_ipv6(std::uint32_t host);

/// Of a switch's own port, as the source of its pause frames: 02:77, the switch's number, the port's.
constexpr MacAddress port_mac(std::uint32_t device, std::uint32_t port) {
  return {0x02,
          0x77,
          static_cast<std::uint8_t>(device >> 8),
          static_cast<std::uint8_t>(device),
          static_cast<std::uint8_t>(port >> 8),
          static_cast<std::uint8_t>(port)};
}

inline std::uint64_t to_number(const MacAddress& mac) { return load_mac(mac.data()); }
MacAddress to_mac(std::uint64_t number);
/// "02:00:00:00:00:01"; also with dashes. Throws std::invalid_argument.
MacAddress parse_mac(const std::string& text);
std::string to_string(const MacAddress& mac);

/// A modelled host on every port of `topology`.
std::vector<KnownHost> modelled_hosts(const Topology& topology);

}  // namespace weft
