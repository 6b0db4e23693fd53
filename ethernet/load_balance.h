// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Which of several links a frame takes: ECMP by hash, flowlets, adaptive, or spraying frame by frame. One object
// chooses among the members of one group (a leaf's uplinks, a spine's parallel links to one leaf).
//
// The hash is a CRC-32 over the 5-tuple, and the RoCE destination queue pair if asked for, computed once where the
// frame enters the fabric. A CRC is linear: seeding it would only exchange links with one another, and tiers would stay
// polarised. So each switch mixes the CRC with its own seed by a multiplication before it takes the high bits.
#include <cstdint>
#include <vector>

#include "dataplane/frame.h"
#include "dataplane/rng.h"
#include "dataplane/time.h"
#include "ethernet/config.h"

namespace weft::ethernet {

/// CRC-32 of what the frame is hashed by: addresses, protocol, ports (and queue pair); MAC addresses and EtherType
/// where it is not IP. Frames of one flow have one key; fragments, which have no ports, too.
std::uint32_t flow_key(const Frame* frame, HashFields fields);

/// The key as one switch sees it: uniform in 32 bits.
inline std::uint32_t switch_hash(std::uint32_t key, std::uint64_t seed) {
  std::uint64_t mixed = (key ^ (seed & 0xffff'ffff)) * (seed | 1);
  mixed ^= mixed >> 32;
  return static_cast<std::uint32_t>((mixed * 0x9e37'79b9'7f4a'7c15) >> 32);
}
/// Which of `members` a hash means, without a division.
inline std::uint32_t bucket(std::uint32_t hash, std::uint32_t members) {
  return static_cast<std::uint32_t>((std::uint64_t{hash} * members) >> 32);
}

class LoadBalancer {
 public:
  /// `links` of which groups are made; `rates` of each; `seed` of this switch's hash.
  LoadBalancer(const EthernetConfig& config, const std::vector<Rate>& rates, std::uint64_t hash_seed, Rng chance);

  /// A group's members: numbers of links, in order. `resilient_slots` only where hashing is resilient.
  struct Group {
    std::vector<std::uint16_t> members;
    std::vector<std::uint16_t> slots;  // resilient hashing: link by bucket
    std::uint32_t next = 0;            // round robin
  };
  /// Members of a group that has none yet, or what a failure or repair makes of them.
  void set_members(Group& group, std::vector<std::uint16_t> members) const;

  /// A link for the frame; group.members is not empty. queued(link): bytes that wait for it.
  template <typename Queued>
  std::uint32_t choose(Group& group, std::uint32_t key, std::uint32_t bytes, TimePs now, Queued&& queued) {
    const auto count = static_cast<std::uint32_t>(group.members.size());
    switch (config_.load_balance) {
      case LoadBalance::ecmp:
        return by_hash(group, switch_hash(key, hash_seed_));
      case LoadBalance::spray:
        switch (config_.spray) {
          case Spray::random:
            return group.members[bucket(chance_.next32(), count)];
          case Spray::round_robin:
            return group.members[turn(group, count)];
          case Spray::shortest_queue:
            break;
        }
        return least(group, turn(group, count), [&](std::uint32_t link) { return queued(link) * cost_[link]; });
      case LoadBalance::flowlet:
      case LoadBalance::adaptive:
        break;
    }
    Flowlet& flowlet = flowlets_[switch_hash(key, hash_seed_) & flowlet_mask_];
    if (flowlet.link == no_link || now > flowlet.last + config_.flowlet_idle || !is_member(group, flowlet.link)) {
      if (config_.load_balance == LoadBalance::flowlet)
        flowlet.link = group.members[bucket(chance_.next32(), count)];
      else
        flowlet.link =
            static_cast<std::uint16_t>(least(group, bucket(chance_.next32(), count), [&](std::uint32_t link) {
              return (queued(link) + load(link, now)) * cost_[link];
            }));
      ++flowlets_begun;
    }
    flowlet.last = now;
    if (config_.load_balance == LoadBalance::adaptive) {
      load(flowlet.link, now);
      loads_[flowlet.link].bytes += bytes;
    }
    return flowlet.link;
  }

  std::uint64_t flowlets_begun = 0;

 private:
  static constexpr std::uint16_t no_link = 0xffff;
  struct Flowlet {
    TimePs last = 0;
    std::uint16_t link = no_link;
  };
  struct Load {  // bytes sent of late: halved every load_interval
    std::uint64_t bytes = 0;
    TimePs halved = 0;
  };
  std::uint32_t by_hash(const Group& group, std::uint32_t hash) const {
    if (!group.slots.empty()) return group.slots[bucket(hash, static_cast<std::uint32_t>(group.slots.size()))];
    return group.members[bucket(hash, static_cast<std::uint32_t>(group.members.size()))];
  }
  static std::uint32_t turn(Group& group, std::uint32_t count) {
    if (group.next >= count) group.next = 0;
    return group.next++;
  }
  /// The member of least cost; the first from `start` on where several are alike.
  template <typename Cost>
  static std::uint32_t least(const Group& group, std::uint32_t start, Cost&& cost) {
    const std::size_t count = group.members.size();
    std::uint32_t best = group.members[start];
    std::uint64_t best_cost = cost(best);
    for (std::size_t n = 1, i = start; n < count; ++n) {
      i = i + 1 == count ? 0 : i + 1;
      const std::uint64_t c = cost(group.members[i]);
      if (c < best_cost) best = group.members[i], best_cost = c;
    }
    return best;
  }
  static bool is_member(const Group& group, std::uint32_t link);
  std::uint64_t load(std::uint32_t link, TimePs now) {
    Load& load = loads_[link];
    if (now - load.halved >= config_.load_interval) [[unlikely]] {
      const TimePs times = (now - load.halved) / config_.load_interval;
      load.bytes = times > 63 ? 0 : load.bytes >> times;
      load.halved += times * config_.load_interval;
    }
    return load.bytes;
  }

  EthernetConfig config_;
  std::uint64_t hash_seed_;
  Rng chance_;
  std::uint64_t flowlet_mask_;
  std::vector<std::uint64_t> cost_;  // [link] time of a byte, in a unit that makes the fastest 1 to 16
  std::vector<Flowlet> flowlets_;
  std::vector<Load> loads_;  // [link]
};

}  // namespace weft::ethernet
