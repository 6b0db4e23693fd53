// SPDX-License-Identifier: BSD-3-Clause
// What all three ways of forwarding share (length checks, parsing, class), and the static port map.
#include "dataplane/forward.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "dataplane/bridge.h"
#include "dataplane/classify.h"
#include "dataplane/parse.h"
#include "dataplane/route.h"

namespace weft {
namespace {

/// Forwards from one port to another, whatever the addresses say: a patch panel. MAC control is still the link's own
/// affair.
class PortMap {
 public:
  PortMap(const Topology& topology, const ForwardingConfig& forwarding) : out_(topology.host_ports(), no_port) {
    for (const auto& [in, out] : forwarding.fixed) {
      if (in >= out_.size() || out >= out_.size())
        throw std::invalid_argument("static forwarding " + std::to_string(in) + " -> " + std::to_string(out) +
                                    ": host ports are 0 to " + std::to_string(out_.size() - 1));
      if (out_[in] != no_port && out_[in] != out)
        throw std::invalid_argument("static forwarding sends port " + std::to_string(in) + " to two ports, " +
                                    std::to_string(out_[in]) + " and " + std::to_string(out));
      out_[in] = out;
    }
  }
  Verdict ingress(const Frame* frame, const ParsedHeaders& headers, TimePs) const {
    if (headers.mac_control) return {.kind = Verdict::Kind::filter, .filter = FilterReason::mac_control};
    if (out_[frame->in_port] == no_port) return {.kind = Verdict::Kind::filter, .filter = FilterReason::unmapped_port};
    return {.kind = Verdict::Kind::unicast, .port = out_[frame->in_port]};
  }
  void egress(const Frame*, TimePs) const {}

 private:
  std::vector<std::uint32_t> out_;  // [host port]
};

template <typename Way>
class LeafForwarder final : public Forwarder {
 public:
  LeafForwarder(const ForwardingConfig& forwarding, const ClassesConfig& classes, Way way)
      : mtu_(forwarding.mtu), classes_(classes), way_(std::move(way)) {}

  Verdict ingress(Frame* frame, TimePs now) override {
    const std::uint32_t available = std::min<std::uint32_t>(mbuf_of(frame)->data_len, frame->length);
    frame->traffic_class = frame->l3_offset = frame->ip_version = 0;
    if (available < ethernet_header_bytes) [[unlikely]]
      return {.kind = Verdict::Kind::drop, .drop = DropReason::runt};
    const ParsedHeaders headers = parse(bytes_of(frame), available, frame->length);
    frame->traffic_class = classify(headers, classes_);
    frame->l3_offset = headers.l3_offset;
    frame->ip_version = headers.ip_version;
    if (frame->length > mtu_) [[unlikely]] {
      constexpr std::uint32_t forgiven_tags = 2;
      if (frame->length > mtu_ + 4 * std::min<std::uint32_t>(headers.tags, forgiven_tags))
        return {.kind = Verdict::Kind::drop, .drop = DropReason::mtu_exceeded};
    }
    return way_.ingress(frame, headers, now);
  }
  void egress(const Frame* frame, TimePs now) override { way_.egress(frame, now); }

 private:
  std::uint32_t mtu_;
  ClassesConfig classes_;
  Way way_;
};

}  // namespace

std::unique_ptr<Forwarder> Forwarder::make(const Topology& topology, const ForwardingConfig& forwarding,
                                           const ClassesConfig& classes, std::span<const KnownHost> known) {
  for (const KnownHost& host : known)
    if (host.port >= topology.host_ports())
      throw std::invalid_argument("a known host is on port " + std::to_string(host.port) + "; host ports are 0 to " +
                                  std::to_string(topology.host_ports() - 1));
  switch (forwarding.mode) {
    case ForwardingMode::bridge:
      return std::make_unique<LeafForwarder<Bridge>>(forwarding, classes, Bridge(topology, forwarding, known));
    case ForwardingMode::route:
      return std::make_unique<LeafForwarder<Router>>(forwarding, classes, Router(topology, forwarding, known));
    case ForwardingMode::fixed:
      return std::make_unique<LeafForwarder<PortMap>>(forwarding, classes, PortMap(topology, forwarding));
  }
  throw std::invalid_argument("unknown forwarding mode");
}

}  // namespace weft
