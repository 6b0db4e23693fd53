// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/pcap_reader.h"

#include <fmt/format.h>
#include <pcap/pcap.h>

#include <cstdio>
#include <cstring>
#include <memory>

#include "dataplane/capture_file.h"

namespace weft {
namespace {

constexpr std::uint32_t magic_us = 0xa1b2c3d4, magic_ns = 0xa1b23c4d, magic_us_patched = 0xa1b2cd34;
constexpr std::uint64_t file_header_bytes = 24;

std::uint32_t magic_of(std::span<const std::uint8_t> file) {
  if (file.size() < 4) return 0;
  std::uint32_t value;
  std::memcpy(&value, file.data(), 4);
  for (const std::uint32_t magic : {magic_us, magic_ns, magic_us_patched})
    if (value == magic || value == __builtin_bswap32(magic)) return magic;
  return 0;
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
struct ClosePcap {
  void operator()(pcap_t* pcap) const { pcap_close(pcap); }
};

}  // namespace

bool is_pcap(std::span<const std::uint8_t> file) { return magic_of(file) != 0; }

void read_pcap(const std::string& name, std::span<const std::uint8_t> file, CaptureIndex& index) {
  const std::uint32_t magic = magic_of(file);
  if (file.size() < file_header_bytes)
    throw CaptureError(
        fmt::format("{}: only {} bytes long; a pcap file header alone has {}", name, file.size(), file_header_bytes));
  // The upper half of the link type: the top four bits, and bit 10 from below, tell of an FCS; the rest must be zero.
  const bool big_endian = file[0] == 0xa1;
  const unsigned reserved = big_endian ? (file[20] & 0x03u) << 8 | file[21] : (file[23] & 0x03u) << 8 | file[22];
  if (reserved != 0)
    throw CaptureError(fmt::format(
        "{}: reserved bits of the link type in the file header are set ({:#x}); they must be zero", name, reserved));

  std::unique_ptr<std::FILE, CloseFile> stream(fmemopen(const_cast<std::uint8_t*>(file.data()), file.size(), "rb"));
  if (!stream) throw CaptureError(fmt::format("{}: cannot be read: {}", name, std::strerror(errno)));
  char message[PCAP_ERRBUF_SIZE] = "";
  const bool nanoseconds = magic == magic_ns;
  const std::unique_ptr<pcap_t, ClosePcap> pcap(pcap_fopen_offline_with_tstamp_precision(
      stream.get(), nanoseconds ? PCAP_TSTAMP_PRECISION_NANO : PCAP_TSTAMP_PRECISION_MICRO, message));
  if (!pcap) throw CaptureError(fmt::format("{}: not a usable pcap file: {}", name, message));
  std::FILE* const position = stream.release();  // pcap_close() closes it

  const auto link_type = static_cast<std::uint32_t>(pcap_datalink(pcap.get()));
  if (link_type != link_type_ethernet)
    throw CaptureError(fmt::format("{}: link type is {}; only Ethernet ({}) can be replayed", name,
                                   link_type_name(link_type), link_type_ethernet));
  index.interfaces.push_back({});
  const std::uint64_t record_header_bytes = magic == magic_us_patched ? 24 : 16;
  const std::int64_t ns_per_unit = nanoseconds ? 1 : 1000;
  for (;;) {
    const auto before = static_cast<std::uint64_t>(ftello(position));
    pcap_pkthdr* header = nullptr;
    const std::uint8_t* data = nullptr;
    const int status = pcap_next_ex(pcap.get(), &header, &data);
    if (status == PCAP_ERROR_BREAK) break;
    const std::uint64_t record = index.records + 1;
    if (status != 1) {
      const std::uint64_t left = file.size() - before;
      index.stopped = left < record_header_bytes
                          ? fmt::format("record {}: the file ends within its header ({} of {} bytes)", record, left,
                                        record_header_bytes)
                          : fmt::format("record {}: {}", record, pcap_geterr(pcap.get()));
      break;
    }
    const auto after = static_cast<std::uint64_t>(ftello(position));
    if (after > file.size() || after - before < record_header_bytes) {
      index.stopped = fmt::format("record {}: the file ends within it", record);
      break;
    }
    if (record > 0xffff'ffff) {
      index.stopped = fmt::format("record {}: a capture may hold 4294967295 records", record);
      break;
    }
    const auto units = header->ts.tv_usec;
    std::optional<Stamp> stamp;
    if (units >= 0 && units * ns_per_unit < 1'000'000'000)
      stamp = Stamp{static_cast<std::int64_t>(static_cast<std::uint32_t>(header->ts.tv_sec)) * 1'000'000'000 +
                        units * ns_per_unit,
                    0};
    index.add(0, before + record_header_bytes, static_cast<std::uint32_t>(after - before - record_header_bytes),
              header->len, stamp);
  }
}

}  // namespace weft
