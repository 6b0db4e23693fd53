// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/live_port.h"

#include <rte_ethdev.h>

#include <algorithm>

#include "dataplane/classify.h"
#include "dataplane/partial_checksum.h"
#include "dataplane/pfc_accounting.h"

namespace weft {

Frame* LiveQueue::take(FramePool& /*pool*/) {
  Frame* frame = queue_.pop();
  bytes_ -= frame->length;
  --frames_;
  show();
  return frame;
}

LivePort::LivePort(const PortConfig& config, const std::string& name, EthDevice& device, const ClassesConfig& classes,
                   std::uint32_t dilation)
    : port_(config.port),
      name_(name),
      config_(config),
      device_(device),
      classes_(classes),
      longest_(device.longest_frame()),
      queue_bytes_(config.queue_bytes),
      pause_refresh_(pause_time(max_quanta, Rate{device.link_rate_bps()}) / 2 / dilation),
      link_interval_(100_ms / dilation),
      sends_pfc_(config.pfc == PfcAbility::automatic
                     ? device.passes_pfc_out()
                     : config.pfc == PfcAbility::send || config.pfc == PfcAbility::both),
      receives_pfc_(config.pfc == PfcAbility::automatic
                        ? device.passes_pfc_in()
                        : config.pfc == PfcAbility::receive || config.pfc == PfcAbility::both),
      link_up_(device.link_up()) {}

LivePort::~LivePort() {
  while (!ahead_.empty()) free_frame(ahead_.pop());
  for (std::uint32_t i = 0; i < out_count_; ++i) rte_pktmbuf_free(out_[i]);
}

std::vector<std::unique_ptr<FrameSource>> LivePort::make_sources() {
  std::vector<std::unique_ptr<FrameSource>> sources;
  const auto add = [&](std::unique_ptr<LiveQueue> queue) {
    LiveQueue* const made = queue.get();
    sources.push_back(std::move(queue));
    return made;
  };
  for (std::uint8_t c = 0; c < traffic_classes; ++c) queues_[c] = add(std::make_unique<LiveQueue>(c));
  // Of a class that is never paused.
  std::uint8_t lossy = 0;
  while (lossy + 1u < traffic_classes && classes_.lossless[lossy]) ++lossy;
  control_ = add(std::make_unique<LiveQueue>(lossy, true));
  return sources;
}

// From the device.

void LivePort::poll(TimePs now) {
  if (now >= next_link_look_) look_at_link(now);
  pause_host(now);
  if (ahead_count_ + burst > most_ahead) return;
  // One burst: what is more waits in the device until the next turn, so that the working set stays small.
  rte_mbuf* mbufs[burst];
  const std::uint16_t count = rte_eth_rx_burst(device_.id(), 0, mbufs, burst);
  for (std::uint16_t i = 0; i < count; ++i) {
    if (i + 1 < count) __builtin_prefetch(rte_pktmbuf_mtod(mbufs[i + 1], const void*));
    take_in(mbufs[i], now);
  }
}

void LivePort::take_in(rte_mbuf* mbuf, TimePs now) {
  const std::uint32_t length = mbuf->pkt_len;
  if (length > longest_) [[unlikely]] {
    ++oversize_;
    rte_pktmbuf_free(mbuf);
    return;
  }
  // Offload flags of the receiving side mean nothing to a sending one.
  mbuf->ol_flags &= RTE_MBUF_F_EXTERNAL | RTE_MBUF_F_INDIRECT;
  Frame* const frame = frame_of(mbuf);
  *frame = Frame{};
  frame->length = length;
  frame->queued = now;
  const std::span<std::uint8_t> bytes{bytes_of(frame), mbuf->data_len};
  if (bytes.size() >= 14 && bytes[12] == 0x88 && bytes[13] == 0x08) [[unlikely]] {
    frame->flags = live_control;
  } else {
    if (mbuf->nb_segs == 1 && complete_checksum(bytes)) ++checksums_;
    frame->traffic_class = classify_bytes(bytes, classes_);
  }
  ++rx_frames_;
  rx_bytes_ += length;
  ahead_.push(frame);
  ++ahead_count_;
}

void LivePort::look_at_link(TimePs now) {
  next_link_look_ = now + link_interval_;
  const bool up = device_.link_up();
  if (link_up_ && !up) ++link_losses_;
  link_up_ = up;
}

// A queue that runs full is the real host's to stop, where pause frames reach it.
void LivePort::pause_host(TimePs now) {
  if (!sends_pfc_) return;
  std::uint8_t stop = 0, go = 0;
  for (std::uint32_t c = 0; c < traffic_classes; ++c) {
    if (!classes_.lossless[c]) continue;
    const auto bit = static_cast<std::uint8_t>(1u << c);
    const std::uint64_t bytes = queues_[c]->bytes();
    if ((paused_ & bit) == 0 ? bytes > queue_bytes_ / 2 : bytes > queue_bytes_ / 4)
      stop |= bit;
    else if ((paused_ & bit) != 0)
      go |= bit;
  }
  if (const auto fresh = static_cast<std::uint8_t>(stop & ~paused_);
      fresh != 0 || (stop != 0 && now >= next_refresh_)) {
    transmit_pfc(pfc_for(stop, true));
    next_refresh_ = now + pause_refresh_;
  }
  if (go != 0) transmit_pfc(pfc_for(go, false));
  paused_ = stop;
}

// To the device.

void LivePort::transmit_pfc(const PfcFrame& pfc) {
  if (!sends_pfc_ || !link_up_) return;
  const auto bytes = build_pfc(device_.mac(), pfc);
  Frame* frame = device_.pool().take(static_cast<std::uint32_t>(bytes.size()));
  if (frame == nullptr) {
    ++refused_;
    return;
  }
  std::copy(bytes.begin(), bytes.end(), bytes_of(frame));
  ++pfc_sent_;
  transmit(frame);
}

void LivePort::flush() {
  if (out_count_ == 0) return;
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < out_count_; ++i) bytes += out_[i]->pkt_len;
  std::uint32_t sent = 0;
  for (std::uint32_t tries = 0; sent < out_count_ && tries <= tx_retries; ++tries)
    sent += rte_eth_tx_burst(device_.id(), 0, &out_[sent], static_cast<std::uint16_t>(out_count_ - sent));
  for (std::uint32_t i = sent; i < out_count_; ++i) {
    bytes -= out_[i]->pkt_len;
    rte_pktmbuf_free(out_[i]);
  }
  refused_ += out_count_ - sent;
  tx_frames_ += sent;
  tx_bytes_ += bytes;
  out_count_ = 0;
}

PortResult LivePort::result() const {
  PortResult result;
  result.name = name_;
  result.device = config_.device;
  result.driver = device_.driver();
  result.pfc = sends_pfc_ ? (receives_pfc_ ? "send, receive" : "send") : (receives_pfc_ ? "receive" : "neither");
  result.mtu = device_.mtu();
  result.rx_frames = rx_frames_, result.rx_bytes = rx_bytes_;
  result.tx_frames = tx_frames_, result.tx_bytes = tx_bytes_;
  result.waiting = ahead_count_ + control_->frames();
  for (const LiveQueue* queue : queues_) result.waiting += queue->frames();
  result.completed_checksums = checksums_;
  result.pfc_sent = pfc_sent_, result.pfc_received = pfc_received_;
  result.link_losses = link_losses_;
  result.link_up = device_.link_up();
  result.lost = device_.losses();
  result.lost[static_cast<std::size_t>(PortLoss::tx_refused)] += refused_;
  result.lost[static_cast<std::size_t>(PortLoss::rx_oversize)] += oversize_;
  return result;
}

}  // namespace weft
