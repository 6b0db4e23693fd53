// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Constant-rate sources: UDP over IPv4 from modelled hosts (addresses.h), at a share of each sender's line rate.
//
// Times. With fixed gaps the n-th frame is ready at start + phase + the exact sum of the gaps before it, rounded down
// once: no drift. A gap is the frame's wire time (24 bytes of overhead included) over the load. The phase, below one
// gap, is drawn from the seed for each source, so that hosts are not in lockstep. Poisson: exponential gaps of the same
// mean, the first one before the first frame. Several entries add up; together they may ask for more than the line,
// which then stays busy.
//
// Frames. DSCP is one that maps to the class, ECT(0) if asked for, IP identification 0 with "don't fragment", UDP
// checksum 0, payload zero. To UDP port 4791 they are RoCEv2: the middle of an endless RC RDMA WRITE (the one opcode
// that needs no further header, and whose payload Wireshark does not guess at), a queue pair for each source, the PSN
// counting up, and a right ICRC. That costs no pass over the payload: its first four bytes are chosen (a CRC is linear)
// so that the ICRC of the whole is zero, as the untouched end of the buffer is. RoCEv2 datagrams are a multiple of four
// bytes; what is left of the length is padding behind them.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/config.h"
#include "dataplane/rng.h"
#include "dataplane/source.h"
#include "dataplane/topology.h"

namespace weft {

inline constexpr std::uint32_t min_constant_frame_bytes = 60;  // Ethernet's shortest, without FCS

/// One sender of one entry. Needs a buffer of at least 64 bytes whose bytes beyond the first 64 are zero.
class ConstantSource final : public FrameSource {
 public:
  static constexpr std::uint32_t header_bytes = 64;  // all that is written of a frame

  Frame* take(FramePool& pool) override;
  /// The bytes of the next frame (`next_length` long, only the first 64 are written), and on to the one after it.
  void write(std::uint8_t* bytes);

  struct Size;   // what depends on the length
  struct Sizes;  // shared by the sources of one entry and rate
  struct Peer;   // what depends on the destination
  struct Setup;
  explicit ConstantSource(const Setup& setup);

 private:
  void advance();

  std::shared_ptr<const Sizes> sizes_;
  std::shared_ptr<const std::vector<Peer>> peers_;
  TimePs stop_;
  Uint128 rest_ = 0;  // of the exact time, in units of 1 / Sizes::denominator ps
  Rng random_;
  std::uint32_t size_index_ = 0;
  std::uint32_t self_, peer_, last_peer_, step_count_ = 0, steps_;  // all-to-all goes round `steps_` peers
  std::uint32_t psn_ = 0;
  std::uint32_t crc_state_ = 0;     // of the template, up to the word with the PSN
  std::uint32_t checksum_sum_ = 0;  // of the template's IPv4 header
  bool poisson_, rocev2_, round_;
  alignas(16) std::uint8_t template_[header_bytes]{};
};

struct PlacedSource {
  std::uint32_t port = 0;  // host port that sends
  std::unique_ptr<FrameSource> source;
};

/// The sources of all `entries`, in order of (entry, port). In route mode frames are addressed to the router.
/// Throws std::invalid_argument: one line with entry number, key and what would be right.
std::vector<PlacedSource> make_constant_sources(std::span<const ConstantConfig> entries, const Topology& topology,
                                                const ForwardingConfig& forwarding, const ClassesConfig& classes,
                                                std::uint64_t seed);

/// Where each host sends to: a random one-to-one assignment in which every pair crosses leaves. Throws
/// std::invalid_argument where there is one leaf only.
std::vector<std::uint32_t> make_permutation(const Topology& topology, Rng random);

}  // namespace weft
