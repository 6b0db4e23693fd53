// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What is in a capture, record by record, without the bytes: the two format readers fill it, and it decides in one
// place what a record that contradicts itself is worth.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

inline constexpr std::uint32_t link_type_ethernet = 1;

/// Longest frame that is replayed: what one mbuf holds (16-bit lengths, 128 bytes of headroom). Anything over the
/// MTU is the switch's to drop; a frame over this bound (offloads merge frames before a capture sees them) fits no
/// emulated port at all and is left out.
inline constexpr std::uint32_t longest_replayed_frame_bytes = 65'407;

struct CaptureFrame {
  std::uint64_t offset = 0;    // of its first byte in the file
  std::int64_t stamp_ns = 0;   // since 1970, rounded down
  std::uint32_t captured = 0;  // bytes in the file
  std::uint32_t length = 0;    // bytes on the wire, without FCS; >= captured
  std::uint32_t record =
      0;  // from 1, counting every packet of the file: Wireshark's frame number, unless custom blocks are between
  std::uint16_t stamp_ps = 0;   // picoseconds after stamp_ns, 0 to 999
  std::uint16_t interface = 0;  // index into CaptureIndex::interfaces
};
static_assert(sizeof(CaptureFrame) == 32);

struct CaptureInterface {
  std::string name, description;  // as the file has them; either may be empty
  std::uint32_t link_type = link_type_ethernet;
  std::uint64_t frames = 0;   // in CaptureIndex::frames
  std::uint64_t skipped = 0;  // records left out because the link type isn't Ethernet
};

/// Time of a record: nullopt where the format has none or it makes no sense.
struct Stamp {
  std::int64_t ns = 0;
  std::uint16_t ps = 0;
};

struct CaptureIndex {
  std::vector<CaptureFrame> frames;
  std::vector<CaptureInterface> interfaces;
  std::uint64_t records = 0;              // packet records seen, usable or not
  std::uint64_t other_link_type = 0;      // left out
  std::uint64_t too_long = 0;             // left out: see longest_replayed_frame_bytes
  std::uint64_t no_bytes = 0;             // left out: length 0
  std::uint64_t snapped = 0;              // captured shorter than they were
  std::uint64_t length_contradicted = 0;  // captured > length: the captured bytes are there, so they are the frame
  std::uint64_t stamp_invalid = 0;  // no stamp, or one that can't be (1,000,000,000 ns and more after the second, past
                                    // the year 2262): taken as that of the frame before
  std::uint32_t first_too_long = 0, first_no_bytes = 0, first_contradicted = 0,
                first_stamp_invalid = 0;  // record numbers
  std::string stopped;                    // empty, or where and why the file could not be read any further

  /// The next packet record. `captured` bytes at `offset` are known to lie in the file.
  void add(std::uint32_t interface, std::uint64_t offset, std::uint32_t captured, std::uint32_t length,
           std::optional<Stamp> stamp);
  /// Once, after the last record: frames before the first good stamp get that one.
  void finish();

 private:
  std::optional<Stamp> last_stamp_;
  std::size_t frames_before_first_stamp_ = 0;
};

/// `LINUX_SLL (113)`: names as libpcap has them.
std::string link_type_name(std::uint32_t link_type);

/// Text from a file made fit for one line of a message: control characters and bytes that aren't UTF-8 as \xNN, long
/// ones cut.
std::string printable(std::string_view text);

}  // namespace weft
