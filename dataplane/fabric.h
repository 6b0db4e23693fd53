// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A whole fabric as a run sees it: nodes to advance, ports to feed, and what they found out. What is between is the
// fabric's own.
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/config.h"
#include "dataplane/frame_pool.h"
#include "dataplane/node.h"
#include "dataplane/pcapng_writer.h"
#include "dataplane/results.h"
#include "dataplane/source.h"
#include "dataplane/time.h"
#include "dataplane/topology.h"

namespace weft {

class LivePort;

/// What every fabric is built from; each adds its own blocks' parameters.
struct FabricConfig {
  Topology topology;
  ClassesConfig classes;
  ForwardingConfig forwarding;
  std::vector<FaultConfig> faults;
  CaptureConfig capture;
  TimePs warmup = 0;
  std::uint64_t seed = 1;
};

class Fabric {
 public:
  Fabric() = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
  virtual ~Fabric() = default;

  /// In a fixed order: leaves, then spines.
  [[nodiscard]] virtual std::vector<Node*> nodes() const = 0;
  /// Which worker advances which node, so that all have about the same to do.
  [[nodiscard]] virtual std::vector<std::uint32_t> placement(std::uint32_t workers) const = 0;
  /// Longest window: the least delay of a fabric link.
  [[nodiscard]] virtual TimePs window() const = 0;
  /// Longest time by which a tap's stamp may lie before the event that records it.
  [[nodiscard]] virtual TimePs capture_lookback() const = 0;
  /// Times at which something changes by itself: faults, and what switches notice of them.
  [[nodiscard]] virtual const std::vector<TimePs>& fault_times() const = 0;
  [[nodiscard]] virtual const std::vector<TapPoint>& taps() const = 0;

  /// `port` is a host port, by its fabric-wide number.
  virtual void add_source(std::uint32_t port, std::unique_ptr<FrameSource> source, FramePool* pool) = 0;
  /// A live port in the place of `port`'s host, beside what other sources it may have. Not owned.
  virtual void add_live_port(std::uint32_t port, LivePort* live) = 0;
  /// Frames delivered so far; only between windows or as a rough figure for progress.
  [[nodiscard]] virtual std::uint64_t delivered() const = 0;

  /// When the run is over. Fills everything but header, replays and cost's times.
  virtual void collect(RunResult& result, TimePs end) const = 0;
};

}  // namespace weft
