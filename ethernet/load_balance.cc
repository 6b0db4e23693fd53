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
