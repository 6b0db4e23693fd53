// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/kernel.h"

#include <immintrin.h>
#include <sched.h>

#include <algorithm>

#include "dataplane/capture_buffer.h"
#include "dataplane/check.h"

namespace weft {

namespace {

/// The times at which all nodes must have come exactly as far: window edges are cut to them.
class Stops {
 public:
  explicit Stops(const KernelConfig& config)
      : faults_(config.fault_times),
        warmup_(config.warmup),
        interval_(config.sample_interval),
        next_sample_(interval_),
        end_(config.duration.value_or(never)) {
    std::sort(faults_.begin(), faults_.end());
  }
  /// The first stop after `now` that must not be jumped over.
  [[nodiscard]] TimePs next_fixed(TimePs now) const {
    TimePs next = end_;
    if (warmup_ > now) next = std::min(next, warmup_);
    const auto fault = std::upper_bound(faults_.begin(), faults_.end(), now);
    if (fault != faults_.end()) next = std::min(next, *fault);
    return next;
  }
  [[nodiscard]] TimePs next(TimePs now) const {
    return interval_ == 0 ? next_fixed(now) : std::min(next_fixed(now), next_sample_);
  }
  [[nodiscard]] std::uint32_t kinds_at(TimePs now) const {
    std::uint32_t kinds = 0;
    if (now == warmup_) kinds |= stop_warmup;
    if (interval_ != 0 && now == next_sample_) kinds |= stop_sample;
    if (std::binary_search(faults_.begin(), faults_.end(), now)) kinds |= stop_fault;
    if (now == end_) kinds |= stop_end;
    return kinds;
  }
  void pass(TimePs now) {
    if (interval_ != 0 && next_sample_ <= now) next_sample_ = (now / interval_ + 1) * interval_;
  }
  /// Samples inside a jump would only repeat the one before: the next is the first of its grid at `to` or later.
  void jump_to(TimePs to) {
    if (interval_ != 0) next_sample_ = (to + interval_ - 1) / interval_ * interval_;
  }

 private:
  std::vector<TimePs> faults_;
  TimePs warmup_, interval_, next_sample_, end_;
};

/// What a worker does between two looks at its live ports. A turn that makes up for lost time is cut short, so that
/// what it delivers does not wait for its end.
class Turn {
 public:
  [[nodiscard]] bool over() const { return over_; }
  void begin(TimePs now) {
    until_ = now;
    windows_ = 0;
    over_ = false;
  }
  /// Windows have been handled up to `at`.
  void go_on(TimePs at, bool last) { over_ = last || at >= until_ || ++windows_ >= longest; }

 private:
  static constexpr std::uint32_t longest = 16;
  TimePs until_ = 0;
  std::uint32_t windows_ = 0;
  bool over_ = true;
};

}  // namespace

Kernel::Kernel(KernelConfig config, std::vector<Node*> nodes, std::vector<std::uint32_t> worker_of,
               std::uint32_t workers, const Pacer* pacer, WindowObserver* observer)
    : config_(std::move(config)),
      nodes_of_(workers),
      workers_(workers),
      pacer_(pacer),
      observer_(observer),
      states_(std::make_unique<WorkerState[]>(workers)) {
  WEFT_CHECK(config_.window > 0, "a window has a length");
  WEFT_CHECK(!config_.live || pacer_ != nullptr, "live ports need a clock");
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes_of_[worker_of[i]].push_back(nodes[i]);
}

void Kernel::wait_for_all(std::uint64_t windows) const {
  for (std::uint32_t w = 0; w < workers_; ++w)
    for (std::uint32_t spins = 0; states_[w].windows_done.load(std::memory_order_acquire) < windows; ++spins) {
      _mm_pause();
      if (spins > 2000) sched_yield();  // on a shared machine the one we wait for may need this CPU
    }
}

void Kernel::release(std::uint64_t window, TimePs from) {
  bool stop = false;
  while (!stop && !pacer_->wait_for(from)) stop = observer_ != nullptr && observer_->stop_requested();
  release_.now = pacer_->now();
  release_.stop = stop;
  release_.windows.store(window + 1, std::memory_order_release);
  release_.windows.notify_all();
}

void Kernel::wait_for_release(std::uint64_t window) const {
  constexpr std::uint32_t spins_before_sleep = 2000;
  for (std::uint32_t spins = 0;; ++spins) {
    const std::uint64_t windows = release_.windows.load(std::memory_order_acquire);
    if (windows > window) return;
    if (spins < spins_before_sleep)
      _mm_pause();
    else
      release_.windows.wait(windows, std::memory_order_acquire);
  }
}

void Kernel::note_lag(TimePs from, TimePs until) {
  lag_now_ = release_.now - std::min(from, release_.now);
  lag_.add(lag_now_);
  if (lag_now_ > until - from) ++late_windows_;
}

void Kernel::work(std::uint32_t worker) {
  const std::vector<Node*>& mine = nodes_of_[worker];
  WorkerState& state = states_[worker];
  Stops stops(config_);
  if (const std::uint32_t kinds = stops.kinds_at(0))
    for (Node* node : mine) node->at_stop(0, kinds);

  const bool live = config_.live;
  Turn turn;
  TimePs from = 0;
  std::uint32_t idle_windows = 0;
  bool expected = true;  // something is to be done in the coming window, as far as is known
  for (std::uint64_t window = 0;; ++window) {
    const TimePs until = std::min(from + config_.window, stops.next(from));
    TimePs now = 0;
    if (pacer_ != nullptr) {
      if (worker == 0)
        release(window, from);
      else
        wait_for_release(window);
      now = release_.now;
      if (release_.stop) {  // while the window was awaited: it is not begun
        const TimePs at = std::min(from, now);
        for (Node* node : mine) node->at_stop(at, stop_end);
        if (worker == 0) finish(window, at, true);
        return;
      }
      if (worker == 0 && expected) note_lag(from, until);
    }
    if (live && turn.over()) {
      for (Node* node : mine) node->poll(now);
      turn.begin(now);
    }

    Report& report = state.report[window & 1];
    report = {};
    for (Node* node : mine) {
      if (CaptureBuffer* capture = node->capture()) capture->use(window & 1);
      node->advance(from, until);
      report.earliest = std::min(report.earliest, node->earliest());
      report.sent |= node->sent_in_window();
    }
    if (worker == 0 && observer_ != nullptr) report.stop = observer_->stop_requested();
    state.windows_done.store(window + 1, std::memory_order_release);
    wait_for_all(window + 1);

    TimePs earliest = never;
    bool sent = false, stop = false;
    for (std::uint32_t w = 0; w < workers_; ++w) {
      const Report& other = states_[w].report[window & 1];
      earliest = std::min(earliest, other.earliest);
      sent |= other.sent;
      stop |= other.stop;
    }
    const bool drained = !sent && earliest == never && !config_.duration && !live;

    // Idle time is jumped over, from stop to stop. A fault may wake a node, so the jump goes no further than that; nor,
    // with live ports, than the clock was when they were last looked at.
    TimePs at = until;
    bool over = false;
    for (;;) {
      const std::uint32_t kinds = stops.kinds_at(at);
      over = stop || drained || (kinds & stop_end) != 0;
      if (kinds != 0 || over)
        for (Node* node : mine) node->at_stop(at, kinds | (over ? std::uint32_t{stop_end} : 0u));
      stops.pass(at);
      if (over || sent || (kinds & stop_fault) != 0) break;
      const TimePs furthest = live ? std::min(stops.next(at), now) : stops.next_fixed(at);
      const TimePs next = std::max(at, std::min(earliest, furthest));
      if (next == at) break;
      at = next;
      stops.jump_to(at);
    }
    if (live) {
      turn.go_on(at, over);
      if (turn.over())
        for (Node* node : mine) node->flush();
    }
    if (worker == 0) {
      if (over) finish(window + 1, at, stop && !drained && config_.duration != at);
      if (observer_ != nullptr) observer_->window_done(window, over ? never : at);
    }
    if (over) return;
    from = at;
    expected = sent || earliest < from + config_.window;
    if (worker == 0 && live) {
      idle_windows = expected ? 0 : idle_windows + 1;
      // What follows closely upon something finds everyone awake.
      if (idle_windows > 100) pacer_->rest(earliest);
    }
  }
}

void Kernel::finish(std::uint64_t windows, TimePs at, bool early) {
  windows_ = windows;
  end_ = at;
  stopped_early_ = early;
  if (pacer_ == nullptr) return;
  // Nothing is left to be done, but the time that was asked for is not over.
  if (!early)
    while (!pacer_->wait_for(at))
      if (observer_ != nullptr && observer_->stop_requested()) break;
  lag_now_ = pacer_->now() - std::min(at, pacer_->now());
}

}  // namespace weft
