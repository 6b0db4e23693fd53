// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/parse.h"

namespace weft {
namespace {

struct Bytes {
  const std::uint8_t* data;
  std::uint32_t available, length;
  [[nodiscard]] bool has(std::uint32_t from, std::uint32_t count) const {
    return from <= available && available - from >= count;
  }
};

/// Ports and queue pair at `at`, in a datagram that ends at `end` (from the frame's start).
void parse_transport(const Bytes& frame, std::uint32_t at, std::uint32_t end, ParsedHeaders& h) {
  h.l4_offset = static_cast<std::uint16_t>(at);
  if (h.protocol == ip_protocol::icmpv6 && h.ip_version == 6 && end > at && frame.has(at, 1)) {
    h.neighbour_discovery = frame.data[at] >= 133 && frame.data[at] <= 137;
    return;
  }
  if (h.protocol != ip_protocol::udp && h.protocol != ip_protocol::tcp) return;
  if (at > end || end - at < 8 || !frame.has(at, 8)) return;
  h.has_ports = true;
  h.source_port = load_be16(frame.data + at);
  h.destination_port = load_be16(frame.data + at + 2);
  h.rocev2 = h.protocol == ip_protocol::udp && h.destination_port == rocev2_udp_port;
  if (h.rocev2 && end - at >= 20 && frame.has(at, 20)) {
    h.has_qp = true;
    h.destination_qp = load_be32(frame.data + at + 12) & 0xff'ffff;
  }
}

void parse_ipv4(const Bytes& frame, std::uint32_t at, ParsedHeaders& h) {
  h.ip_broken = true;
  if (!frame.has(at, 20)) return;
  const std::uint8_t* ip = frame.data + at;
  const std::uint32_t header = (ip[0] & 15u) * 4, total = load_be16(ip + 2);
  if (ip[0] >> 4 != 4 || header < 20 || !frame.has(at, header) || total < header || total > frame.length - at) return;
  h.ip_broken = false;
  h.ip_version = 4;
  h.l3_offset = static_cast<std::uint8_t>(at);
  h.dscp = static_cast<std::uint8_t>(ip[1] >> 2);
  h.ecn = ip[1] & 3;
  h.protocol = ip[9];
  h.fragment = (load_be16(ip + 6) & 0x3fff) != 0;
  if (!h.fragment) parse_transport(frame, at + header, at + total, h);
}

void parse_ipv6(const Bytes& frame, std::uint32_t at, ParsedHeaders& h) {
  h.ip_broken = true;
  if (!frame.has(at, 40)) return;
  const std::uint8_t* ip = frame.data + at;
  const std::uint32_t end = at + 40 + load_be16(ip + 4);
  if (ip[0] >> 4 != 6 || end > frame.length) return;
  h.ip_broken = false;
  h.ip_version = 6;
  h.l3_offset = static_cast<std::uint8_t>(at);
  const auto traffic_class = static_cast<std::uint8_t>(load_be16(ip) >> 4);
  h.dscp = static_cast<std::uint8_t>(traffic_class >> 2);
  h.ecn = traffic_class & 3;
  h.protocol = ip[6];

  std::uint32_t next = at + 40;
  for (std::uint32_t i = 0; i <= max_ipv6_extension_headers; ++i) {
    constexpr std::uint8_t hop_by_hop = 0, routing = 43, fragment = 44, authentication = 51, destination = 60;
    const bool known = h.protocol == hop_by_hop || h.protocol == routing || h.protocol == fragment ||
                       h.protocol == authentication || h.protocol == destination;
    if (!known) return parse_transport(frame, next, end, h);
    if (i == max_ipv6_extension_headers || end - next < 8 || !frame.has(next, 8)) return;
    const std::uint8_t* extension = frame.data + next;
    if (h.protocol == fragment) {
      h.fragment = (load_be16(extension + 2) & 0xfff9) != 0;  // an "atomic" fragment is whole (RFC 6946)
      if (h.fragment) {
        h.protocol = extension[0];
        return;
      }
    }
    const std::uint32_t size = h.protocol == fragment         ? 8
                               : h.protocol == authentication ? (extension[1] + 2u) * 4
                                                              : (extension[1] + 1u) * 8;
    if (size > end - next) return;
    h.protocol = extension[0];
    next += size;
  }
}

}  // namespace

ParsedHeaders parse_any(const std::uint8_t* bytes, std::uint32_t available, std::uint32_t length) {
  ParsedHeaders h;
  const Bytes frame{bytes, available, length};
  if (!frame.has(0, ethernet_header_bytes)) return h;
  std::uint32_t at = 12;
  std::uint16_t type = load_be16(bytes + at);
  while (type == ether_type::vlan || type == ether_type::provider_vlan || type == ether_type::qinq_old) {
    if (!frame.has(at + 2, 4)) return h;  // a tag cut short: forwarded like any unknown type
    if (h.tags == max_vlan_tags) return h;
    const std::uint16_t tag = load_be16(bytes + at + 2);
    if (h.tags++ == 0) {
      h.pcp = static_cast<std::uint8_t>(tag >> 13);
      h.vlan = tag & 0xfff;
    }
    at += 4;
    type = load_be16(bytes + at);
  }
  at += 2;
  if (type < 0x0600) {  // 802.3: a length, then LLC; SNAP with a zero OUI carries an EtherType (RFC 1042)
    constexpr std::uint64_t snap = 0xaaaa'0300'0000;
    if (!frame.has(at, 8) || load_mac(bytes + at) != snap) return h;
    type = load_be16(bytes + at + 6);
    at += 8;
    if (type < 0x0600) return h;
  }
  h.ether_type = type;
  h.mac_control = type == ether_type::mac_control && h.tags == 0;
  if (type == ether_type::ipv4)
    parse_ipv4(frame, at, h);
  else if (type == ether_type::ipv6)
    parse_ipv6(frame, at, h);
  return h;
}

}  // namespace weft
