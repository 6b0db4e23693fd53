// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Memory management unit of a shared-buffer switch: who may hold how much of the one packet buffer.
//
//   buffer = guaranteed of each lossless (ingress port, class) and each lossy (egress port, class)
//          + headroom and one frame of each (ingress port, lossless class)
//          + the shared pool
//
// Lossless frames are counted where they came in. What a (port, class) holds beyond its guarantee is in the pool, up to
// alpha x what is free of the pool (Choudhury and Hahne's dynamic threshold). The frame that would exceed it is kept,
// and the far end told to stop; what still arrives is in headroom, counted from there. XON once the (port, class) is
// `xon_offset` below its threshold, or holds nothing beyond its guarantee. Lossy frames are counted in the egress queue
// that they wait in, limited by a threshold of the same kind, and dropped beyond. A frame leaves the accounts when its
// transmission starts.
//
// The frame that crosses may overshoot the pool (it is judged as a whole, as everything here): one frame of each (port,
// class) at most, since it pauses, and while the pool is full only a (port, class) with nothing in it resumes. That
// frame's place is set aside.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/check.h"
#include "dataplane/counters.h"
#include "dataplane/frame.h"
#include "dataplane/time.h"

namespace weft::ethernet {

struct MmuConfig {
  std::string name;  // of the switch, for messages
  std::uint64_t buffer_bytes = 0;
  double alpha = 0, alpha_lossy = 0;
  std::uint64_t guaranteed_bytes = 0, xon_offset_bytes = 0;
  std::uint32_t longest_frame_bytes = 0;
  std::array<bool, traffic_classes> lossless{};
  std::vector<std::uint64_t> headroom_bytes;  // [port], of each lossless class
  std::vector<TimePs> refresh_after;          // [port]
};

class Mmu {
 public:
  enum class Admit : std::uint8_t { ok, send_xoff, headroom_exceeded, class_limit, buffer_full };

  /// Throws std::invalid_argument where headroom and guarantees are more than the buffer.
  explicit Mmu(const MmuConfig& config);

  [[nodiscard]] bool lossless(std::uint32_t traffic_class) const { return lossless_ >> traffic_class & 1; }

  /// A frame from port `in` for the queue of port `out`. `send_xoff`: kept, and the far end of `in` must be paused.
  Admit admit(std::uint32_t in, std::uint32_t out, std::uint32_t traffic_class, std::uint32_t bytes, TimePs now) {
    if (lossless(traffic_class)) [[likely]]
      return admit_lossless(group(in, traffic_class), in, bytes, now);
    Account& queue = accounts_[group(out, traffic_class)];
    const std::uint64_t held = queue.bytes + bytes, shared = beyond_guarantee(held),
                        grown = shared - beyond_guarantee(queue.bytes);
    if (grown > free_bytes()) return Admit::buffer_full;
    if (shared > threshold(alpha_lossy_q12_)) return Admit::class_limit;
    queue.bytes = held;
    take(bytes, grown);
    return Admit::ok;
  }
  /// It leaves. True: the far end of `in` may send `traffic_class` again.
  bool release(std::uint32_t in, std::uint32_t out, std::uint32_t traffic_class, std::uint32_t bytes) {
    const bool counted_in = lossless(traffic_class);
    Account& account = accounts_[group(counted_in ? in : out, traffic_class)];
    WEFT_CHECK(account.bytes >= bytes, "more bytes released than were admitted");
    const std::uint64_t before = shared_of(account);
    account.bytes -= bytes;
    used_ -= bytes;
    shared_used_ -= before - shared_of(account);
    return account.paused != 0 && try_resume(account);
  }

  /// When refresh() is to be called next; may be early, never late. `never` while nothing is paused.
  [[nodiscard]] TimePs next_refresh() const { return paused_accounts_ == 0 ? never : next_refresh_; }
  /// Calls send(port, classes) for each port whose pause is to be said again at `now`, in order of ports.
  template <typename Send>
  void refresh(TimePs now, Send&& send) {
    next_refresh_ = never;
    const auto ports = static_cast<std::uint32_t>(headroom_.size());
    for (std::uint32_t port = 0; port < ports; ++port) {
      std::uint8_t due = 0;
      for (std::uint32_t c = 0; c < traffic_classes; ++c) {
        Account& account = accounts_[group(port, c)];
        if (account.paused == 0) continue;
        if (account.said + refresh_after_[port] <= now) {
          due |= static_cast<std::uint8_t>(1u << c);
          account.said = now;
        }
        if (account.said + refresh_after_[port] < next_refresh_) next_refresh_ = account.said + refresh_after_[port];
      }
      if (due != 0) send(port, due);
    }
  }

  [[nodiscard]] std::uint64_t used_bytes() const { return used_; }
  [[nodiscard]] std::uint64_t used_max_bytes() const { return used_max_; }
  [[nodiscard]] std::uint64_t shared_bytes() const { return shared_size_; }
  [[nodiscard]] std::uint64_t headroom_max_bytes() const { return headroom_max_; }
  [[nodiscard]] std::uint64_t headroom_bytes(std::uint32_t port) const { return headroom_[port]; }
  [[nodiscard]] bool paused(std::uint32_t port, std::uint32_t traffic_class) const {
    return accounts_[group(port, traffic_class)].paused != 0;
  }
  [[nodiscard]] std::uint64_t held(std::uint32_t port, std::uint32_t traffic_class) const {
    return accounts_[group(port, traffic_class)].bytes;
  }
  [[nodiscard]] std::uint32_t paused_ports() const;

 private:
  struct Account {  // of an (ingress port, lossless class) or an (egress port, lossy class)
    std::uint64_t bytes = 0;
    std::uint64_t base = 0;  // held when the pause began: beyond is headroom
    TimePs said = 0;         // XOFF was sent last
    std::uint64_t paused = 0;
  };
  static std::uint32_t group(std::uint32_t port, std::uint32_t traffic_class) {
    return port * traffic_classes + traffic_class;
  }
  [[nodiscard]] std::uint64_t free_bytes() const {
    return shared_used_ < shared_size_ ? shared_size_ - shared_used_ : 0;
  }
  [[nodiscard]] std::uint64_t threshold(std::uint64_t alpha_q12) const { return (free_bytes() * alpha_q12) >> 12; }
  [[nodiscard]] std::uint64_t beyond_guarantee(std::uint64_t bytes) const {
    return bytes > guaranteed_ ? bytes - guaranteed_ : 0;
  }
  [[nodiscard]] std::uint64_t shared_of(const Account& a) const {
    return beyond_guarantee(a.paused != 0 && a.bytes > a.base ? a.base : a.bytes);
  }
  void take(std::uint64_t bytes, std::uint64_t grown) {
    used_ += bytes;
    shared_used_ += grown;
    if (used_ > used_max_) used_max_ = used_;
  }
  Admit admit_lossless(std::uint32_t index, std::uint32_t port, std::uint32_t bytes, TimePs now) {
    Account& account = accounts_[index];
    if (account.paused == 0) [[likely]] {
      const std::uint64_t held = account.bytes + bytes, shared = beyond_guarantee(held),
                          grown = shared - beyond_guarantee(account.bytes);
      const bool fits = shared <= threshold(alpha_q12_) && grown <= free_bytes();
      account.bytes = held;
      take(bytes, grown);
      if (fits) [[likely]]
        return Admit::ok;
      pause(account, port, now);
      return Admit::send_xoff;
    }
    return admit_paused(account, port, bytes);
  }
  void pause(Account& account, std::uint32_t port, TimePs now);
  Admit admit_paused(Account& account, std::uint32_t port, std::uint32_t bytes);
  bool try_resume(Account& account);

  std::uint64_t guaranteed_, xon_offset_, alpha_q12_, alpha_lossy_q12_;
  std::uint64_t buffer_size_, shared_size_ = 0, shared_used_ = 0, used_ = 0, used_max_ = 0, headroom_max_ = 0;
  std::uint32_t lossless_ = 0, paused_accounts_ = 0;
  TimePs next_refresh_ = never;
  std::vector<Account> accounts_;        // [port * classes + class]
  std::vector<std::uint64_t> headroom_;  // [port]
  std::vector<TimePs> refresh_after_;    // [port]
};

}  // namespace weft::ethernet
