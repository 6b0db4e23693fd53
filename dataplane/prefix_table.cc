// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/prefix_table.h"

#include <arpa/inet.h>

#include <array>
#include <charconv>
#include <stdexcept>

namespace weft {

ParsedPrefix parse_prefix(const std::string& text) {
  const auto fail = [&](const std::string& why) {
    throw std::invalid_argument("'" + text + "' is not a prefix: " + why +
                                "; 198.18.1.0/24 or 2001:db8::/64 would be one");
  };
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) fail("it has no /length");
  ParsedPrefix prefix;
  const std::string address = text.substr(0, slash);
  std::array<std::uint8_t, 16> bytes{};
  prefix.six = address.find(':') != std::string::npos;
  if (inet_pton(prefix.six ? AF_INET6 : AF_INET, address.c_str(), bytes.data()) != 1)
    fail("'" + address + "' is not an address");
  const unsigned bits = prefix.six ? 128 : 32;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data() + slash + 1, end, prefix.length);
  if (error != std::errc{} || stopped != end || prefix.length > bits)
    fail("the length must be 0 to " + std::to_string(bits));
  for (unsigned i = 0; i < bits / 8; ++i) prefix.address = prefix.address << 8 | bytes[i];
  const unsigned host_bits = bits - prefix.length;
  const Ipv6Address mask = host_bits == 128 ? ~Ipv6Address{0} : (Ipv6Address{1} << host_bits) - 1;
  if ((prefix.address & mask) != 0) fail("bits are set beyond the length");
  return prefix;
}

}  // namespace weft
