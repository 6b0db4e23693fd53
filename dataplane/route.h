// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A leaf that routes: longest prefix match, TTL or hop limit less one, MAC addresses rewritten. What it does with a
// frame:
//   - link-local and MAC control frames are filtered, as by a bridge;
//   - ARP and neighbour discovery are bridged (learnt from, flooded or sent to the host asked), since hosts need
//   answers from each
//     other; the router itself answers neither: hosts are to be told its address. ARP to the router's own address is
//     `not_routable`;
//   - everything else must be IP and addressed to the router's MAC, or is `not_routable` (a group address is not the
//   router's);
//   - a broken header or a wrong IPv4 checksum is `malformed`; TTL 0 or 1 is `ttl_expired` (no ICMP is made);
//   - no prefix, a group address, or a port whose host's address is neither configured nor known: `no_route`.
// A host may be routed back to its own port. VLAN tags are kept. RoCEv2's ICRC stays right: it leaves out MAC, TTL and
// checksum. Modelled hosts (known by the address of their port, see addresses.h) have a host route each unless the
// config routes that prefix.
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/bridge.h"
#include "dataplane/prefix_table.h"

namespace weft {

class Router {
 public:
  /// Throws std::invalid_argument naming the route that can't be used.
  Router(const Topology& topology, const ForwardingConfig& forwarding, std::span<const KnownHost> known);

  Verdict ingress(Frame* frame, const ParsedHeaders& headers, TimePs now);
  void egress(const Frame* frame, TimePs now);

 private:
  struct NextHop {
    std::uint64_t mac = 0;  // 0: unknown
    std::uint32_t port = 0;
  };

  Bridge neighbours_;  // of ARP and neighbour discovery only
  std::uint64_t router_mac_;
  PrefixTable<Ipv4Address> ipv4_;
  PrefixTable<Ipv6Address> ipv6_;
  std::vector<NextHop> next_hops_;
};

}  // namespace weft
