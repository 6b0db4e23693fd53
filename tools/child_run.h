// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// `weft run` in a process of its own: DPDK starts once a process, and a run that crashes takes no other along.
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace weft {

struct ChildRun {
  std::vector<std::string> arguments;  // of this program: "run", ...
  bool keep_on_stop = false;           // true: a stop asks it to end in order; false: it is killed
};

struct ChildOutcome {
  int exit_code = 0;    // as of weft run; 128 + the signal's number where one ended it
  std::string message;  // what it said on stderr, one line, without "weft: "; or which signal ended it
  [[nodiscard]] bool ok() const { return exit_code == 0; }
};

/// Runs it to its end. While it runs `tick` is called some ten times a second, and `stop` polled. The child is in a
/// process group of its own, so that a Ctrl-C reaches it through the caller alone, and dies with the caller.
/// Safe to call from several threads. Throws std::runtime_error where no process can be made.
ChildOutcome run_child(const ChildRun& run, const std::atomic<bool>& stop, const std::function<void()>& tick = {});

}  // namespace weft
