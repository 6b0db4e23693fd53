// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/addresses.h"

#include <cstdio>
#include <stdexcept>

namespace weft {

std::array<std::uint8_t, 16> host_ipv6(std::uint32_t host) {
  std::array<std::uint8_t, 16> address{0x20, 0x01, 0x0d, 0xb8};
  store_be32(address.data() + 12, host + 1);
  return address;
}

MacAddress to_mac(std::uint64_t number) {
  MacAddress mac{};
  store_mac(mac.data(), number);
  return mac;
}

MacAddress parse_mac(const std::string& text) {
  const auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  MacAddress mac{};
  bool good = text.size() == 17;
  for (std::size_t i = 0; good && i < mac.size(); ++i) {
    const int high = digit(text[3 * i]), low = digit(text[3 * i + 1]);
    good = high >= 0 && low >= 0 && (i == 5 || text[3 * i + 2] == ':' || text[3 * i + 2] == '-');
    mac[i] = static_cast<std::uint8_t>((high << 4) | low);
  }
  if (!good) throw std::invalid_argument("'" + text + "' is not a MAC address; 02:00:00:00:00:01 would be one");
  return mac;
}

std::string to_string(const MacAddress& mac) {
  char text[18];
  std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
  return text;
}

std::vector<KnownHost> modelled_hosts(const Topology& topology) {
  if (topology.host_ports() > max_modelled_hosts)
    throw std::invalid_argument(std::to_string(topology.host_ports()) +
                                " host ports: modelled hosts have addresses for " + std::to_string(max_modelled_hosts));
  std::vector<KnownHost> hosts(topology.host_ports());
  for (std::uint32_t port = 0; port < hosts.size(); ++port) hosts[port] = {to_mac(host_mac(port)), port};
  return hosts;
}

}  // namespace weft
