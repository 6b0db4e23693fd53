// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The CPU's time stamp counter as a PacingClock (pacer.h). Needs the EAL, which measures its frequency.
#include <rte_cycles.h>
#include <rte_pause.h>
#include <time.h>

#include <cstdint>

#include "dataplane/time.h"

namespace weft {

struct TscClock {
  [[nodiscard]] static std::uint64_t ticks_per_s() { return rte_get_tsc_hz(); }
  [[nodiscard]] static std::uint64_t ticks_of(std::uint64_t ps) {
    return static_cast<std::uint64_t>(static_cast<Uint128>(ps) * ticks_per_s() / 1'000'000'000'000);
  }
  std::uint64_t operator()() const { return rte_rdtsc(); }
  void sleep(std::uint64_t ticks) const {
    const std::uint64_t ns = static_cast<std::uint64_t>(static_cast<Uint128>(ticks) * 1'000'000'000 / ticks_per_s());
    const timespec time{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
    nanosleep(&time, nullptr);  // a signal ends it early, which is as well
  }
  void pause() const { rte_pause(); }
};

}  // namespace weft
