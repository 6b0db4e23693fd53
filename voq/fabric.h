// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A whole scheduled fabric: leaves, spines, the links between them, and what they found out.
#include <memory>
#include <span>
#include <vector>

#include "cells/cell_switch.h"
#include "dataplane/fabric.h"
#include "voq/leaf.h"

namespace weft::voq {

struct FabricConfig : weft::FabricConfig {
  VoqConfig voq;
  scheduler::SchedulerConfig scheduler;
  cells::CellConfig cells;
};

/// Least time from a grant to the departure of its bytes: control cell to the ingress leaf, data cells back, egress
/// pipeline, and a credit's time on the slowest host link. Closed form, for an idle fabric.
TimePs grant_round_trip(const FabricConfig& config);

/// Replaces each 0 that stands for "by the model": egress buffer, XOFF, XON, headroom, marking and hold-back
/// thresholds. Throws std::invalid_argument where what is asked for cannot work; one line with the key.
void resolve_defaults(FabricConfig& config);

class Fabric final : public weft::Fabric {
 public:
  /// `known`: addresses of modelled and replayed hosts. `copies`: memory for flood copies. Throws
  /// std::invalid_argument.
  Fabric(FabricConfig config, std::span<const KnownHost> known, FramePool* copies);
  ~Fabric() override;

  [[nodiscard]] std::vector<Node*> nodes() const override;
  [[nodiscard]] std::vector<std::uint32_t> placement(std::uint32_t workers) const override;
  [[nodiscard]] TimePs window() const override;
  [[nodiscard]] TimePs capture_lookback() const override { return config_.voq.latency; }
  /// Faults, and what reachability notices of them.
  [[nodiscard]] const std::vector<TimePs>& fault_times() const override { return fault_times_; }
  [[nodiscard]] const std::vector<TapPoint>& taps() const override { return taps_; }
  [[nodiscard]] const FabricConfig& config() const { return config_; }

  void add_source(std::uint32_t port, std::unique_ptr<FrameSource> source, FramePool* pool) override;
  void add_live_port(std::uint32_t port, LivePort* live) override;
  [[nodiscard]] std::uint64_t delivered() const override;
  void collect(RunResult& result, TimePs end) const override;

 private:
  void make_taps();
  LinkFate fate(std::uint32_t link, bool upward) const;
  [[nodiscard]] std::uint64_t frames_on_links() const;
  void collect_links(RunResult& result, TimePs end) const;

  FabricConfig config_;
  std::vector<std::unique_ptr<cells::CellLink>> up_, down_;  // [fabric link]
  std::vector<std::unique_ptr<CaptureBuffer>> captures_;     // [node], nullptr where nothing is captured
  std::vector<std::unique_ptr<Leaf>> leaves_;
  std::vector<std::unique_ptr<cells::CellSwitch>> spines_;
  std::vector<TimePs> fault_times_;
  std::vector<TapPoint> taps_;
  std::vector<LeafTaps> leaf_taps_;
  struct LinkTaps {
    TapId data_up = no_tap, data_down = no_tap, control_up = no_tap, control_down = no_tap;
  };
  std::vector<LinkTaps> link_taps_;  // [fabric link]
};

}  // namespace weft::voq
