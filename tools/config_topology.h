// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The `topology:` section, and the names that the rest of a config uses for its ports and links.
#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/topology.h"
#include "tools/config_value.h"

namespace weft {

/// What `topology:` says, before it is spelled out link by link. The values are the defaults.
struct TopologyKeys {
  std::uint32_t leaves = 4, spines = 4, hosts_per_leaf = 4;
  LinkParams host_link{Rate{400'000'000'000}, 50_ns};
  LinkParams fabric_link{Rate{400'000'000'000}, 250_ns};
  std::uint32_t count = 1;  // of each leaf/spine pair
};

Topology make_topology(const TopologyKeys& keys);

/// Reads into and writes from `topology`, whose links all exist when a value bound to one is read.
Value topology_value(Topology& topology);

// Names in the rest of the config; the topology must have been read before them.
/// `leaf0:p1`, or the port's number.
Value port(std::uint32_t& target, const Topology& topology);
/// A list of ports; the word stands for the empty list.
Value port_list(std::vector<std::uint32_t>& target, const Topology& topology, std::string word);
/// A list of links, or one; the word, if there is one, stands for the empty list. A pair's name (`leaf0-spine1`) is all
/// of its parallel links.
Value link_list(std::vector<std::uint32_t>& target, const Topology& topology, std::string word);

}  // namespace weft
