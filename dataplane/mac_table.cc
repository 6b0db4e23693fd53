// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/mac_table.h"

#include <algorithm>
#include <bit>
#include <new>
#include <stdexcept>

#include "dataplane/addresses.h"
#include "dataplane/parse.h"

namespace weft {
namespace {

constexpr std::uint64_t golden = 0x9e37'79b9'7f4a'7c15;

unsigned slot_bits(std::size_t entries) { return static_cast<unsigned>(std::bit_width(2 * entries)); }

}  // namespace

KnownHosts::KnownHosts(std::span<const KnownHost> hosts) {
  std::vector<KnownHost> others;
  first_ = first_host_mac;
  while (in_order_ < hosts.size() && hosts[in_order_].port == in_order_ &&
         to_number(hosts[in_order_].mac) == host_mac(static_cast<std::uint32_t>(in_order_)))
    ++in_order_;
  if (in_order_ == hosts.size() && in_order_ > 0) return;
  in_order_ = 0;
  const unsigned bits = slot_bits(hosts.size());
  shift_ = 64 - bits;
  if (!hosts.empty()) slots_.resize(std::size_t{1} << bits);
  for (const KnownHost& host : hosts) {
    const std::uint64_t mac = to_number(host.mac);
    if (mac == 0 || is_group(mac))
      throw std::invalid_argument(to_string(host.mac) + " cannot be a host's address; it is a group address or zero");
    std::size_t i = (mac * golden) >> shift_;
    while (slots_[i].mac != 0 && slots_[i].mac != mac) i = (i + 1) & (slots_.size() - 1);
    if (slots_[i].mac == mac && slots_[i].port != host.port)
      throw std::invalid_argument(to_string(host.mac) + " is given to two ports, " + std::to_string(slots_[i].port) +
                                  " and " + std::to_string(host.port));
    slots_[i] = {mac, host.port};
  }
}

std::uint32_t KnownHosts::find_slot(std::uint64_t mac) const {
  if (mac == 0) return no_port;
  for (std::size_t i = (mac * golden) >> shift_;; i = (i + 1) & (slots_.size() - 1)) {
    if (slots_[i].mac == mac) return slots_[i].port;
    if (slots_[i].mac == 0) return no_port;
  }
}

LearntHosts::LearntHosts(TimePs ageing, std::uint32_t entries)
    : ageing_ticks_(ageing >> tick_bits), entries_(std::max(entries, 1u)) {
  const unsigned bits = slot_bits(entries_);
  shift_ = 64 - bits;
  mask_ = (1u << bits) - 1;
  slots_.reset(static_cast<Slot*>(std::calloc(std::size_t{mask_} + 1, sizeof(Slot))));
  if (slots_ == nullptr) throw std::bad_alloc();
}

std::uint32_t LearntHosts::find(std::uint64_t key, TimePs now) const {
  for (std::uint32_t i = home(key);; i = (i + 1) & mask_) {
    const Slot& slot = slots_[i];
    if (slot.key == key) return expired(slot, now) ? no_port : slot.port();
    if (slot.key == 0) return no_port;
  }
}

std::uint32_t LearntHosts::learn(std::uint64_t key, std::uint32_t port, TimePs now) {
  for (int attempt = 0;; ++attempt) {
    std::uint32_t reusable = no_slot;
    std::uint32_t i = home(key);
    for (; slots_[i].key != 0 && slots_[i].key != key; i = (i + 1) & mask_)
      if (reusable == no_slot && expired(slots_[i], now)) reusable = i;
    if (slots_[i].key == key) {
      moves_ += slots_[i].port() != port && !expired(slots_[i], now);
      slots_[i].set(port, now);
      return i;
    }
    if (reusable != no_slot) {
      i = reusable;
    } else if (used_slots_ < entries_) {
      ++used_slots_;
    } else if (attempt == 0 && now >= next_sweep_) {
      sweep(now);
      continue;
    } else {
      ++not_learnt_;
      return no_slot;
    }
    slots_[i].key = key;
    slots_[i].set(port, now);
    return i;
  }
}

/// A full table is searched for old entries, at most eight times in an ageing time.
void LearntHosts::sweep(TimePs now) {
  next_sweep_ = now + ((ageing_ticks_ << tick_bits) >> 3) + 1;
  for (std::uint32_t i = 0; i <= mask_; ++i)
    while (slots_[i].key != 0 && expired(slots_[i], now)) erase(i);  // may move a later entry here
}

/// Closes the gap behind an erased slot, so that probing needs no tombstones.
void LearntHosts::erase(std::uint32_t slot) {
  --used_slots_;
  std::uint32_t hole = slot;
  for (std::uint32_t i = (hole + 1) & mask_; slots_[i].key != 0; i = (i + 1) & mask_) {
    const std::uint32_t distance_home = (i - home(slots_[i].key)) & mask_;
    if (distance_home >= ((i - hole) & mask_)) {
      slots_[hole] = slots_[i];
      hole = i;
    }
  }
  slots_[hole] = {};
}

}  // namespace weft
