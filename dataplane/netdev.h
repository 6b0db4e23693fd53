// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The kernel's network interface behind a port (packet sockets, AF_XDP), as far as DPDK leaves it alone: whether it is
// up, what its MTU is, that nothing makes frames longer than they are on a wire, what its packet sockets have lost.
// What is changed is put back at the end.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weft {

/// Held by the one instance that uses a port; by `name`, within a network namespace. Gone with its process, however
/// that ends.
class PortLock {
 public:
  explicit PortLock(const std::string& name);
  ~PortLock();
  PortLock(const PortLock&) = delete;
  PortLock& operator=(const PortLock&) = delete;
  [[nodiscard]] bool held() const { return socket_ >= 0; }

 private:
  int socket_;
};

class NetDevice {
 public:
  /// Throws std::runtime_error: there is no such interface.
  explicit NetDevice(const std::string& name);
  ~NetDevice();
  NetDevice(const NetDevice&) = delete;
  NetDevice& operator=(const NetDevice&) = delete;

  [[nodiscard]] std::uint32_t mtu() const;
  /// It is there, up, and has a carrier.
  [[nodiscard]] bool running() const;
  /// Up, and without what joins received frames into longer ones (GRO, LRO). The far end of a veth pair is told not to
  /// send frames longer than its MTU either (segmentation offload), whatever namespace it is in. A line for each thing
  /// that could not be done.
  std::vector<std::string> prepare();
  /// Packet sockets of this process that are bound to the interface: they are not to see what this machine itself sends
  /// out of it.
  void adopt_packet_sockets();
  /// Frames that they have dropped since.
  [[nodiscard]] std::uint64_t socket_drops() const;

 private:
  std::string name_;
  int index_;
  int control_;  // any socket, for ioctl
  bool was_up_ = true, was_promiscuous_ = true, had_gro_ = false;
  std::vector<int> packet_sockets_;
  mutable std::uint64_t dropped_ = 0;  // the kernel forgets what it has told
};

}  // namespace weft
