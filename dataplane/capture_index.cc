// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/capture_index.h"

#include <fmt/format.h>
#include <pcap/pcap.h>

namespace weft {
namespace {

// Bytes of the UTF-8 character at the start of `text`, or 0.
std::size_t utf8_length(std::string_view text) {
  const auto at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = at(0);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xc2 && first < 0xe0 ? 2
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((at(i) & 0xc0) != 0x80) return 0;
  return length;
}

}  // namespace

void CaptureIndex::add(std::uint32_t interface, std::uint64_t offset, std::uint32_t captured, std::uint32_t length,
                       std::optional<Stamp> stamp) {
  ++records;
  const auto record = static_cast<std::uint32_t>(records);
  CaptureInterface& from = interfaces[interface];
  if (from.link_type != link_type_ethernet) {
    ++from.skipped;
    ++other_link_type;
    return;
  }
  if (captured > length) {
    if (length_contradicted++ == 0) first_contradicted = record;
    length = captured;
  }
  if (length > longest_replayed_frame_bytes) {
    if (too_long++ == 0) first_too_long = record;
    return;
  }
  if (length == 0) {
    if (no_bytes++ == 0) first_no_bytes = record;
    return;
  }
  if (captured < length) ++snapped;

  if (!stamp) {
    if (stamp_invalid++ == 0) first_stamp_invalid = record;
    if (!last_stamp_) ++frames_before_first_stamp_;
    stamp = last_stamp_.value_or(Stamp{});
  } else {
    last_stamp_ = stamp;
  }
  ++from.frames;
  frames.push_back({.offset = offset,
                    .stamp_ns = stamp->ns,
                    .captured = captured,
                    .length = length,
                    .record = record,
                    .stamp_ps = stamp->ps,
                    .interface = static_cast<std::uint16_t>(interface)});
}

void CaptureIndex::finish() {
  if (frames_before_first_stamp_ == 0 || frames_before_first_stamp_ >= frames.size()) return;
  const CaptureFrame& good = frames[frames_before_first_stamp_];
  for (std::size_t i = 0; i < frames_before_first_stamp_; ++i) {
    frames[i].stamp_ns = good.stamp_ns;
    frames[i].stamp_ps = good.stamp_ps;
  }
}

std::string link_type_name(std::uint32_t link_type) {
  // The numbers in files and those that libpcap uses inside differ for a few old types.
  const char* name = link_type == 101      ? "RAW"
                     : link_type == 100    ? "ATM_RFC1483"
                     : link_type <= 0xffff ? pcap_datalink_val_to_name(static_cast<int>(link_type))
                                           : nullptr;
  return fmt::format("{} ({})", name != nullptr ? name : "unknown", link_type);
}

std::string printable(std::string_view text) {
  constexpr std::size_t longest = 200;
  std::string out;
  while (!text.empty() && out.size() < longest) {
    const std::size_t length = utf8_length(text);
    const auto first = static_cast<unsigned char>(text.front());
    if (length == 0 || first < 0x20 || first == 0x7f) {
      out += fmt::format("\\x{:02x}", first);
      text.remove_prefix(1);
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  if (!text.empty()) out += "...";
  return out;
}

}  // namespace weft
