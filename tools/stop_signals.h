// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Ctrl-C and SIGTERM, as the subcommands that run things take them.
#include <signal.h>

#include <atomic>

namespace weft {

/// While it lives, the first SIGINT or SIGTERM asks for a stop and the second ends the process at once. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  [[nodiscard]] const std::atomic<bool>& requested() const;

 private:
  struct sigaction old_int_ {
  }, old_term_{};
};

}  // namespace weft
