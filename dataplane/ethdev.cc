// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/ethdev.h"

#include <fmt/format.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace weft {
namespace {

/// "net_af_packet0" of "net_af_packet0,iface=veth0".
std::string name_of(const std::string& devargs) { return devargs.substr(0, devargs.find(',')); }

/// Value of `key` in "net_af_packet0,iface=veth0".
std::optional<std::string> argument(const std::string& devargs, std::string_view key) {
  std::istringstream parts(devargs);
  std::string part;
  std::getline(parts, part, ',');
  while (std::getline(parts, part, ','))
    if (part.starts_with(key) && part.size() > key.size() && part[key.size()] == '=')
      return part.substr(key.size() + 1);
  return std::nullopt;
}

bool is_kind(const std::string& devargs, std::string_view driver) {
  std::string name = name_of(devargs);
  if (name.starts_with("vdev:")) name.erase(0, 5);
  return name.starts_with(driver);
}

/// "0000:3b:00.0" or "3b:00.0"
bool is_pci_address(const std::string& name) {
  return name.find(':') != name.npos && name.find('.') != name.npos &&
         name.find_first_not_of("0123456789abcdefABCDEF:.") == name.npos;
}

bool behind_kernel_interface(const std::string& devargs) {
  return is_kind(devargs, "net_af_packet") || is_kind(devargs, "eth_af_packet") || is_kind(devargs, "net_af_xdp");
}

/// Bytes of a packet socket's ring slot for frames of up to `bytes`: its header is in there, and slots divide blocks.
std::uint32_t ring_slot(std::uint32_t bytes) {
  constexpr std::uint32_t header = 96, page = 4096;
  if (bytes + header <= 2048) return 2048;
  return (bytes + header + page - 1) / page * page;
}

/// While it lives, what DPDK logs is kept.
class LogHold {
 public:
  LogHold() : file_(open_memstream(&text_, &size_)) {
    if (file_ != nullptr) rte_openlog_stream(file_);
  }
  ~LogHold() {
    rte_openlog_stream(nullptr);
    if (file_ != nullptr) std::fclose(file_);
    std::free(text_);
  }
  LogHold(const LogHold&) = delete;
  LogHold& operator=(const LogHold&) = delete;
  /// The first two lines, joined.
  [[nodiscard]] std::string said() const {
    if (file_ == nullptr) return "";
    std::fflush(file_);
    std::istringstream lines(std::string(text_, size_));
    std::string all;
    int count = 0;
    for (std::string line; count < 2 && std::getline(lines, line);) {
      while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) line.pop_back();
      if (line.empty()) continue;
      all += (count++ == 0 ? "" : "; ") + line;
    }
    return all;
  }

 private:
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* file_;
};

/// A vhost-user socket that a dead process has left behind would keep the next one from its start. False: it is alive.
bool clear_stale_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return true;
  path.copy(address.sun_path, path.size());
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int connected = connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int why = errno;
  close(probe);
  if (connected == 0) return false;
  if (why == ECONNREFUSED) unlink(path.c_str());
  return true;
}

}  // namespace

DeviceNeeds device_needs(const PortConfig& config, std::uint32_t mtu) {
  DeviceNeeds needs;
  needs.pci = is_pci_address(name_of(config.device));
  needs.shared_memory = is_kind(config.device, "net_virtio_user") || is_kind(config.device, "virtio_user");
  // Drivers count headers of their own on top (virtio), and some can only use whole KiB of a buffer (ixgbe).
  needs.frame_bytes = std::max(2048u, (mtu + 8 + 64 + 1023) / 1024 * 1024);
  if (behind_kernel_interface(config.device)) {
    // Its interface may let longer frames pass than the fabric does: they are to arrive whole, and be counted.
    std::uint32_t longest = std::max(mtu, config.mtu + 14) + 8;
    try {
      longest = std::max(longest, NetDevice(argument(config.device, "iface").value_or("")).mtu() + 14 + 8);
    } catch (const std::runtime_error&) {  // said when it is opened
    }
    needs.frame_bytes = ring_slot(longest);
  }
  return needs;
}

EthDevice::EthDevice(const PortConfig& config, const std::string& at, FramePool& pool, std::uint32_t mtu)
    : at_(at), device_(config.device), pool_(pool), frame_limit_(mtu + 8) {
  const std::string identity = argument(device_, "iface").value_or(name_of(device_));
  if (behind_kernel_interface(device_) || is_kind(device_, "net_vhost") || is_kind(device_, "net_tap")) {
    lock_ = std::make_unique<PortLock>(identity);
    if (!lock_->held()) fail(fmt::format("{} is in use by another instance of weft", identity));
  }
  if (behind_kernel_interface(device_)) {
    try {
      net_ = std::make_unique<NetDevice>(argument(device_, "iface").value_or(""));
    } catch (const std::runtime_error& error) {
      fail(error.what());
    }
    const int probe = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (probe < 0 && errno == EPERM) fail("a packet socket needs root, or CAP_NET_RAW");
    if (probe >= 0) close(probe);
    notes_ = net_->prepare();
  }
  if (is_kind(device_, "net_vhost") && argument(device_, "client").value_or("0") == "0")
    if (const auto path = argument(device_, "iface"); path && !clear_stale_socket(*path))
      fail(fmt::format("{} is served by another process", *path));
  try {
    open(config);
    configure(config);
  } catch (...) {
    if (opened_) rte_eth_dev_close(id_);
    throw;
  }
}

EthDevice::~EthDevice() {
  const LogHold hold;
  rte_eth_dev_stop(id_);
  rte_eth_dev_close(id_);
}

void EthDevice::fail(const std::string& what) const {
  throw std::runtime_error(fmt::format("port {}: {}: {}", at_, device_, what));
}

void EthDevice::open(const PortConfig& config) {
  std::string devargs = device_;
  std::string name = name_of(devargs);
  if (!is_pci_address(name)) {
    // Several ports may say "net_tap,…": a device needs a name of its own, and DPDK takes the number for it.
    if (std::isdigit(static_cast<unsigned char>(name.back())) == 0) {
      std::string fresh = name + std::to_string(config.port);
      devargs = fresh + devargs.substr(name.size());
      name = fresh;
    }
    if (is_kind(devargs, "net_af_packet") || is_kind(devargs, "eth_af_packet")) {
      const std::uint32_t slot = pool_.longest() / 2048 * 2048;
      if (!argument(devargs, "framesz"))
        devargs += fmt::format(",framesz={},blocksz={}", slot, slot <= 4096 ? 65536u : slot);
    }
    const LogHold hold;
    if (rte_dev_probe(devargs.c_str()) != 0) {
      const std::string said = hold.said();
      fail(said.empty() ? fmt::format("DPDK cannot open it: {}", rte_strerror(rte_errno)) : said);
    }
  }
  if (name.starts_with("vdev:")) name.erase(0, 5);
  if (rte_eth_dev_get_port_by_name(name.c_str(), &id_) != 0) {
    std::uint16_t found = RTE_MAX_ETHPORTS;
    rte_dev_iterator iterator{};
    RTE_ETH_FOREACH_MATCHING_DEV(id_, devargs.c_str(), &iterator) {
      found = id_;
      rte_eth_iterator_cleanup(&iterator);
      break;
    }
    if (found == RTE_MAX_ETHPORTS)
      fail("no such device; a NIC must be bound to vfio-pci (or be one that needs no binding), see docs/nics.md");
    id_ = found;
  }
  opened_ = true;
}

void EthDevice::configure(const PortConfig& config) {
  const LogHold hold;
  const auto check = [&](int error, std::string_view what) {
    if (error == 0) return;
    const std::string said = hold.said();
    fail(fmt::format("{}: {}{}", what, rte_strerror(-error), said.empty() ? "" : "; " + said));
  };
  rte_eth_dev_info info{};
  check(rte_eth_dev_info_get(id_, &info), "cannot be asked what it is");
  driver_ = info.driver_name;
  // What is known of drivers: Intel's functions filter MAC control frames unless they are told otherwise.
  for (const char* filtering : {"net_i40e", "net_ice", "net_ixgbe", "net_iavf", "net_i40e_vf", "net_ixgbe_vf"})
    if (driver_ == filtering) passes_pfc_ = false;

  rte_eth_conf conf{};
  conf.rxmode.mtu = config.mtu != 0 ? config.mtu : 0;
  if (config.mtu != 0 && behind_kernel_interface(device_)) conf.rxmode.mtu = 0;  // set below, on the interface itself
  // Physical NICs ask for as much as the fabric may send; software devices have no such limit of their own.
  check(rte_eth_dev_configure(id_, 1, 1, &conf), "cannot be configured");
  std::uint16_t rx = descriptors, tx = descriptors;
  check(rte_eth_dev_adjust_nb_rx_tx_desc(id_, &rx, &tx), "takes no rings of 1024 descriptors");
  const int socket = rte_eth_dev_socket_id(id_);
  const unsigned node = socket < 0 ? 0u : static_cast<unsigned>(socket);
  check(rte_eth_rx_queue_setup(id_, 0, rx, node, nullptr, pool_.raw()), "receive queue");
  check(rte_eth_tx_queue_setup(id_, 0, tx, node, nullptr), "transmit queue");
  if (config.mtu != 0)
    check(rte_eth_dev_set_mtu(id_, static_cast<std::uint16_t>(config.mtu)), fmt::format("mtu {}", config.mtu));
  check(rte_eth_dev_start(id_), "cannot be started");
  // Where a driver knows nothing of it, everything arrives anyway.
  if (config.promiscuous) rte_eth_promiscuous_enable(id_);
  if (config.multicast) rte_eth_allmulticast_enable(id_);

  if (net_ != nullptr) {
    net_->adopt_packet_sockets();
    mtu_ = net_->mtu();
  } else {
    std::uint16_t mtu = 1500;
    rte_eth_dev_get_mtu(id_, &mtu);
    mtu_ = mtu;
    // Memory-backed devices carry whatever fits their buffers, and say 1500 without meaning it.
    for (const char* any : {"net_null", "net_ring", "net_pcap", "net_vhost", "net_memif", "net_virtio_user"})
      if (is_kind(device_, any) && config.mtu == 0) mtu_ = frame_limit_ - 14 - 8;
  }
  rte_ether_addr address{};
  rte_eth_macaddr_get(id_, &address);
  std::copy_n(address.addr_bytes, mac_.size(), mac_.begin());
  rte_eth_link link{};
  if (rte_eth_link_get_nowait(id_, &link) == 0 && link.link_speed != 0 && link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
    rate_bps_ = std::uint64_t{link.link_speed} * 1'000'000;
  // A tap's interface is often moved to another namespace, where its driver no longer finds it.
  link_is_known_ = is_pci_address(name_of(device_)) || is_kind(device_, "net_vhost") || is_kind(device_, "net_memif") ||
                   is_kind(device_, "net_virtio_user");
  rte_eth_stats_reset(id_);
}

bool EthDevice::link_up() const {
  if (net_ != nullptr) return net_->running();
  if (!link_is_known_) return true;
  rte_eth_link link{};
  return rte_eth_link_get_nowait(id_, &link) != 0 || link.link_status == RTE_ETH_LINK_UP;
}

std::array<std::uint64_t, port_losses> EthDevice::losses() const {
  std::array<std::uint64_t, port_losses> lost{};
  const auto at = [&lost](PortLoss reason) -> std::uint64_t& { return lost[static_cast<std::size_t>(reason)]; };
  rte_eth_stats stats{};
  if (rte_eth_stats_get(id_, &stats) == 0) {
    at(PortLoss::rx_missed) = stats.imissed;
    at(PortLoss::rx_no_buffer) = stats.rx_nombuf;
    at(PortLoss::rx_errors) = stats.ierrors;
    at(PortLoss::tx_errors) = stats.oerrors;
  }
  if (net_ != nullptr) at(PortLoss::rx_socket) = net_->socket_drops();
  return lost;
}

}  // namespace weft
