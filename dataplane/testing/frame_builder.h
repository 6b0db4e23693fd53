// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Packets for tests, built layer by layer, each with a sentence that says what it shows; and frames around them in
// plain heap memory, laid out as the pool's are, so that no EAL is needed.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataplane/frame.h"

namespace weft::testing {

using Bytes = std::vector<std::uint8_t>;

/// Layers are given from the outside in; lengths and checksums are filled in by build().
class Packet {
 public:
  explicit Packet(std::string shows) : shows_(std::move(shows)) {}

  Packet& eth(std::uint64_t destination, std::uint64_t source);
  Packet& vlan(std::uint16_t id, std::uint8_t pcp = 0, std::uint16_t type = 0x8100);
  Packet& type(std::uint16_t ether_type);
  /// 802.3 with LLC/SNAP in place of an EtherType.
  Packet& snap(std::uint16_t ether_type);
  /// `tos` is DSCP << 2 | ECN.
  Packet& ipv4(std::uint32_t source, std::uint32_t destination, std::uint8_t tos = 0, std::uint8_t ttl = 64,
               std::uint8_t protocol = 17, const Bytes& options = {});
  Packet& ipv6(std::uint16_t source, std::uint16_t destination, std::uint8_t tos = 0, std::uint8_t hop_limit = 64,
               std::uint8_t next_header = 17);
  Packet& udp(std::uint16_t source, std::uint16_t destination);
  Packet& tcp(std::uint16_t source, std::uint16_t destination);
  /// A base transport header (RC SEND Only), to which build() adds a right ICRC.
  Packet& bth(std::uint32_t destination_qp, std::uint32_t psn = 0);
  Packet& raw(const Bytes& bytes);
  Packet& payload(std::uint32_t count, std::uint8_t value = 0);

  [[nodiscard]] Bytes build() const;
  [[nodiscard]] const std::string& shows() const { return shows_; }

 private:
  std::string shows_;
  Bytes bytes_;
  std::uint32_t ip_at_ = 0, udp_at_ = 0, snap_at_ = 0;
  bool six_ = false, roce_ = false;
};

/// ICRC that an untagged or tagged RoCEv2 frame with its IP header at `ip_at` should end with, bit by bit and
/// independent of crc32.h.
std::uint32_t reference_icrc(std::span<const std::uint8_t> frame, std::uint32_t ip_at);
/// Whether the frame's IP datagram ends in that ICRC.
bool icrc_is_right(std::span<const std::uint8_t> frame, std::uint32_t ip_at);

/// A frame that owns its memory. `first_segment`: bytes of it that are readable; the rest is only a length (0: all).
class HeapFrame {
 public:
  explicit HeapFrame(std::span<const std::uint8_t> bytes, std::uint32_t in_port = 0, std::uint32_t first_segment = 0);
  [[nodiscard]] Frame* get() const { return frame_; }
  Frame* operator->() const { return frame_; }
  /// The readable bytes, as they are now.
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return {bytes_of(frame_), mbuf_of(frame_)->data_len}; }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> headers_;
  std::unique_ptr<std::uint8_t[]>
      data_;  // exactly as long as the frame, so that a sanitizer sees the first byte too far
  Frame* frame_;
};

/// Ethernet frames of a capture, or none where it can't be read.
std::vector<Bytes> read_capture(const std::string& path);
/// Folder of the public captures (WEFT_PUBLIC_CAPTURES, else ../shared/captures/public), or "" where there is none.
std::string public_captures();

}  // namespace weft::testing
