// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Two tables of MAC addresses: of hosts known from the start, and learnt. Both are open addressing with linear
// probing at a load of at most one half, 16 bytes an entry, four to a cache line.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/forward.h"

namespace weft {

inline constexpr std::uint32_t no_port = ~std::uint32_t{0};

/// Addresses that never age, in any VLAN. Modelled hosts, whose address follows from the port, need no table at all.
class KnownHosts {
 public:
  /// Throws std::invalid_argument where one address is given to two ports, or is a group address or zero.
  explicit KnownHosts(std::span<const KnownHost> hosts);

  /// Port of `mac`, or no_port.
  [[nodiscard]] std::uint32_t find(std::uint64_t mac) const {
    const std::uint64_t offset = mac - first_;
    if (offset < in_order_) return static_cast<std::uint32_t>(offset);
    return slots_.empty() ? no_port : find_slot(mac);
  }

 private:
  struct Slot {
    std::uint64_t mac = 0;  // 0: free
    std::uint32_t port = no_port;
  };
  [[nodiscard]] std::uint32_t find_slot(std::uint64_t mac) const;

  std::uint64_t first_ = 0, in_order_ = 0;  // host_mac(0) .. are on ports 0 ..
  std::vector<Slot> slots_;
  unsigned shift_ = 0;
};

/// Addresses learnt from frames, keyed by (VLAN id, address). An address that was not seen for `ageing` is forgotten.
/// Nothing happens at that moment: an old entry is not found any more and its slot is used again, so idle time costs
/// nothing. When the table is full, new addresses are not learnt (and flooded to, as in hardware), and counted.
class LearntHosts {
 public:
  static constexpr std::uint32_t default_entries = 32'768;  // order of a data-centre leaf's host table

  explicit LearntHosts(TimePs ageing, std::uint32_t entries = default_entries);

  static std::uint64_t key_of(std::uint16_t vlan, std::uint64_t mac) { return used | std::uint64_t{vlan} << 48 | mac; }
  /// Port behind which `key` was last seen, or no_port.
  [[nodiscard]] std::uint32_t find(std::uint64_t key, TimePs now) const;
  /// `key` was seen behind `port`. Returns its slot, a hint for touch(), or no_slot when the table is full.
  std::uint32_t learn(std::uint64_t key, std::uint32_t port, TimePs now);
  /// The short way: true if `slot` still holds `key`, which is then as good as learnt again.
  bool touch(std::uint32_t slot, std::uint64_t key, std::uint32_t port, TimePs now) {
    Slot& s = slots_[slot];
    if (s.key != key || s.port() != port) return false;
    s.set(port, now);
    return true;
  }

  static constexpr std::uint32_t no_slot = ~std::uint32_t{0};
  [[nodiscard]] std::uint32_t used_slots() const { return used_slots_; }
  [[nodiscard]] std::uint64_t moves() const { return moves_; }            // stations seen behind another port
  [[nodiscard]] std::uint64_t not_learnt() const { return not_learnt_; }  // for want of room

 private:
  static constexpr std::uint64_t used = std::uint64_t{1} << 63;
  static constexpr unsigned tick_bits = 20, port_bits = 20;  // a tick is 2^20 ps, about 1 us

  struct Slot {
    std::uint64_t key;        // 0: free
    std::uint64_t seen_port;  // ticks << port_bits | port
    [[nodiscard]] std::uint32_t port() const { return seen_port & ((1u << port_bits) - 1); }
    [[nodiscard]] std::uint64_t tick() const { return seen_port >> port_bits; }
    void set(std::uint32_t p, TimePs now) { seen_port = ((now >> tick_bits) << port_bits) | p; }
  };
  static_assert(sizeof(Slot) == 16);
  struct Free {
    void operator()(Slot* slots) const { std::free(slots); }
  };

  [[nodiscard]] std::uint32_t home(std::uint64_t key) const {
    return static_cast<std::uint32_t>((key * 0x9e37'79b9'7f4a'7c15) >> shift_);
  }
  [[nodiscard]] bool expired(const Slot& slot, TimePs now) const {
    return (now >> tick_bits) > slot.tick() + ageing_ticks_;
  }
  void sweep(TimePs now);
  void erase(std::uint32_t slot);

  std::unique_ptr<Slot[], Free> slots_;  // from calloc: pages that no address needs stay unmapped
  std::uint64_t ageing_ticks_;
  std::uint32_t mask_, entries_, used_slots_ = 0;
  unsigned shift_;
  TimePs next_sweep_ = 0;
  std::uint64_t moves_ = 0, not_learnt_ = 0;
};

}  // namespace weft
