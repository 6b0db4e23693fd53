// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Where a frame goes: one forwarder a leaf, by bridging, routing or a static port map. It also parses and
// classifies, since both need the headers that it has just read. Its tables belong to its leaf alone.
#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "dataplane/config.h"
#include "dataplane/counters.h"
#include "dataplane/frame.h"
#include "dataplane/topology.h"

namespace weft {

using MacAddress = std::array<std::uint8_t, 6>;

/// An address that is known before the first frame: of a modelled or replayed host.
struct KnownHost {
  MacAddress mac{};
  std::uint32_t port = 0;
};

struct Verdict {
  enum class Kind : std::uint8_t { unicast, flood, filter, drop } kind = Kind::drop;
  DropReason drop = DropReason::malformed;
  FilterReason filter = FilterReason::link_local;
  std::uint32_t port = 0;  // unicast: the host port, fabric-wide number
};

class Forwarder {
 public:
  /// Throws std::invalid_argument for addresses or prefixes that cannot be read.
  static std::unique_ptr<Forwarder> make(const Topology& topology, const ForwardingConfig& forwarding,
                                         const ClassesConfig& classes, std::span<const KnownHost> known);
  virtual ~Forwarder() = default;

  /// A frame enters the fabric by host port frame->in_port. Fills traffic_class, l3_offset and ip_version; in route
  /// mode rewrites MACs and TTL. Reads no byte past the frame's first segment. A flood goes to every port but in_port.
  virtual Verdict ingress(Frame* frame, TimePs now) = 0;
  /// A frame leaves the fabric by a port of this leaf: its source address is learnt from where it entered.
  virtual void egress(const Frame* frame, TimePs now) = 0;
};

}  // namespace weft
