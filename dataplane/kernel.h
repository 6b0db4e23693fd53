// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The kernel: advances all nodes window by window, on one or more workers, until the run is over.
//
// A window is at most as long as the smallest delay of any link between nodes, so nothing that is sent in it can arrive
// in it: the conservative, lookahead-synchronous way of parallel simulation. Where windows lie follows from the model
// alone (its delays, its stops, what is pending), so results do not depend on the number of workers.
//
// By a wall clock worker 0 is the timekeeper: it releases a window when real time has come, and with it says what time
// it is. Where there are live ports, a frame may come in at any time; so idle time is jumped over as far as the clock
// has come and no further, and ports are polled once a turn: when the windows up to the time of the last poll are done.
//
// Workers agree through published clocks: each says that it has finished window w, and what is the earliest thing
// pending on its nodes. When nothing was sent in a window, the next one starts at the least of these: idle time costs
// nothing.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "dataplane/histogram.h"
#include "dataplane/node.h"
#include "dataplane/pacer.h"
#include "dataplane/time.h"

namespace weft {

struct KernelConfig {
  TimePs window = 1'000'000;       // at most the least delay of a link between nodes
  std::optional<TimePs> duration;  // none: until nothing is pending anywhere
  TimePs warmup = 0;
  TimePs sample_interval = 0;       // 0: no samples
  std::vector<TimePs> fault_times;  // any order, repeats allowed
  bool live = false;                // nodes have live ports; needs a pacer, and lasts until `duration` or a stop
};

/// Called by worker 0 after each window, while other workers may already be in the next one.
class WindowObserver {
 public:
  virtual ~WindowObserver() = default;
  /// Every node has finished window `window`, and nothing that happens from now on is earlier than `horizon`.
  virtual void window_done(std::uint64_t window, TimePs horizon) = 0;
  /// Polled after each window; true ends the run with that window.
  virtual bool stop_requested() = 0;
};

class Kernel {
 public:
  /// `nodes[i]` is advanced by worker `worker_of[i]`. Nothing is owned. `pacer` (nullptr: the virtual clock) and
  /// `observer` may be nullptr.
  Kernel(KernelConfig config, std::vector<Node*> nodes, std::vector<std::uint32_t> worker_of, std::uint32_t workers,
         const Pacer* pacer, WindowObserver* observer);

  /// The whole run, seen from one worker: each of them calls it with its number and returns when the run is over.
  void work(std::uint32_t worker);

  [[nodiscard]] TimePs end() const { return end_; }
  [[nodiscard]] std::uint64_t windows() const { return windows_; }
  [[nodiscard]] bool stopped_early() const { return stopped_early_; }

  // By a wall clock. Of windows in which something was to be done: how far emulated time was behind at their start.
  [[nodiscard]] const Histogram& lag() const { return lag_; }
  /// Of these, those that began later than they were long.
  [[nodiscard]] std::uint64_t late_windows() const { return late_windows_; }
  /// Emulated behind wall time at the last window, for progress: by the observer only.
  [[nodiscard]] TimePs lag_now() const { return lag_now_; }

 private:
  /// What a worker says at the end of a window. Two of them, by turns, so that a slow reader still finds it.
  struct Report {
    TimePs earliest = never;
    bool sent = false, stop = false;
  };
  struct alignas(64) WorkerState {
    std::atomic<std::uint64_t> windows_done{0};
    Report report[2];
  };
  /// The timekeeper's word on a window.
  struct alignas(64) Release {
    std::atomic<std::uint64_t> windows{0};  // that may be handled
    TimePs now = 0;                         // by the clock
    bool stop = false;                      // the run ends before this window
  };
  void wait_for_all(std::uint64_t windows) const;
  void release(std::uint64_t window, TimePs from);
  void wait_for_release(std::uint64_t window) const;
  void note_lag(TimePs from, TimePs until);
  void finish(std::uint64_t windows, TimePs at, bool early);

  KernelConfig config_;
  std::vector<std::vector<Node*>> nodes_of_;
  std::uint32_t workers_;
  const Pacer* pacer_;
  WindowObserver* observer_;
  std::unique_ptr<WorkerState[]> states_;
  Release release_;
  Histogram lag_;
  std::uint64_t late_windows_ = 0;
  TimePs lag_now_ = 0;
  TimePs end_ = 0;
  std::uint64_t windows_ = 0;
  bool stopped_early_ = false;
};

}  // namespace weft
