// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What a switch's parser reads from an Ethernet frame: tags, EtherType, IP, ports, RoCEv2 queue pair. It never
// reads past the frame and never refuses one: what it can't read it leaves at zero, and the forwarder decides.
//
// Lengths are as captures give them, without FCS. Frames of 14 to 59 bytes pass, since captures often hold frames
// from before padding (42-byte ARP requests); a wire would carry them padded to 60 bytes.
//
// A bridge forwards by MAC address whatever is above it, so only a frame without a whole Ethernet header is of no
// use to it (`runt`). An IP header whose version, header length or total length contradicts the frame is marked
// `ip_broken` and otherwise treated as not IP: a bridge forwards it untouched, a router drops it as `malformed`.
#include <cstdint>
#include <span>

#include "dataplane/bytes.h"

namespace weft {

inline constexpr std::uint32_t ethernet_header_bytes = 14;
inline constexpr std::uint32_t max_vlan_tags = 8;               // deeper stacks are not IP to us
inline constexpr std::uint32_t max_ipv6_extension_headers = 8;  // longer chains have no ports to us
inline constexpr std::uint16_t rocev2_udp_port = 4791;          // of the destination; the source port is entropy

namespace ether_type {
inline constexpr std::uint16_t ipv4 = 0x0800, arp = 0x0806, vlan = 0x8100, qinq_old = 0x9100, ipv6 = 0x86dd,
                               mac_control = 0x8808, provider_vlan = 0x88a8, rocev1 = 0x8915;
}
namespace ip_protocol {
inline constexpr std::uint8_t tcp = 6, udp = 17, icmpv6 = 58;
}

struct ParsedHeaders {
  std::uint16_t ether_type = 0;  // behind all tags and a SNAP header; 0: an 802.3 frame with a length, or cut short
  std::uint16_t vlan = 0;        // VLAN id of the outer tag; 0: untagged or priority-tagged
  std::uint8_t tags = 0;         // VLAN tags found
  std::uint8_t pcp = 0;          // of the outer tag
  std::uint8_t ip_version = 0;   // 4, 6; 0: not IP, or broken
  std::uint8_t l3_offset = 0;    // of the IP header from the frame's start; 0: not IP, or broken
  std::uint8_t dscp = 0, ecn = 0;
  std::uint8_t protocol = 0;     // of IP, behind IPv6 extension headers; meaningless where ip_version is 0
  bool ip_broken : 1 = false;    // an IP EtherType, but lengths or version contradict the frame
  bool fragment : 1 = false;     // of any kind, first included: it has no ports, so that all fragments hash alike
  bool has_ports : 1 = false;    // UDP or TCP
  bool rocev2 : 1 = false;       // UDP to port 4791
  bool has_qp : 1 = false;       // RoCEv2 with a whole base transport header
  bool mac_control : 1 = false;  // untagged 0x8808: PAUSE, PFC; a tagged one is no MAC control frame (802.3 clause 31)
  bool neighbour_discovery : 1 = false;  // ICMPv6 133 to 137
  std::uint16_t l4_offset = 0;           // 0: unknown
  std::uint16_t source_port = 0, destination_port = 0;
  std::uint32_t destination_qp = 0;
};

/// The general case, behind parse().
ParsedHeaders parse_any(const std::uint8_t* bytes, std::uint32_t available, std::uint32_t length);

/// `bytes` of a frame of `length` bytes, the first `available` of which may be read (the first segment).
inline ParsedHeaders parse(const std::uint8_t* bytes, std::uint32_t available, std::uint32_t length) {
  // Untagged IPv4 without options, the bulk of all traffic, inline.
  constexpr std::uint32_t l3 = ethernet_header_bytes, l4 = l3 + 20, bth = l4 + 8;
  if (available < bth || load_be16(bytes + 12) != ether_type::ipv4 || bytes[l3] != 0x45)
    return parse_any(bytes, available, length);
  const std::uint32_t total = load_be16(bytes + l3 + 2);
  if (total < 20 || total > length - l3) [[unlikely]]
    return parse_any(bytes, available, length);
  ParsedHeaders h;
  h.ether_type = ether_type::ipv4;
  h.ip_version = 4;
  h.l3_offset = l3;
  h.dscp = static_cast<std::uint8_t>(bytes[l3 + 1] >> 2);
  h.ecn = bytes[l3 + 1] & 3;
  h.protocol = bytes[l3 + 9];
  h.fragment = (load_be16(bytes + l3 + 6) & 0x3fff) != 0;
  if (h.fragment) [[unlikely]]
    return h;
  h.l4_offset = l4;
  if ((h.protocol != ip_protocol::udp && h.protocol != ip_protocol::tcp) || total < 28) return h;
  h.has_ports = true;
  h.source_port = load_be16(bytes + l4);
  h.destination_port = load_be16(bytes + l4 + 2);
  h.rocev2 = h.protocol == ip_protocol::udp && h.destination_port == rocev2_udp_port;
  if (h.rocev2 && total >= 40 && available >= bth + 12) {
    h.has_qp = true;
    h.destination_qp = load_be32(bytes + bth + 4) & 0xff'ffff;
  }
  return h;
}

inline ParsedHeaders parse(std::span<const std::uint8_t> frame) {
  const auto length = static_cast<std::uint32_t>(frame.size());
  return parse(frame.data(), length, length);
}

/// 01:80:c2:00:00:00 to 0f: never forwarded by a bridge (802.1Q table 8-1).
constexpr bool is_link_local(std::uint64_t mac) { return (mac & ~std::uint64_t{0xf}) == 0x0180'c200'0000; }
/// Multicast or broadcast.
constexpr bool is_group(std::uint64_t mac) { return (mac & 0x0100'0000'0000) != 0; }

}  // namespace weft
