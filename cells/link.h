// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// One direction of a fabric link. The sending end is a CellTransmitter (a queue and a serialiser), the receiving end a
// CellReceiver (arrivals of a window, and what the link did to them on the way). Data and control cells have a ring
// each: a ring is in arrival order only if one serialiser fills it and nothing in it overtakes.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "cells/cell.h"
#include "dataplane/arrival_order.h"
#include "dataplane/capture_buffer.h"
#include "dataplane/link_fate.h"
#include "dataplane/link_ring.h"
#include "dataplane/time.h"

namespace weft::cells {

struct CellLink {
  std::string name;  // "leaf0>spine1"
  LinkRing<Cell> data;
  LinkRing<ControlCell> control;
};

struct TransmitterConfig {
  Rate rate;
  TimePs delay = 0;
  std::uint32_t header_bytes = 16, control_bytes = 32;
  std::uint64_t mark_bytes = 0;   // a queue longer than this marks what joins it
  TimePs keepalive_interval = 0;  // 0: none
  std::uint32_t keepalive_bytes = 0;
};

struct TransmitterCounters {
  std::uint64_t cells = 0, payload_bytes = 0, wire_bytes = 0;  // wire: everything, keep-alives included
  std::uint64_t control_cells = 0, control_bytes = 0;          // keep-alives are in the bytes, not in the cells
  std::uint64_t marked = 0;
  TimePs wait_max = 0;  // longest wait of a cell in the queue
  TimePs held = 0;      // time held back by the far end
};

/// A hold-back ends by itself after this time, as a pause does, so that the loss of its end delays and never stops a
/// link for good. The spine says it again at half of it.
inline constexpr TimePs hold_time = 10_us;

/// Sending end. Strict priority for control cells, never preempting. It decides lazily: an item is committed only when
/// everything that could go before it is known, that is when the node's time has passed its start. So a whole window's
/// traffic is committed in one sweep, for one event a hop, and the result is exactly that of a serialiser that decides
/// one item at a time.
class CellTransmitter {
 public:
  CellTransmitter(const TransmitterConfig& config, CellLink* link)
      : config_(config),
        link_(link),
        clock_(config.rate),
        mark_wait_(clock_.time_of(config.mark_bytes)),
        next_keepalive_(config.keepalive_interval == 0 ? never : 0) {}

  /// A place at the end of the queue, to be filled in by the caller: all of the cell, `at` being the time from which it
  /// is ready. Ready times never decrease.
  Cell& append() { return link_->data.append(); }
  void send_control(const ControlCell& cell, TimePs ready) {
    ControlCell& queued = link_->control.append();
    queued = cell;
    queued.at = ready;
  }

  /// Puts on the wire all that starts before `limit`. on_data(cell, end) and on_control(cell, end) are told of each,
  /// and when its last bit leaves; lost cells are not told of. A cell that has waited longer than the marking threshold
  /// takes to drain is marked.
  template <typename OnData, typename OnControl>
  void drain(TimePs limit, OnData&& on_data, OnControl&& on_control) {
    TimePs control_ready = link_->control.queued() != 0 ? link_->control.front().at : never;
    for (;;) {
      // Data until a control cell is ready first, or nothing is left that starts in time; then a control cell, if one
      // does.
      {
        const TimePs data_from = free_at_ > held_until_ ? free_at_ : held_until_;
        TimePs free_at = data_from, wait_max = counters.wait_max;
        std::uint64_t payload_sent = 0, cells_sent = 0, marked = 0;
        // Cells that start before this have nothing in their way.
        const TimePs undisturbed = std::min({limit, control_ready, next_keepalive_});
        const TimePs mark_wait = mark_wait_, delay = config_.delay;
        const std::uint32_t header = config_.header_bytes;
        WireClock clock = clock_;
        link_->data.commit_while([&](Cell& cell) {
          const TimePs ready = cell.at;
          TimePs start = ready > free_at ? ready : free_at;
          if (start >= undisturbed) [[unlikely]] {
            if (control_ready <= start || start >= limit) return false;
            if (start >= next_keepalive_) {
              clock_ = clock;
              free_at = std::max(free_at, send_keepalives(start, free_at == data_from ? free_at_ : free_at));
              clock = clock_;
              start = ready > free_at ? ready : free_at;
              if (control_ready <= start || start >= limit) return false;
            }
          }
          if ((cell.flags & cell_lost) != 0) [[unlikely]] {
            free_at = start;  // not before what went before it: the ring is in order of arrival
            cell.at = start + delay;
            return true;
          }
          const std::uint32_t bytes = cell.payload + header;
          const TimePs wait = start - ready;
          if (wait > wait_max) wait_max = wait;
          if (wait > mark_wait) [[unlikely]]
            cell.flags |= cell_marked;
          marked += cell.flags & cell_marked;
          free_at = start + clock.take(bytes);
          cell.at = free_at + delay;
          payload_sent += cell.payload;
          ++cells_sent;
          on_data(cell, free_at);
          return true;
        });
        clock_ = clock;
        counters.marked += marked;
        const std::uint64_t bytes_sent = payload_sent + cells_sent * header;
        if (free_at != data_from) free_at_ = free_at;
        counters.wait_max = wait_max;
        counters.cells += cells_sent;
        counters.payload_bytes += payload_sent;
        counters.wire_bytes += bytes_sent;
      }
      if (control_ready == never) return;
      const TimePs start = control_ready > free_at_ ? control_ready : free_at_;
      if (start >= limit) return;
      if (start >= next_keepalive_) [[unlikely]] {
        free_at_ = std::max(free_at_, send_keepalives(start, free_at_));
        continue;
      }
      ControlCell& cell = link_->control.front();
      free_at_ = start + clock_.take(config_.control_bytes);
      cell.at = free_at_ + config_.delay;
      ++counters.control_cells;
      counters.control_bytes += config_.control_bytes;
      counters.wire_bytes += config_.control_bytes;
      on_control(cell, free_at_);
      link_->control.commit();
      control_ready = link_->control.queued() != 0 ? link_->control.front().at : never;
    }
  }
  void publish() {
    const std::uint64_t sent = link_->data.committed() + link_->control.committed();
    sent_in_window_ = sent != published_;
    published_ = sent;
    link_->data.publish();
    link_->control.publish();
  }
  [[nodiscard]] bool sent_in_window() const { return sent_in_window_; }
  /// When the head of the queue could go out, as things stand; never: nothing to send.
  [[nodiscard]] TimePs earliest() const {
    TimePs ready = never;
    if (link_->data.queued() != 0) ready = std::max(link_->data.front().at, held_until_);
    if (link_->control.queued() != 0 && link_->control.front().at < ready) ready = link_->control.front().at;
    return ready == never ? never : ready > free_at_ ? ready : free_at_;
  }

  /// Call drain(now) first.
  void set_rate(Rate rate) {
    clock_.set_rate(rate);
    mark_wait_ = clock_.time_of(config_.mark_bytes);
  }
  void hold(bool stop, TimePs now) {
    if (held_until_ > now) counters.held -= held_until_ - now;  // it ends now, or is renewed
    held_until_ = stop ? now + hold_time : now;
    counters.held += held_until_ - now;
  }
  /// Bytes of data and control cells sent. Keep-alives are left out: they are reckoned in lumps, after silence.
  [[nodiscard]] std::uint64_t cell_bytes_sent() const {
    return counters.wire_bytes - counters.control_bytes + counters.control_cells * config_.control_bytes;
  }
  [[nodiscard]] std::uint32_t queued_cells() const { return link_->data.queued(); }
  /// Bytes that wait; counted one by one, for samples.
  [[nodiscard]] std::uint64_t queued_bytes() const {
    std::uint64_t bytes = 0;
    link_->data.visit_queued([&](const Cell& cell) { bytes += cell.payload + config_.header_bytes; });
    return bytes;
  }
  /// Longest queue that a cell found before it, itself included.
  [[nodiscard]] std::uint64_t queue_max_bytes() const {
    return counters.cells == 0
               ? 0
               : clock_.bytes_in(counters.wait_max) + config_.header_bytes + counters.payload_bytes / counters.cells;
  }
  [[nodiscard]] const CellLink& link() const { return *link_; }

  TransmitterCounters counters;
  TapId data_tap = no_tap, control_tap = no_tap;

 private:
  // Reachability messages go out every interval whatever else does. Between two cells they are reckoned all at once, so
  // that silence costs nothing; only the last can be in the way of what would start now. Returns when that has left.
  TimePs send_keepalives(TimePs start, TimePs free_at) {
    const std::uint64_t count = (start - next_keepalive_) / config_.keepalive_interval + 1;
    const TimePs last = next_keepalive_ + (count - 1) * config_.keepalive_interval;
    next_keepalive_ = last + config_.keepalive_interval;
    counters.control_bytes += count * config_.keepalive_bytes;
    counters.wire_bytes += count * config_.keepalive_bytes;
    return (last > free_at ? last : free_at) + clock_.take(config_.keepalive_bytes);
  }

  TransmitterConfig config_;
  CellLink* link_;
  WireClock clock_;
  TimePs mark_wait_;
  TimePs free_at_ = 0;
  TimePs next_keepalive_;
  std::uint64_t published_ = 0;
  TimePs held_until_ = 0;
  bool sent_in_window_ = false;
};

/// Receiving end.
class CellReceiver {
 public:
  /// `header_bytes` and `control_bytes` as the sender's, to know how long a cell was on the wire.
  CellReceiver(CellLink* link, LinkFate fate, std::uint32_t header_bytes, std::uint32_t control_bytes)
      : link_(link), fate_(std::move(fate)), header_bytes_(header_bytes), control_bytes_(control_bytes) {}

  void prefetch() const { link_->data.prefetch(); }
  /// Adds everything that arrives before `until` to `order`; control cells are told apart by is_control().
  void gather(ArrivalOrder& order, TimePs until) {
    link_->data.refresh();
    link_->control.refresh();
    if (fate_.harmless()) [[likely]] {
      gather_all(link_->data, order, until, [](Cell* cell) { return static_cast<void*>(cell); });
      gather_all(link_->control, order, until, tagged);
      return;
    }
    constexpr LinkFate::Outcome arrives = LinkFate::Outcome::arrives;
    for (; !link_->data.empty() && link_->data.peek().at < until; link_->data.take()) {
      Cell& cell = link_->data.peek();
      if ((cell.flags & cell_lost) == 0 && fate_.of(cell.at, cell.payload + header_bytes_, false) != arrives) {
        cell.flags |= cell_lost;
        ++cells_lost;
      }
      order.add(cell.at, &cell);
    }
    for (; !link_->control.empty() && link_->control.peek().at < until; link_->control.take()) {
      if (fate_.of(link_->control.peek().at, control_bytes_, true) != arrives)
        ++control_lost;
      else
        order.add(link_->control.peek().at, tagged(&link_->control.peek()));
    }
  }
  void retire() {
    link_->data.retire();
    link_->control.retire();
  }
  [[nodiscard]] TimePs earliest() const {
    TimePs at = link_->data.empty() ? never : link_->data.peek().at;
    if (!link_->control.empty() && link_->control.peek().at < at) at = link_->control.peek().at;
    return at;
  }
  static bool is_control(const void* item) { return (reinterpret_cast<std::uintptr_t>(item) & 1) != 0; }
  static const ControlCell& control(const void* item) {
    return *reinterpret_cast<const ControlCell*>(reinterpret_cast<std::uintptr_t>(item) & ~std::uintptr_t{1});
  }
  static Cell& cell(void* item) { return *static_cast<Cell*>(item); }

  std::uint64_t cells_lost = 0, control_lost = 0;

 private:
  template <typename Ring, typename Tag>
  static void gather_all(Ring& ring, ArrivalOrder& order, TimePs until, Tag&& tag) {
    if (ring.empty()) return;
    ArrivalOrder::Link link = order.start(ring.visible());
    ring.take_while([&](auto& item) {
      if (item.at >= until) return false;
      link.add(item.at, tag(&item));
      return true;
    });
    order.finish(link);
  }
  static void* tagged(ControlCell* cell) { return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(cell) | 1); }

  CellLink* link_;
  LinkFate fate_;
  std::uint32_t header_bytes_, control_bytes_;
};

}  // namespace weft::cells
