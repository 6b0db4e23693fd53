// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/capture_reader.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

#include "dataplane/pcap_reader.h"
#include "dataplane/pcapng_reader.h"

namespace weft {
namespace {

// Formats that people do hand in, and what to do about it.
std::string_view other_format(std::span<const std::uint8_t> file) {
  struct Known {
    std::string_view magic, is;
  };
  using namespace std::literals;
  static constexpr Known known[] = {
      {"snoop\0\0\0"sv, "a snoop file; convert it to pcapng first"},
      {"\x28\xb5\x2f\xfd"sv, "compressed with zstd; decompress it first (zstd -d)"},
      {"\xfd"
       "7zXZ\0"sv,
       "compressed with xz; decompress it first (xz -d)"},
      {"BZh"sv, "compressed with bzip2; decompress it first (bzip2 -d)"},
      {"\x04\x22\x4d\x18"sv, "compressed with lz4; decompress it first (lz4 -d)"},
      {"PK\x03\x04"sv, "a zip archive; unpack it first"},
      {"\x54\x52\x53\x4e\x49\x46\x46"sv, "a Sniffer file; convert it to pcapng first"},
      {"GMBU"sv, "a Network Monitor file; convert it to pcapng first"},
      {"XCP\0"sv, "a NetXRay file; convert it to pcapng first"},
  };
  for (const Known& format : known)
    if (file.size() >= format.magic.size() && std::memcmp(file.data(), format.magic.data(), format.magic.size()) == 0)
      return format.is;
  return {};
}

std::string interface_name(const CaptureIndex& index, std::size_t number) {
  const CaptureInterface& about = index.interfaces[number];
  const std::string& name = about.name.empty() ? about.description : about.name;
  return name.empty() ? fmt::format("interface {}", number)
                      : fmt::format("interface {} \"{}\"", number, printable(name));
}

std::string frames_are(std::uint64_t count) { return count == 1 ? "1 frame is" : fmt::format("{} frames are", count); }
std::string frames_have(std::uint64_t count) {
  return count == 1 ? "1 frame has" : fmt::format("{} frames have", count);
}
std::string packets(std::uint64_t count) { return count == 1 ? "1 packet" : fmt::format("{} packets", count); }

}  // namespace

std::shared_ptr<const Capture> Capture::read(const std::string& path, bool strict) {
  return std::shared_ptr<const Capture>(new Capture(path, CaptureFile::open(path), strict));
}

std::shared_ptr<const Capture> Capture::from_bytes(const std::string& name, std::vector<std::uint8_t> bytes,
                                                   bool strict) {
  return std::shared_ptr<const Capture>(new Capture(name, CaptureFile::of(name, std::move(bytes)), strict));
}

Capture::Capture(std::string name, CaptureFile file, bool strict) : name_(std::move(name)), file_(std::move(file)) {
  const auto bytes = file_.bytes();
  if (bytes.empty())
    throw CaptureError(fmt::format("{}: {}; a pcap or pcapng file is needed", name_,
                                   file_.damage().empty() ? "is empty (0 bytes)" : file_.damage()));
  if (is_pcapng(bytes)) {
    read_pcapng(name_, bytes, index_);
  } else if (is_pcap(bytes)) {
    read_pcap(name_, bytes, index_);
  } else if (const std::string_view is = other_format(bytes); !is.empty()) {
    throw CaptureError(fmt::format("{}: is {}", name_, is));
  } else {
    std::string start;
    for (std::size_t i = 0; i < bytes.size() && i < 4; ++i) start += fmt::format(" {:02x}", bytes[i]);
    throw CaptureError(fmt::format("{}: starts with{}; that is neither pcap nor pcapng", name_, start));
  }
  index_.finish();
  index_.frames.shrink_to_fit();
  note_repairs();
  if (index_.frames.empty()) {
    std::string why;
    for (const std::string& note : notes_) why += (why.empty() ? " (" : "; ") + note;
    throw CaptureError(fmt::format("{}: holds no frame that can be replayed{}", name_,
                                   why.empty() ? ": no packet records" : why + ")"));
  }
  if (strict && !notes_.empty())
    throw CaptureError(fmt::format("{}: refused, as strict asks: {}", name_, notes_.front()));
}

void Capture::note_repairs() {
  constexpr std::size_t most_interfaces_named = 8;
  if (!index_.stopped.empty())
    notes_.push_back(fmt::format("{}; {} before it can be read", index_.stopped, packets(index_.records)));
  if (!file_.damage().empty()) notes_.push_back(file_.damage());
  std::uint64_t unnamed_packets = 0;
  std::size_t named = 0, unnamed = 0;
  for (std::size_t i = 0; i < index_.interfaces.size(); ++i) {
    const CaptureInterface& from = index_.interfaces[i];
    if (from.skipped == 0) continue;
    if (named++ < most_interfaces_named) {
      notes_.push_back(fmt::format("{} of {} left out: link type {}, only Ethernet can be replayed",
                                   packets(from.skipped), interface_name(index_, i), link_type_name(from.link_type)));
    } else {
      ++unnamed;
      unnamed_packets += from.skipped;
    }
  }
  if (unnamed != 0)
    notes_.push_back(
        fmt::format("{} of {} more interfaces left out: not Ethernet either", packets(unnamed_packets), unnamed));
  if (index_.too_long != 0)
    notes_.push_back(fmt::format("{} left out: longer than {} bytes (first: record {})", frames_are(index_.too_long),
                                 longest_replayed_frame_bytes, index_.first_too_long));
  if (index_.no_bytes != 0)
    notes_.push_back(
        fmt::format("{} left out: length 0 (first: record {})", frames_are(index_.no_bytes), index_.first_no_bytes));
  if (index_.length_contradicted != 0)
    notes_.push_back(
        fmt::format("{} more bytes captured than the original length says: sent as captured (first: record {})",
                    frames_have(index_.length_contradicted), index_.first_contradicted));
  if (index_.stamp_invalid != 0)
    notes_.push_back(fmt::format("{} no usable time stamp: sent right after the frame before (first: record {})",
                                 frames_have(index_.stamp_invalid), index_.first_stamp_invalid));
}

}  // namespace weft
