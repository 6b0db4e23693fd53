// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/host_port.h"

#include <algorithm>

namespace weft {

HostPort::HostPort(std::uint32_t port, const LinkParams& link, const ClassesConfig& classes, TimePs latency,
                   std::uint32_t cut_through_bytes)
    : port_(port),
      link_(link),
      latency_(latency),
      reaction_(classes.pfc_reaction != 0 ? classes.pfc_reaction : default_reaction_time(link.rate)),
      cut_through_bytes_(cut_through_bytes),
      clock_(link.rate),
      pauses_(link.rate, classes.lossless) {}

void HostPort::add_source(std::unique_ptr<FrameSource> source, FramePool* pool) {
  sources_.push_back({std::move(source), pool});
  choose();
}

// The stream whose next frame can start first; the one that was ready first where several wait for the wire.
void HostPort::choose() {
  start_ = never;
  TimePs chosen_ready = never;
  for (std::uint32_t i = 0; i < sources_.size(); ++i) {
    const FrameSource& source = *sources_[i].source;
    if (source.ready == never) continue;
    // The wire may have become free, and the frame have started, before a pause that is known by now.
    const TimePs start = pauses_.may_start(source.traffic_class, std::max(source.ready, free_at_));
    const TimePs ready = source.urgent ? 0 : source.ready;
    if (start < start_ || (start == start_ && ready < chosen_ready)) {
      start_ = start;
      chosen_ready = ready;
      chosen_ = i;
    }
  }
  if (start_ == never) {
    admission_ = never;
    return;
  }
  const std::uint32_t bytes = sources_[chosen_].source->next_length + ethernet_overhead_bytes;
  WireClock ahead = clock_;
  const TimePs until_known =
      cut_through_bytes_ != 0 && cut_through_bytes_ < bytes ? clock_.time_of(cut_through_bytes_) : ahead.take(bytes);
  admission_ = start_ + until_known + link_.delay + latency_;
}

Frame* HostPort::take() {
  Source& from = sources_[chosen_];
  const std::uint32_t bytes = from.source->next_length + ethernet_overhead_bytes;
  Frame* frame = from.source->take(*from.pool);
  const TimePs start = start_;
  const std::uint64_t id = ordinal_++;
  free_at_ = start + clock_.take(bytes);
  wire_bytes_sent_ += bytes;
  choose();
  if (frame == nullptr) return nullptr;
  frame->id = (std::uint64_t{port_} << 40) | id;
  frame->born = start;
  frame->in_port = port_;
  return frame;
}

void HostPort::pause_sent(const PfcFrame& frame, TimePs sent) { pending_.add(sent + link_.delay + reaction_, frame); }

void HostPort::apply_pause() {
  const TimePs at = pending_.next();
  pauses_.receive(pending_.take(), at);
  if (start_ > at || start_ == never) choose();
}

}  // namespace weft
