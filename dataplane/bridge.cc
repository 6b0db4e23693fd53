// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/bridge.h"

namespace weft {

Bridge::Bridge(const Topology& topology, const ForwardingConfig& forwarding, std::span<const KnownHost> known)
    : known_(forwarding.learn_only ? std::span<const KnownHost>{} : known),
      learnt_(forwarding.ageing),
      entering_(topology.host_ports()),
      leaving_(topology.host_ports()) {}

void Bridge::learn_new(LastSource& last, std::uint64_t key, std::uint64_t mac, std::uint32_t port, TimePs now) {
  const std::uint32_t number = last.number + 1 == 0 ? 1 : last.number + 1;
  if (is_group(mac) || mac == 0 || known_.find(mac) != no_port) {
    last = {key, LearntHosts::no_slot, number};
    return;
  }
  const std::uint32_t slot = learnt_.learn(key, port, now);
  any_learnt_ = true;
  // Where the table is full, ask again with the next frame.
  last = {slot == LearntHosts::no_slot ? 0 : key, slot, number};
}

Verdict Bridge::ingress(Frame* frame, const ParsedHeaders& headers, TimePs now) {
  using Kind = Verdict::Kind;
  const std::uint8_t* bytes = bytes_of(frame);
  if (headers.mac_control) [[unlikely]]
    return {.kind = Kind::filter, .filter = FilterReason::mac_control};
  learn(load_mac(bytes + 6), headers.vlan, frame->in_port, now);
  frame->source = entering_[frame->in_port].number;
  const std::uint64_t destination = load_mac(bytes);
  if (is_group(destination)) [[unlikely]] {
    if (is_link_local(destination)) return {.kind = Kind::filter, .filter = FilterReason::link_local};
    return {.kind = Kind::flood};
  }
  const std::uint32_t port = find(destination, headers.vlan, now);
  if (port == no_port) [[unlikely]]
    return {.kind = Kind::flood};
  if (port == frame->in_port) [[unlikely]]
    return {.kind = Kind::filter, .filter = FilterReason::same_port};
  return {.kind = Kind::unicast, .port = port};
}

void Bridge::learn_leaving(const Frame* frame, TimePs now) {
  // The outer tag is all that learning needs; the frame was parsed when it entered.
  const std::uint8_t* bytes = bytes_of(frame);
  const std::uint16_t type = load_be16(bytes + 12);
  std::uint16_t vlan = 0;
  if ((type == ether_type::vlan || type == ether_type::provider_vlan || type == ether_type::qinq_old) &&
      mbuf_of(frame)->data_len >= 18)
    vlan = load_be16(bytes + 14) & 0xfff;
  LastSource& last = leaving_[frame->in_port];
  learn(last, load_mac(bytes + 6), vlan, frame->in_port, now);
  last.number = last.key == 0 ? 0 : frame->source;
}

}  // namespace weft
