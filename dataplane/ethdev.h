// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A DPDK Ethernet device, by devargs: opened, set up with one receive and one transmit queue, and started, so that its
// user need not know what each driver wants. What stands behind it in the kernel is set so that whole frames with right
// lengths arrive (netdev.h).
#include <rte_mbuf.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/config.h"
#include "dataplane/counters.h"
#include "dataplane/forward.h"
#include "dataplane/frame_pool.h"
#include "dataplane/netdev.h"

namespace weft {

/// What a device needs of the EAL and of memory, known from its devargs.
struct DeviceNeeds {
  bool pci = false;               // EalOptions::devices, and to be named with -a
  bool shared_memory = false;     // EalOptions::shared_memory: its peer maps ours
  std::uint32_t frame_bytes = 0;  // least room of each buffer in the pool
};
/// `mtu`: of the forwarding, the longest frame that the fabric takes.
DeviceNeeds device_needs(const PortConfig& config, std::uint32_t mtu);

class EthDevice {
 public:
  static constexpr std::uint16_t descriptors = 1024;

  /// `at`: the port's name, for messages. `pool` gives memory to what is received, `mtu` is the forwarding's. Throws
  /// std::runtime_error with one line that says which port, what and why.
  EthDevice(const PortConfig& config, const std::string& at, FramePool& pool, std::uint32_t mtu);
  ~EthDevice();
  EthDevice(const EthDevice&) = delete;
  EthDevice& operator=(const EthDevice&) = delete;

  [[nodiscard]] std::uint16_t id() const { return id_; }
  [[nodiscard]] FramePool& pool() const { return pool_; }
  [[nodiscard]] const std::string& driver() const { return driver_; }
  [[nodiscard]] std::uint32_t mtu() const { return mtu_; }
  /// Longest frame that its MTU lets pass, two VLAN tags included.
  [[nodiscard]] std::uint32_t longest_frame() const { return mtu_ + 14 + 8; }
  [[nodiscard]] const MacAddress& mac() const { return mac_; }
  [[nodiscard]] std::uint64_t link_rate_bps() const { return rate_bps_; }
  [[nodiscard]] bool link_up() const;
  /// Pause frames pass the device in this direction, as far as its driver is known.
  [[nodiscard]] bool passes_pfc_out() const { return passes_pfc_; }
  [[nodiscard]] bool passes_pfc_in() const { return passes_pfc_; }
  /// Losses that device and socket have counted since the start, but for tx_refused.
  [[nodiscard]] std::array<std::uint64_t, port_losses> losses() const;
  /// Lines for people: what was found or could not be set.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  void open(const PortConfig& config);
  void configure(const PortConfig& config);
  [[noreturn]] void fail(const std::string& what) const;

  const std::string at_, device_;
  FramePool& pool_;
  std::unique_ptr<PortLock> lock_;
  std::unique_ptr<NetDevice> net_;
  std::uint16_t id_ = 0;
  bool opened_ = false, passes_pfc_ = true, link_is_known_ = false;
  std::string driver_;
  std::uint32_t mtu_ = 1500, frame_limit_;
  std::uint64_t rate_bps_ = 10'000'000'000;
  MacAddress mac_{};
  std::vector<std::string> notes_;
};

}  // namespace weft
