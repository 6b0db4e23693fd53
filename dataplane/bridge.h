// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A leaf that bridges (802.1D/Q, one MAC table with VLAN-wise learning; every port is a member of every VLAN, tags are
// kept). It learns from frames that enter the fabric and from frames that leave it by its own ports. Unknown, group and
// broadcast destinations are flooded. Known hosts are never learnt nor moved.
#include <vector>

#include "dataplane/forward.h"
#include "dataplane/mac_table.h"
#include "dataplane/parse.h"

namespace weft {

class Bridge {
 public:
  Bridge(const Topology& topology, const ForwardingConfig& forwarding, std::span<const KnownHost> known);

  /// Of a frame with a whole Ethernet header, parsed.
  Verdict ingress(Frame* frame, const ParsedHeaders& headers, TimePs now);
  void egress(const Frame* frame, TimePs now) {
    // The frame says whether its source is the one that its port had a frame ago, so its bytes are seldom looked at.
    LastSource& last = leaving_[frame->in_port];
    if (frame->source != last.number || last.number == 0 || !still(last, frame->in_port, now))
      learn_leaving(frame, now);
  }

  /// `mac` is behind `port`, in `vlan`: learnt unless it is known, a group address or zero.
  void learn(std::uint64_t mac, std::uint16_t vlan, std::uint32_t port, TimePs now) {
    // A port's source is mostly the one that it was a frame ago.
    learn(entering_[port], mac, vlan, port, now);
  }
  [[nodiscard]] std::uint32_t find(std::uint64_t mac, std::uint16_t vlan, TimePs now) const {
    const std::uint32_t port = known_.find(mac);
    return port != no_port || !any_learnt_ ? port : learnt_.find(LearntHosts::key_of(vlan, mac), now);
  }
  [[nodiscard]] const LearntHosts& learnt() const { return learnt_; }

 private:
  struct LastSource {
    std::uint64_t key = 0;
    std::uint32_t slot = LearntHosts::no_slot;  // no_slot: an address that is not to be learnt
    std::uint32_t number = 0;                   // Frame::source; 0: none yet
  };
  /// True if the address is as good as learnt again.
  bool still(const LastSource& last, std::uint32_t port, TimePs now) {
    return last.slot == LearntHosts::no_slot || learnt_.touch(last.slot, last.key, port, now);
  }
  void learn(LastSource& last, std::uint64_t mac, std::uint16_t vlan, std::uint32_t port, TimePs now) {
    const std::uint64_t key = LearntHosts::key_of(vlan, mac);
    if (last.key != key || !still(last, port, now)) learn_new(last, key, mac, port, now);
  }
  void learn_leaving(const Frame* frame, TimePs now);
  void learn_new(LastSource& last, std::uint64_t key, std::uint64_t mac, std::uint32_t port, TimePs now);

  KnownHosts known_;
  LearntHosts learnt_;
  bool any_learnt_ = false;
  std::vector<LastSource> entering_, leaving_;  // [host port that the frame entered by]
};

}  // namespace weft
