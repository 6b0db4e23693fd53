// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/topology.h"

#include <algorithm>

namespace weft {

TimePs longest_window(const Topology& topology) {
  TimePs least = 2_us;  // longer ones would gain nothing and outgrow the cache
  for (const FabricLink& link : topology.fabric_links) least = std::min(least, link.params.delay);
  return least;
}

std::string port_name(const Topology& topology, std::uint32_t port) {
  return "leaf" + std::to_string(topology.leaf_of(port)) + ":p" + std::to_string(topology.local_of(port));
}

std::string link_name(const Topology& topology, std::uint32_t link) {
  const std::uint32_t parallel = link % topology.parallel_links;
  const std::uint32_t pair = link / topology.parallel_links;
  std::string name =
      "leaf" + std::to_string(pair / topology.spines) + "-spine" + std::to_string(pair % topology.spines);
  return topology.parallel_links == 1 ? name : name + "." + std::to_string(parallel);
}

}  // namespace weft
