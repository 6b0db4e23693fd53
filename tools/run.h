// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// One run of one fabric, from a Config to a RunResult. What stands around it (folder, reports, signals, exit codes)
// is the caller's.
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "dataplane/results.h"
#include "tools/config.h"

namespace weft {

struct RunProgress {
  TimePs now = 0;                  // emulated
  std::optional<TimePs> duration;  // none: until the traffic has drained
  std::uint64_t delivered = 0;     // frames
  std::optional<TimePs> lag;       // by the wall clock: emulated time is behind by so much
};

struct RunOptions {
  std::string out_dir;                               // exists; the run writes capture.pcapng into it, and nothing else
  std::string eal_arguments;                         // of the user, added to what weft passes to the EAL
  bool strict = false;                               // refuse input that would otherwise be repaired and counted
  const std::atomic<bool>* stop = nullptr;           // polled once a window; true: end there, interrupted
  std::function<void(const std::string&)> say;       // may be empty; lines for people: what live ports turned out to be
  std::function<void(const RunProgress&)> progress;  // may be empty; called now and then, from the calling thread
};

/// Runs to the end, or to the first window end after `*stop`. The books are in the result; judging them is the
/// caller's. A capture that can no longer be written (a full disk) ends the run like a stop: captures closed at the
/// last whole record, RunResult::error says why. Throws ConfigError (what the config asks for cannot be built),
/// CaptureError (a capture cannot be read) or another std::runtime_error (the EAL, memory), each with one clear line,
/// and only before frames move.
RunResult run_fabric(const Config& config, const RunOptions& options);

using RunFabric = std::function<RunResult(const Config&, const RunOptions&)>;

}  // namespace weft
