// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Capture files for tests, built byte by byte, right or wrong as asked; and what the outside tools say of a file.
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dataplane/testing/frame_builder.h"  // public_captures()

namespace weft::testing {

using Bytes = std::vector<std::uint8_t>;

/// Numbers in either byte order.
class ByteWriter {
 public:
  explicit ByteWriter(bool big_endian = false) : big_endian_(big_endian) {}
  ByteWriter& put(std::uint64_t v, unsigned count) {
    for (unsigned i = 0; i < count; ++i)
      bytes.push_back(static_cast<std::uint8_t>(v >> (8 * (big_endian_ ? count - 1 - i : i))));
    return *this;
  }
  ByteWriter& u16(std::uint64_t v) { return put(v, 2); }
  ByteWriter& u32(std::uint64_t v) { return put(v, 4); }
  ByteWriter& u64(std::uint64_t v) { return put(v, 8); }
  ByteWriter& raw(const Bytes& more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return *this;
  }
  ByteWriter& pad() {
    while (bytes.size() % 4 != 0) bytes.push_back(0);
    return *this;
  }
  Bytes bytes;

 private:
  bool big_endian_;
};

/// An Ethernet frame from host `source` to host `destination` (02:00:00:00:00:NN), filled with `fill`.
inline Bytes frame_bytes(std::uint8_t source, std::uint8_t destination, std::size_t length = 60,
                         std::uint8_t fill = 0xaa) {
  Bytes frame(length, fill);
  const Bytes head{2, 0, 0, 0, 0, destination, 2, 0, 0, 0, 0, source, 0x88, 0xb6};
  for (std::size_t i = 0; i < head.size() && i < length; ++i) frame[i] = head[i];
  return frame;
}

/// Classic pcap.
struct PcapFile {
  bool nanoseconds = true, big_endian = false;
  std::uint32_t snaplen = 262'144, link_type = 1;
  std::uint16_t major = 2, minor = 4;
  struct Record {
    std::uint32_t seconds, fraction;
    Bytes data;
    std::int64_t captured = -1, original = -1;  // as the header is to claim; -1: data.size()
  };
  std::vector<Record> records{};

  [[nodiscard]] Bytes bytes() const {
    ByteWriter out(big_endian);
    out.u32(nanoseconds ? 0xa1b23c4d : 0xa1b2c3d4).u16(major).u16(minor).u32(0).u32(0).u32(snaplen).u32(link_type);
    for (const Record& r : records) {
      out.u32(r.seconds).u32(r.fraction);
      out.u32(r.captured < 0 ? r.data.size() : static_cast<std::uint64_t>(r.captured));
      out.u32(r.original < 0 ? r.data.size() : static_cast<std::uint64_t>(r.original)).raw(r.data);
    }
    return out.bytes;
  }
};

/// pcapng, block by block.
class PcapngFile {
 public:
  explicit PcapngFile(bool big_endian = false) { section(big_endian); }
  PcapngFile& section(bool big_endian) {
    big_endian_ = big_endian;
    return block(0x0a0d0d0a, ByteWriter(big_endian_).u32(0x1a2b3c4d).u16(1).u16(0).u64(~std::uint64_t{0}).bytes);
  }
  PcapngFile& block(std::uint32_t type, const Bytes& body) {
    ByteWriter out(big_endian_);
    const std::size_t total = (body.size() + 3) / 4 * 4 + 12;
    out.u32(type).u32(total).raw(body).pad().u32(total);
    bytes.insert(bytes.end(), out.bytes.begin(), out.bytes.end());
    return *this;
  }
  PcapngFile& interface(std::string_view name, std::uint16_t link_type = 1, int tsresol = 9, std::int64_t offset_s = 0,
                        std::uint32_t snaplen = 0) {
    ByteWriter out(big_endian_);
    out.u16(link_type).u16(0).u32(snaplen);
    if (!name.empty()) out.u16(2).u16(name.size()).raw(Bytes(name.begin(), name.end())).pad();
    if (tsresol >= 0) out.u16(9).u16(1).put(static_cast<std::uint64_t>(tsresol), 1).pad();
    if (offset_s != 0) out.u16(14).u16(8).u64(static_cast<std::uint64_t>(offset_s));
    return block(1, out.u32(0).bytes);
  }
  PcapngFile& packet(std::uint32_t interface, std::uint64_t units, const Bytes& data, std::int64_t original = -1,
                     std::int64_t captured = -1) {
    return block(6, ByteWriter(big_endian_)
                        .u32(interface)
                        .u32(units >> 32)
                        .u32(units & 0xffffffff)
                        .u32(captured < 0 ? data.size() : static_cast<std::uint64_t>(captured))
                        .u32(original < 0 ? data.size() : static_cast<std::uint64_t>(original))
                        .raw(data)
                        .bytes);
  }
  PcapngFile& obsolete_packet(std::uint16_t interface, std::uint64_t units, const Bytes& data) {
    return block(2, ByteWriter(big_endian_)
                        .u16(interface)
                        .u16(0)
                        .u32(units >> 32)
                        .u32(units & 0xffffffff)
                        .u32(data.size())
                        .u32(data.size())
                        .raw(data)
                        .bytes);
  }
  PcapngFile& simple_packet(const Bytes& data, std::uint32_t original) {
    return block(3, ByteWriter(big_endian_).u32(original).raw(data).bytes);
  }
  Bytes bytes;

 private:
  bool big_endian_ = false;
};

/// A folder of its own, gone at the end.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "weft-test.XXXXXX").string();
    path_ = ::mkdtemp(name.data()) == nullptr ? std::string() : name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline Bytes read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_file(const std::string& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

struct Output {
  int status = -1;  // exit status, -1: did not run
  std::string text;
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> out;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) out.push_back(line);
    return out;
  }
};

/// Runs a shell command, standard error left out.
inline Output run(const std::string& command) {
  Output out;
  std::FILE* pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return out;
  char part[65536];
  for (std::size_t n; (n = std::fread(part, 1, sizeof part, pipe)) != 0;) out.text.append(part, n);
  const int status = ::pclose(pipe);
  out.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return out;
}

inline bool have_tshark() { return run("command -v tshark && command -v capinfos").status == 0; }

}  // namespace weft::testing
