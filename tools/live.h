// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The live ports of a run: what they need of DPDK before it starts, their devices, and what they found out.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/eal.h"
#include "dataplane/ethdev.h"
#include "dataplane/fabric.h"
#include "dataplane/live_port.h"
#include "tools/config.h"

namespace weft {

class LivePorts {
 public:
  /// `config` outlives it.
  explicit LivePorts(const Config& config);

  [[nodiscard]] bool any() const { return !config_.ports.empty(); }
  /// Memory, devices.
  void add_needs(EalOptions& options) const;
  /// Opens the devices and joins them to the fabric; `say` gets a line for each, for people. Needs the EAL, which
  /// outlives this. Throws ConfigError.
  void open(Fabric& fabric, const std::function<void(const std::string&)>& say);
  void collect(RunResult& result) const;

 private:
  const Config& config_;
  std::uint32_t frames_ = 0, frame_bytes_ = 0;
  std::unique_ptr<FramePool> pool_;
  std::vector<std::unique_ptr<EthDevice>> devices_;
  std::vector<std::unique_ptr<LivePort>> ports_;
};

}  // namespace weft
