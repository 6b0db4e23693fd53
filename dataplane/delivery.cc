// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/delivery.h"

#include <algorithm>

namespace weft {

DeliveryRecord::DeliveryRecord(const Topology& topology, std::uint32_t leaf, TimePs warmup)
    : first_port_(leaf * topology.hosts_per_leaf),
      ports_(topology.host_ports()),
      warmup_(warmup),
      index_(topology.hosts_per_leaf) {}

std::uint32_t DeliveryRecord::add_flow(const Frame* frame) {
  Flow& flow = flows_.emplace_back();
  flow.source = frame->in_port;
  flow.destination = frame->out_port;
  if (flows_.size() <= flows_with_latency) flow.latency = std::make_unique<Histogram>();
  return static_cast<std::uint32_t>(flows_.size() - 1);
}

void DeliveryRecord::add_to(RunResult& result, Histogram& all) const {
  for (const Flow& flow : flows_) {
    FlowResult& out = result.flows.emplace_back();
    out.source = flow.source;
    out.destination = flow.destination;
    out.frames = flow.frames;
    out.bytes = flow.bytes;
    out.out_of_order = flow.out_of_order;
    out.first_sent = flow.first_sent;
    out.last_delivered = flow.last_delivered;
    result.last_delivered = std::max(result.last_delivered, flow.last_delivered);
    if (flow.latency != nullptr) {
      out.latency = flow.latency->summary();
      all.merge(*flow.latency);
    }
  }
  all.merge(rest_);
}

}  // namespace weft
