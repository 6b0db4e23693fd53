// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The shape of a leaf/spine fabric, as plain data: what is joined to what, at which rate and delay.
// Every fabric is built from it. Names are `leaf0:p3` for host ports, `leaf0-spine1` for fabric links
// (`leaf0-spine1.2` is the third of several parallel ones).
#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/time.h"

namespace weft {

struct LinkParams {
  Rate rate{};
  TimePs delay = 0;  // propagation, one way
  bool operator==(const LinkParams&) const = default;
};

/// One cable between a leaf and a spine: two directions with the same rate and delay.
struct FabricLink {
  std::uint32_t leaf = 0, spine = 0, parallel = 0;  // `parallel` counts links of the same pair from 0
  LinkParams params;
  bool operator==(const FabricLink&) const = default;
};

struct Topology {
  std::uint32_t leaves = 0, spines = 0, hosts_per_leaf = 0;
  std::uint32_t parallel_links = 1;      // fabric links of each leaf/spine pair
  std::vector<LinkParams> host_links;    // [host port], size leaves * hosts_per_leaf
  std::vector<FabricLink> fabric_links;  // index = (leaf * spines + spine) * parallel_links + parallel

  [[nodiscard]] std::uint32_t host_ports() const { return leaves * hosts_per_leaf; }
  [[nodiscard]] std::uint32_t leaf_of(std::uint32_t port) const { return port / hosts_per_leaf; }
  [[nodiscard]] std::uint32_t local_of(std::uint32_t port) const { return port % hosts_per_leaf; }
  [[nodiscard]] std::uint32_t link_index(std::uint32_t leaf, std::uint32_t spine, std::uint32_t parallel) const {
    return (leaf * spines + spine) * parallel_links + parallel;
  }
  bool operator==(const Topology&) const = default;
};

/// Longest window in which leaves and spines can be advanced apart: the least delay of a fabric link, at most 2 us.
TimePs longest_window(const Topology& topology);
/// `leaf2:p1`
std::string port_name(const Topology& topology, std::uint32_t port);
/// `leaf0-spine1`, or `leaf0-spine1.2` where links run in parallel
std::string link_name(const Topology& topology, std::uint32_t link);

}  // namespace weft
