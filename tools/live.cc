// SPDX-License-Identifier: BSD-3-Clause
#include "tools/live.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace weft {

LivePorts::LivePorts(const Config& config) : config_(config) {
  for (const PortConfig& port : config.ports) {
    const DeviceNeeds needs = device_needs(port, config.forwarding.mtu);
    frame_bytes_ = std::max(frame_bytes_, needs.frame_bytes);
    // Between device and fabric, in the host's queues, in the fabric's buffers. What finds none stays in its device.
    frames_ += needs.frame_bytes <= 4096 ? 8192 : 4096;
    if (needs.pci) frames_ += 2 * EthDevice::descriptors;
  }
  if (config.run.frame_pool != 0)
    frames_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(config.run.frame_pool, 1u << 30));
}

void LivePorts::add_needs(EalOptions& options) const {
  options.pin |= config_.clock.wall && config_.clock.idle == 0;
  if (!any()) return;
  constexpr std::uint64_t device_bytes = 8u << 20;  // rings, queues
  options.memory_bytes +=
      FramePool::memory_bytes(frames_, frame_bytes_, options.workers) + config_.ports.size() * device_bytes;
  for (const PortConfig& port : config_.ports) {
    const DeviceNeeds needs = device_needs(port, config_.forwarding.mtu);
    options.shared_memory |= needs.shared_memory;
    if (!needs.pci) continue;
    options.devices = true;
    options.extra += fmt::format(" -a {}", port.device);
  }
}

void LivePorts::open(Fabric& fabric, const std::function<void(const std::string&)>& say) {
  if (!any()) return;
  pool_ = std::make_unique<FramePool>("live", frames_, frame_bytes_);
  for (const PortConfig& port : config_.ports) {
    const std::string name = port_name(config_.topology, port.port);
    try {
      devices_.push_back(std::make_unique<EthDevice>(port, name, *pool_, config_.forwarding.mtu));
    } catch (const std::runtime_error& error) {
      throw ConfigError(fmt::format("{}: {}", config_.source, error.what()));
    }
    EthDevice& device = *devices_.back();
    ports_.push_back(std::make_unique<LivePort>(port, name, device, config_.classes, config_.clock.dilation));
    fabric.add_live_port(port.port, ports_.back().get());
    if (!say) continue;
    const PortResult found = ports_.back()->result();
    say(fmt::format("{}: {}, mtu {}, link {}, pause frames (802.1Qbb): {}", name, port.device, found.mtu,
                    found.link_up ? "up" : "down", found.pfc));
    for (const std::string& note : device.notes()) say(fmt::format("{}: {}", name, note));
  }
}

void LivePorts::collect(RunResult& result) const {
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    result.ports.push_back(ports_[i]->result());
    for (const std::string& note : devices_[i]->notes())
      result.warnings.push_back(fmt::format("port {}: {}", result.ports.back().name, note));
  }
}

}  // namespace weft
