// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/route.h"

#include <stdexcept>
#include <string>

#include "dataplane/addresses.h"
#include "dataplane/checksum.h"

namespace weft {
namespace {

Ipv6Address load_ipv6(const std::uint8_t* at) { return Ipv6Address{load_be64(at)} << 64 | load_be64(at + 8); }

constexpr Verdict dropped(DropReason reason) { return {.kind = Verdict::Kind::drop, .drop = reason}; }

bool is_neighbour_talk(const ParsedHeaders& h) { return h.ether_type == ether_type::arp || h.neighbour_discovery; }

}  // namespace

Router::Router(const Topology& topology, const ForwardingConfig& forwarding, std::span<const KnownHost> known)
    : neighbours_(topology, forwarding, known), router_mac_(to_number(parse_mac(forwarding.router_mac))) {
  if (is_group(router_mac_) || router_mac_ == 0)
    throw std::invalid_argument("forwarding.router_mac " + forwarding.router_mac + " is a group address or zero");
  std::vector<std::uint64_t> mac_of_port(topology.host_ports(), 0);
  if (!forwarding.learn_only)
    for (const KnownHost& host : known)
      if (host.port < mac_of_port.size() && mac_of_port[host.port] == 0) mac_of_port[host.port] = to_number(host.mac);

  std::vector<PrefixTable<Ipv4Address>::Prefix> four;
  std::vector<PrefixTable<Ipv6Address>::Prefix> six;
  for (const RouteEntry& route : forwarding.routes) {
    const ParsedPrefix prefix = parse_prefix(route.prefix);
    if (route.port >= topology.host_ports())
      throw std::invalid_argument("route " + route.prefix + ": there is no host port " + std::to_string(route.port));
    const std::uint64_t mac =
        route.next_hop_mac.empty() ? mac_of_port[route.port] : to_number(parse_mac(route.next_hop_mac));
    if (is_group(mac))
      throw std::invalid_argument("route " + route.prefix + ": next hop " + route.next_hop_mac + " is a group address");
    const auto entry = static_cast<std::uint32_t>(next_hops_.size());
    next_hops_.push_back({mac, route.port});
    const auto given_before = [&](const auto& table) {
      for (const auto& other : table)
        if (other.length == prefix.length && other.address == static_cast<decltype(other.address)>(prefix.address))
          throw std::invalid_argument("route " + route.prefix + " is given twice");
    };
    if (prefix.six) {
      given_before(six);
      six.push_back({prefix.address, prefix.length, entry});
    } else {
      given_before(four);
      four.push_back({static_cast<Ipv4Address>(prefix.address), prefix.length, entry});
    }
  }
  for (std::uint32_t port = 0; port < mac_of_port.size(); ++port) {
    if (mac_of_port[port] != host_mac(port)) continue;
    const auto entry = static_cast<std::uint32_t>(next_hops_.size());
    next_hops_.push_back({mac_of_port[port], port});
    four.push_back({host_ipv4(port), 32, entry});
    six.push_back({load_ipv6(host_ipv6(port).data()), 128, entry});
  }
  ipv4_.build(std::move(four));
  ipv6_.build(std::move(six));
}

Verdict Router::ingress(Frame* frame, const ParsedHeaders& headers, TimePs now) {
  std::uint8_t* bytes = bytes_of(frame);
  const std::uint64_t destination = load_mac(bytes);
  if (headers.mac_control || is_link_local(destination) || is_neighbour_talk(headers)) {
    if (destination == router_mac_) return dropped(DropReason::not_routable);
    return neighbours_.ingress(frame, headers, now);
  }
  if (destination != router_mac_) return dropped(DropReason::not_routable);
  if (headers.ip_broken) return dropped(DropReason::malformed);

  std::uint8_t* ip = bytes + headers.l3_offset;
  std::uint32_t entry;
  std::uint8_t* hops_left;
  if (headers.ip_version == 4) {
    if (ones_sum(ip, (ip[0] & 15u) * 4) != 0xffff) return dropped(DropReason::malformed);
    const std::uint32_t address = load_be32(ip + 16);
    entry = address >= 0xe000'0000 ? no_entry : ipv4_.find(address);
    hops_left = ip + 8;
  } else if (headers.ip_version == 6) {
    entry = ip[24] == 0xff ? no_entry : ipv6_.find(load_ipv6(ip + 24));
    hops_left = ip + 7;
  } else {
    return dropped(DropReason::not_routable);
  }
  if (*hops_left <= 1) return dropped(DropReason::ttl_expired);
  if (entry == no_entry || next_hops_[entry].mac == 0) return dropped(DropReason::no_route);

  if (headers.ip_version == 4) {
    const std::uint16_t before = load_be16(ip + 8);  // TTL and protocol
    store_be16(ip + 10, checksum_after(load_be16(ip + 10), before, static_cast<std::uint16_t>(before - 0x100)));
  }
  --*hops_left;
  const NextHop& hop = next_hops_[entry];
  store_mac(bytes, hop.mac);
  store_mac(bytes + 6, router_mac_);
  return {.kind = Verdict::Kind::unicast, .port = hop.port};
}

void Router::egress(const Frame* frame, TimePs now) {
  // Routed frames carry the router's own address; only ARP and neighbour discovery have anything to teach.
  const std::uint8_t* bytes = bytes_of(frame);
  if (load_mac(bytes + 6) != router_mac_) neighbours_.egress(frame, now);
}

}  // namespace weft
