// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The kernel: advances all nodes window by window, on one or more workers, until the run is over.
//
// A window is at most as long as the smallest delay of any link between nodes, so nothing that is sent in it can arrive
// in it: the conservative, lookahead-synchronous way of parallel simulation. Where windows lie follows from the model
// alone (its delays, its stops, what is pending), so results do not depend on the number of workers.
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
  /// `nodes[i]` is advanced by worker `worker_of[i]`. Nothing is owned. `pacer` and `observer` may be nullptr.
  Kernel(KernelConfig config, std::vector<Node*> nodes, std::vector<std::uint32_t> worker_of, std::uint32_t workers,
         const Pacer* pacer, WindowObserver* observer);

  /// The whole run, seen from one worker: each of them calls it with its number and returns when the run is over.
  void work(std::uint32_t worker);

  [[nodiscard]] TimePs end() const { return end_; }
  [[nodiscard]] std::uint64_t windows() const { return windows_; }
  [[nodiscard]] bool stopped_early() const { return stopped_early_; }

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
  void wait_for_all(std::uint64_t windows) const;

  KernelConfig config_;
  std::vector<std::vector<Node*>> nodes_of_;
  std::uint32_t workers_;
  const Pacer* pacer_;
  WindowObserver* observer_;
  std::unique_ptr<WorkerState[]> states_;
  TimePs end_ = 0;
  std::uint64_t windows_ = 0;
  bool stopped_early_ = false;
};

}  // namespace weft
