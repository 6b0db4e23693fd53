// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A live port: a DPDK device as the host at the end of a host link. What comes in from the device is stamped with the
// emulated time of its poll, waits in the host's queue of its class, and is spaced out by the emulated link like any
// host's frames. What the fabric delivers to the port goes out to the device.
//
// A host that is faster than its emulated link fills its queue. For a lossless class it is sent real pause frames, if
// the device passes them; beyond the queue's bound its frames are dropped with a named reason. An emulator that is
// late stops taking frames instead, so that the loss happens in the device and is counted as the emulator's own.
//
// All of it happens on the worker that advances the port's leaf.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/counters.h"
#include "dataplane/ethdev.h"
#include "dataplane/frame.h"
#include "dataplane/frame_pool.h"
#include "dataplane/pfc.h"
#include "dataplane/results.h"
#include "dataplane/source.h"

namespace weft {

/// The host's queue of one class.
class LiveQueue final : public FrameSource {
 public:
  explicit LiveQueue(std::uint8_t in_class, bool first = false) {
    traffic_class = in_class;
    urgent = first;
  }
  /// Frame::queued says when it is ready.
  void push(Frame* frame) {
    queue_.push(frame);
    bytes_ += frame->length;
    ++frames_;
    show();
  }
  Frame* take(FramePool& pool) override;
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t frames() const { return frames_; }

 private:
  void show() {
    ready = queue_.empty() ? never : queue_.head->queued;
    if (!queue_.empty()) next_length = queue_.head->length;
  }
  FrameQueue queue_;
  std::uint64_t bytes_ = 0, frames_ = 0;
};

class LivePort {
 public:
  static constexpr std::uint32_t burst = 32;
  /// Frames that may be between the device and the host's queue. More only gather where emulated time is late.
  static constexpr std::uint32_t most_ahead = 2048;

  /// `device` outlives the port. `dilation` of the clock: how pause times in real time relate to emulated ones.
  LivePort(const PortConfig& config, const std::string& name, EthDevice& device, const ClassesConfig& classes,
           std::uint32_t dilation);
  ~LivePort();
  LivePort(const LivePort&) = delete;
  LivePort& operator=(const LivePort&) = delete;

  /// One source for each class and one for MAC control, to be given to the host port once.
  std::vector<std::unique_ptr<FrameSource>> make_sources();

  /// Takes frames from the device; all are ready at emulated time `now`.
  void poll(TimePs now);
  /// When the first frame that has been taken reaches the host's queue; never: none.
  [[nodiscard]] TimePs earliest() const { return ahead_.empty() ? never : ahead_.head->queued; }
  /// Moves what is ready before `until` into the host's queues; drop(frame, reason) for what finds its queue full,
  /// ignore(frame) for MAC control that the port does not pass on. True if anything was moved.
  template <typename Drop, typename Ignore>
  bool arrive(TimePs until, Drop&& drop, Ignore&& ignore) {
    bool moved = false;
    while (!ahead_.empty() && ahead_.head->queued < until) {
      Frame* frame = ahead_.pop();
      --ahead_count_;
      LiveQueue* queue = control_;
      if ((frame->flags & live_control) != 0) [[unlikely]] {
        frame->flags = 0;
        if (!receives_pfc_) {
          ignore(frame);
          continue;
        }
        ++pfc_received_;
      } else {
        queue = queues_[frame->traffic_class];
        if (queue->bytes() + frame->length > queue_bytes_) [[unlikely]] {
          drop(frame, DropReason::host_queue);
          continue;
        }
      }
      queue->push(frame);
      moved = true;
    }
    return moved;
  }

  /// Why a frame cannot leave by this port, or nothing.
  [[nodiscard]] bool link_up() const { return link_up_; }
  [[nodiscard]] std::uint32_t longest() const { return longest_; }
  /// Frame goes to the device with the next flush.
  void transmit(Frame* frame) {
    if (out_count_ == out_.size()) [[unlikely]]
      flush();
    out_[out_count_++] = mbuf_of(frame);
  }
  /// A pause frame of the fabric's, where the device passes them.
  void transmit_pfc(const PfcFrame& pfc);
  void flush();

  [[nodiscard]] std::uint32_t port() const { return port_; }
  [[nodiscard]] FramePool* pool() const { return &device_.pool(); }
  /// After the run.
  [[nodiscard]] PortResult result() const;

 private:
  static constexpr std::uint8_t live_control = 0x80;  // Frame::flags, only until it arrives
  static constexpr std::uint32_t tx_retries = 16;
  static constexpr std::uint64_t control_bytes_max = 1 << 16;

  void take_in(rte_mbuf* mbuf, TimePs now);
  void look_at_link(TimePs now);
  void pause_host(TimePs now);
  void send_bytes(const std::uint8_t* bytes, std::uint32_t length);

  const std::uint32_t port_;
  const std::string name_;
  const PortConfig config_;
  EthDevice& device_;
  const ClassesConfig classes_;
  const std::uint32_t longest_;
  const std::uint64_t queue_bytes_;
  const TimePs pause_refresh_, link_interval_;
  bool sends_pfc_, receives_pfc_, link_up_ = true;
  std::array<LiveQueue*, traffic_classes> queues_{};
  LiveQueue* control_ = nullptr;
  FrameQueue ahead_;
  std::uint32_t ahead_count_ = 0;
  std::array<rte_mbuf*, 64> out_{};
  std::uint32_t out_count_ = 0;
  std::uint8_t paused_ = 0;  // classes that the real host has been told to stop
  TimePs next_refresh_ = 0, next_link_look_ = 0;
  std::uint64_t rx_frames_ = 0, rx_bytes_ = 0, tx_frames_ = 0, tx_bytes_ = 0, refused_ = 0, oversize_ = 0;
  std::uint64_t checksums_ = 0, pfc_sent_ = 0, pfc_received_ = 0, link_losses_ = 0;
};

}  // namespace weft
