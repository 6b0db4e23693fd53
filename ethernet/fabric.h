// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A whole Ethernet fabric: leaves, spines, the links between them, and what they found out.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataplane/fabric.h"
#include "ethernet/switch.h"

namespace weft::ethernet {

struct FabricConfig : weft::FabricConfig {
  EthernetConfig ethernet;
};

class Fabric final : public weft::Fabric {
 public:
  /// `known`: addresses of modelled and replayed hosts. `copies`: memory for flood copies. Throws
  /// std::invalid_argument, one line with the key, where what is asked for cannot work.
  Fabric(FabricConfig config, std::span<const KnownHost> known, FramePool* copies);
  ~Fabric() override;

  [[nodiscard]] std::vector<Node*> nodes() const override;
  [[nodiscard]] std::vector<std::uint32_t> placement(std::uint32_t workers) const override;
  [[nodiscard]] TimePs window() const override;
  [[nodiscard]] TimePs capture_lookback() const override { return config_.ethernet.latency; }
  [[nodiscard]] const std::vector<TimePs>& fault_times() const override { return fault_times_; }
  [[nodiscard]] const std::vector<TapPoint>& taps() const override { return taps_; }
  void add_source(std::uint32_t port, std::unique_ptr<FrameSource> source, FramePool* pool) override;
  void add_live_port(std::uint32_t port, LivePort* live) override;
  [[nodiscard]] std::uint64_t delivered() const override;
  void collect(RunResult& result, TimePs end) const override;

  [[nodiscard]] const std::vector<std::unique_ptr<Switch>>& switches() const { return switches_; }

 private:
  void make_taps();
  void plan_notices();
  void make_switch(std::uint32_t index, std::span<const KnownHost> known, FramePool* copies);
  [[nodiscard]] bool is_leaf(std::uint32_t index) const { return index < config_.topology.leaves; }
  [[nodiscard]] std::string port_of_root(std::uint32_t root) const;
  void collect_links(RunResult& result, TimePs end) const;
  void warn(RunResult& result) const;
  void warn_of_polarisation(RunResult& result) const;
  void warn_of_headroom(RunResult& result) const;

  FabricConfig config_;
  std::vector<std::unique_ptr<EthernetLink>> up_, down_;  // [fabric link]
  std::vector<std::unique_ptr<CaptureBuffer>> captures_;  // [switch], nullptr where nothing is captured
  std::vector<std::unique_ptr<Switch>> switches_;         // leaves, then spines
  std::vector<std::vector<LinkNotice>> notices_;          // [switch]
  std::vector<TimePs> fault_times_;
  std::vector<TapPoint> taps_;
  std::vector<SwitchTaps> switch_taps_;  // [switch]
  struct LinkTaps {
    TapId frames_up = no_tap, frames_down = no_tap, pauses_up = no_tap, pauses_down = no_tap;
  };
  std::vector<LinkTaps> link_taps_;  // [fabric link]
};

}  // namespace weft::ethernet
