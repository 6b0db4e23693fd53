// SPDX-License-Identifier: BSD-3-Clause
#include "ethernet/load_balance.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "dataplane/bytes.h"
#include "dataplane/crc32.h"
#include "dataplane/parse.h"

#include <rte_mbuf.h>

namespace weft::ethernet {

std::uint32_t flow_key(const Frame* frame, HashFields fields) {
  const std::uint8_t* bytes = bytes_of(frame);
  const std::uint32_t available = std::min<std::uint32_t>(rte_pktmbuf_data_len(mbuf_of(frame)), frame->length);
  // Nearly all of a RoCE fabric's traffic, which the forwarder has just parsed and found sound: UDP over IPv4 without
  // options, and a base transport header's length behind it.
  constexpr std::uint32_t l3 = ethernet_header_bytes, l4 = l3 + 20, bth = l4 + 8;
  if (frame->ip_version == 4 && frame->l3_offset == l3 && bytes[l3] == 0x45 && bytes[l3 + 9] == ip_protocol::udp &&
      available >= bth + 12 && load_be16(bytes + l3 + 2) >= 40 && (load_be16(bytes + l3 + 6) & 0x3fff) == 0)
      [[likely]] {
    std::uint32_t state = crc32::add_word(crc32::add(crc32::start, bytes + l3 + 12, 8), ip_protocol::udp);
    state = crc32::add_word(state, load_be32(bytes + l4));  // source port << 16 | destination port
    if (fields == HashFields::five_tuple_qp && load_be16(bytes + l4 + 2) == rocev2_udp_port)
      state = crc32::add_word(state, load_be32(bytes + bth + 4) & 0xff'ffff);
    return ~state;
  }
  const ParsedHeaders headers = parse(bytes, available, frame->length);
  std::uint32_t state = crc32::start;
  if (headers.ip_version == 4) {
    state = crc32::add(state, bytes + headers.l3_offset + 12, 8);
  } else if (headers.ip_version == 6) {
    state = crc32::add(state, bytes + headers.l3_offset + 8, 32);
  } else {
    return ~crc32::add(state, bytes, std::min<std::uint32_t>(available, 14));
  }
  state = crc32::add_word(state, headers.protocol);
  if (headers.has_ports)
    state = crc32::add_word(state, std::uint32_t{headers.source_port} << 16 | headers.destination_port);
  if (fields == HashFields::five_tuple_qp && headers.has_qp) state = crc32::add_word(state, headers.destination_qp);
  return ~state;
}

LoadBalancer::LoadBalancer(const EthernetConfig& config, const std::vector<Rate>& rates, std::uint64_t hash_seed,
                           Rng chance)
    : config_(config),
      hash_seed_(hash_seed),
      chance_(chance),
      flowlet_mask_(std::bit_ceil(std::max<std::uint64_t>(config.flowlet_entries, 1)) - 1),
      loads_(rates.size()) {
  std::uint64_t fastest = 1;
  for (const Rate rate : rates) fastest = std::max(fastest, rate.bits_per_s);
  for (const Rate rate : rates) cost_.push_back(16 * fastest / std::max<std::uint64_t>(rate.bits_per_s, 1));
  if (config.load_balance == LoadBalance::flowlet || config.load_balance == LoadBalance::adaptive)
    flowlets_.resize(flowlet_mask_ + 1);
}

void LoadBalancer::set_members(Group& group, std::vector<std::uint16_t> members) const {
  if (config_.hash.resilient && !members.empty()) {
    constexpr std::size_t slots_a_member = 64;  // enough that buckets stay even to 1 in 64 when members come and go
    if (group.slots.empty()) {
      for (std::size_t i = 0; i < slots_a_member * members.size(); ++i)
        group.slots.push_back(members[i % members.size()]);
    } else {
      // Slots of those that left go round the others; one that comes back takes its share from all alike.
      std::size_t next = 0;
      for (std::uint16_t& slot : group.slots)
        if (std::find(members.begin(), members.end(), slot) == members.end()) slot = members[next++ % members.size()];
      for (const std::uint16_t member : members) {
        if (std::find(group.slots.begin(), group.slots.end(), member) != group.slots.end()) continue;
        for (std::size_t i = next++ % members.size(); i < group.slots.size(); i += members.size())
          group.slots[i] = member;
      }
    }
  }
  group.members = std::move(members);
}

bool LoadBalancer::is_member(const Group& group, std::uint32_t link) {
  return std::binary_search(group.members.begin(), group.members.end(), static_cast<std::uint16_t>(link));
}

}  // namespace weft::ethernet
