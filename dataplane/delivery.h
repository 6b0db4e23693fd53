// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What came out at the host ports of one leaf: frames, bytes, order and latency, by flow (source port, destination
// port). Latency is from the first bit leaving the source host to the last bit reaching the destination host.
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/frame.h"
#include "dataplane/histogram.h"
#include "dataplane/results.h"
#include "dataplane/topology.h"

namespace weft {

class DeliveryRecord {
 public:
  /// Frames born before `warmup` count, but not in latencies. A flow has percentiles of its own where a run has few
  /// flows.
  DeliveryRecord(const Topology& topology, std::uint32_t leaf, TimePs warmup);

  void delivered(const Frame* frame, TimePs at) {
    Flow& flow = flow_of(frame);
    ++flow.frames;
    flow.bytes += frame->length;
    flow.first_sent = frame->born < flow.first_sent ? frame->born : flow.first_sent;
    flow.last_delivered = at;
    std::uint64_t& last = flow.last_id[frame->traffic_class];
    if (frame->id < last) [[unlikely]]
      ++flow.out_of_order;
    else
      last = frame->id;
    if (frame->born >= warmup_) (flow.latency != nullptr ? *flow.latency : rest_).add(at - frame->born);
  }

  void add_to(RunResult& result, Histogram& all) const;

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr std::size_t flows_with_latency = 256;  // of a leaf: a histogram takes some 50 KB

  struct Flow {
    std::uint64_t frames = 0, bytes = 0, out_of_order = 0;
    TimePs first_sent = never, last_delivered = 0;
    std::unique_ptr<Histogram> latency;
    std::uint64_t last_id[traffic_classes] = {};
    std::uint32_t source = 0, destination = 0;
  };
  Flow& flow_of(const Frame* frame) {
    std::vector<std::uint32_t>& row = index_[frame->out_port - first_port_];
    if (row.empty()) [[unlikely]]
      row.assign(ports_, none);
    std::uint32_t& index = row[frame->in_port];
    if (index == none) [[unlikely]]
      index = add_flow(frame);
    return flows_[index];
  }
  std::uint32_t add_flow(const Frame* frame);

  std::uint32_t first_port_, ports_;
  TimePs warmup_;
  std::vector<std::vector<std::uint32_t>> index_;  // [local destination][source]
  std::vector<Flow> flows_;
  Histogram rest_;
};

}  // namespace weft
