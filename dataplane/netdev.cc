// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/netdev.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/if_packet.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <span>
#include <stdexcept>
#include <string_view>
#include <thread>

extern "C" unsigned int if_nametoindex(const char*);  // <net/if.h>, which contradicts <linux/if.h>

namespace weft {
namespace {

namespace fs = std::filesystem;

ifreq request_for(const std::string& name) {
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  return request;
}

std::optional<int> flags_of(int socket, const std::string& name) {
  ifreq request = request_for(name);
  if (ioctl(socket, SIOCGIFFLAGS, &request) != 0) return std::nullopt;
  return request.ifr_flags;
}

bool set_flags(int socket, const std::string& name, int set, int clear) {
  const auto flags = flags_of(socket, name);
  if (!flags) return false;
  ifreq request = request_for(name);
  request.ifr_flags = static_cast<short>((*flags | set) & ~clear);
  return ioctl(socket, SIOCSIFFLAGS, &request) == 0;
}

std::optional<std::uint32_t> ethtool(int socket, const std::string& name, std::uint32_t command,
                                     std::uint32_t value = 0) {
  struct ethtool_value request_value {};
  request_value.cmd = command;
  request_value.data = value;
  ifreq request = request_for(name);
  request.ifr_data = reinterpret_cast<char*>(&request_value);
  if (ioctl(socket, SIOCETHTOOL, &request) != 0) return std::nullopt;
  return request_value.data;
}

/// One request to the kernel's routing socket and its answer.
class RouteSocket {
 public:
  RouteSocket() : socket_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)) {}
  ~RouteSocket() {
    if (socket_ >= 0) close(socket_);
  }
  RouteSocket(const RouteSocket&) = delete;
  RouteSocket& operator=(const RouteSocket&) = delete;

  /// `header` is the message's own; attributes are added. The answer's type, 0 where it failed.
  template <typename Header>
  int ask(std::uint16_t type, std::uint16_t flags, const Header& header,
          std::initializer_list<std::pair<std::uint16_t, std::uint32_t>> attributes) {
    std::array<char, 256> out{};
    auto* const message = reinterpret_cast<nlmsghdr*>(out.data());
    message->nlmsg_type = type;
    message->nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
    message->nlmsg_len = NLMSG_LENGTH(sizeof header);
    std::memcpy(NLMSG_DATA(message), &header, sizeof header);
    for (const auto& [kind, value] : attributes) {
      auto* const attribute = reinterpret_cast<rtattr*>(out.data() + NLMSG_ALIGN(message->nlmsg_len));
      attribute->rta_type = kind;
      attribute->rta_len = RTA_LENGTH(sizeof value);
      std::memcpy(RTA_DATA(attribute), &value, sizeof value);
      message->nlmsg_len = NLMSG_ALIGN(message->nlmsg_len) + RTA_LENGTH(sizeof value);
    }
    if (send(socket_, out.data(), message->nlmsg_len, 0) < 0) return 0;
    const ssize_t length = recv(socket_, in_.data(), in_.size(), 0);
    auto* const answer = reinterpret_cast<nlmsghdr*>(in_.data());
    if (length < static_cast<ssize_t>(sizeof *answer)) return 0;
    if (answer->nlmsg_type != NLMSG_ERROR) return answer->nlmsg_type;
    const auto* const error = static_cast<const nlmsgerr*>(NLMSG_DATA(answer));
    return error->error == 0 ? NLMSG_ERROR : 0;  // an error of 0 is an acknowledgement
  }
  /// Of the last answer.
  template <typename Header>
  [[nodiscard]] std::optional<std::int32_t> attribute(std::uint16_t kind) const {
    const auto* const answer = reinterpret_cast<const nlmsghdr*>(in_.data());
    const char* at = in_.data() + NLMSG_LENGTH(NLMSG_ALIGN(sizeof(Header)));
    const char* const end = in_.data() + answer->nlmsg_len;
    while (at + sizeof(rtattr) <= end) {
      rtattr head;
      std::memcpy(&head, at, sizeof head);
      if (head.rta_len < sizeof head) break;
      if (head.rta_type == kind && head.rta_len >= RTA_LENGTH(4)) {
        std::int32_t value = 0;
        std::memcpy(&value, at + RTA_LENGTH(0), sizeof value);
        return value;
      }
      at += RTA_ALIGN(head.rta_len);
    }
    return std::nullopt;
  }

 private:
  int socket_;
  alignas(8) std::array<char, 16384> in_{};
};

/// Files that stand for network namespaces: named ones, then those of processes.
std::vector<fs::path> namespace_files() {
  std::vector<fs::path> files;
  std::error_code none;
  for (const char* folder : {"/run/netns", "/run/docker/netns"})
    for (const auto& entry : fs::directory_iterator(folder, none)) files.push_back(entry.path());
  for (const auto& entry : fs::directory_iterator("/proc", none))
    if (std::isdigit(static_cast<unsigned char>(entry.path().filename().native()[0])) != 0)
      files.push_back(entry.path() / "ns/net");
  return files;
}

/// An open file of the namespace that this one knows by the number `id`, or -1.
int open_namespace(std::int32_t id) {
  std::set<ino_t> seen;
  RouteSocket route;
  for (const fs::path& path : namespace_files()) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    struct stat status {};
    if (fstat(file, &status) == 0 && seen.insert(status.st_ino).second &&
        route.ask(RTM_GETNSID, 0, rtgenmsg{}, {{NETNSA_FD, static_cast<std::uint32_t>(file)}}) == RTM_NEWNSID &&
        route.attribute<rtgenmsg>(NETNSA_NSID) == id)
      return file;
    close(file);
  }
  return -1;
}

/// One segment is the most that a packet may be cut into by the device: the kernel cuts longer ones itself, before.
bool forbid_segmentation(int index) {
  ifinfomsg link{};
  link.ifi_index = index;
  return RouteSocket().ask(RTM_SETLINK, NLM_F_ACK, link, {{IFLA_GSO_MAX_SEGS, 1}}) == NLMSG_ERROR;
}

/// The far end of a veth pair sends frames as long as 64 KiB to a device that it thinks can cut them. Empty: done.
std::string forbid_segmentation_of_peer(const std::string& name, int index) {
  RouteSocket route;
  ifinfomsg link{};
  link.ifi_index = index;
  if (route.ask(RTM_GETLINK, 0, link, {}) != RTM_NEWLINK) return "";
  const auto peer = route.attribute<ifinfomsg>(IFLA_LINK);
  const auto id = route.attribute<ifinfomsg>(IFLA_LINK_NETNSID);
  if (!peer || *peer == 0 || (!id && *peer == index)) return "";  // no pair
  bool done = false;
  if (!id) {
    done = forbid_segmentation(*peer);
  } else if (const int space = open_namespace(*id); space >= 0) {
    // A thread has a network namespace of its own, and this one ends with it.
    std::thread([&] { done = setns(space, CLONE_NEWNET) == 0 && forbid_segmentation(*peer); }).join();
    close(space);
  }
  if (done) return "";
  return fmt::format(
      "{}: its far end may send frames longer than its MTU, which are lost here, and weft is not allowed to change "
      "that; there: ip link set DEVICE gso_max_segs 1",
      name);
}

}  // namespace

// The abstract socket namespace belongs to the network namespace, so the same name may be used in another one.
PortLock::PortLock(const std::string& name) : socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = ("weft/" + name).substr(0, sizeof address.sun_path - 1);
  path.copy(address.sun_path + 1, path.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
  if (socket_ >= 0 && bind(socket_, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    close(socket_);
    socket_ = -1;
  }
}

PortLock::~PortLock() {
  if (socket_ >= 0) close(socket_);
}

NetDevice::NetDevice(const std::string& name)
    : name_(name),
      index_(static_cast<int>(if_nametoindex(name.c_str()))),
      control_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  if (index_ != 0) return;
  if (control_ >= 0) close(control_);
  throw std::runtime_error(fmt::format("there is no network interface '{}' in this network namespace", name));
}

NetDevice::~NetDevice() {
  if (had_gro_) ethtool(control_, name_, ETHTOOL_SGRO, 1);
  const int undo = (was_up_ ? 0 : IFF_UP) | (was_promiscuous_ ? 0 : IFF_PROMISC);
  if (undo != 0) set_flags(control_, name_, 0, undo);
  close(control_);
}

std::uint32_t NetDevice::mtu() const {
  ifreq request = request_for(name_);
  return ioctl(control_, SIOCGIFMTU, &request) == 0 ? static_cast<std::uint32_t>(request.ifr_mtu) : 1500;
}

bool NetDevice::running() const {
  const auto flags = flags_of(control_, name_);
  return flags && (*flags & IFF_UP) != 0 && (*flags & IFF_RUNNING) != 0;
}

std::vector<std::string> NetDevice::prepare() {
  std::vector<std::string> notes;
  const int flags = flags_of(control_, name_).value_or(IFF_UP | IFF_PROMISC);
  was_up_ = (flags & IFF_UP) != 0;
  was_promiscuous_ = (flags & IFF_PROMISC) != 0;
  if (!was_up_ && !set_flags(control_, name_, IFF_UP, 0))
    notes.push_back(fmt::format("{} is down and cannot be set up: {}", name_, std::strerror(errno)));
  if (ethtool(control_, name_, ETHTOOL_GGRO).value_or(0) != 0) {
    had_gro_ = ethtool(control_, name_, ETHTOOL_SGRO, 0).has_value();
    if (!had_gro_)
      notes.push_back(
          fmt::format("{} joins received frames (GRO) and that cannot be turned off: {}", name_, std::strerror(errno)));
  }
  if (const std::string note = forbid_segmentation_of_peer(name_, index_); !note.empty()) notes.push_back(note);
  return notes;
}

void NetDevice::adopt_packet_sockets() {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd", none)) {
    const int fd = std::atoi(entry.path().filename().c_str());
    int domain = 0;
    socklen_t length = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0 || domain != AF_PACKET) continue;
    sockaddr_ll address{};
    length = sizeof address;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0 || address.sll_ifindex != index_) continue;
    const int on = 1;
    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on);
    packet_sockets_.push_back(fd);
  }
  static_cast<void>(socket_drops());  // reading it sets it back
  dropped_ = 0;
}

std::uint64_t NetDevice::socket_drops() const {
  for (const int fd : packet_sockets_) {
    tpacket_stats stats{};
    socklen_t length = sizeof stats;
    if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &length) == 0) dropped_ += stats.tp_drops;
  }
  return dropped_;
}

}  // namespace weft
