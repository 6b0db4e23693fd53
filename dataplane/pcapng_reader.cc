// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/pcapng_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "dataplane/capture_file.h"

namespace weft {
namespace {

__extension__ using Int128 = __int128;

constexpr std::uint32_t section_header = 0x0a0d0d0a, interface_description = 1, obsolete_packet = 2, simple_packet = 3,
                        enhanced_packet = 6;
constexpr std::uint32_t byte_order_magic = 0x1a2b3c4d;
constexpr std::uint16_t option_end = 0, option_if_name = 2, option_if_description = 3, option_if_tsresol = 9,
                        option_if_tsoffset = 14;
constexpr std::size_t most_interfaces = 0x10000;

// The body of one block, in the byte order of its section. Offsets are checked by the caller, once for each block type.
struct Block {
  std::span<const std::uint8_t> body;
  std::uint64_t body_offset = 0;  // in the file
  bool swapped = false;

  [[nodiscard]] std::uint16_t u16(std::size_t at) const {
    std::uint16_t v;
    std::memcpy(&v, body.data() + at, sizeof v);
    return swapped ? __builtin_bswap16(v) : v;
  }
  [[nodiscard]] std::uint32_t u32(std::size_t at) const {
    std::uint32_t v;
    std::memcpy(&v, body.data() + at, sizeof v);
    return swapped ? __builtin_bswap32(v) : v;
  }
  [[nodiscard]] std::uint64_t u64(std::size_t at) const {
    std::uint64_t v;
    std::memcpy(&v, body.data() + at, sizeof v);
    return swapped ? __builtin_bswap64(v) : v;
  }
};

struct Interface {
  std::uint32_t index = 0;  // into CaptureIndex::interfaces
  std::uint32_t snaplen = 0;
  std::uint8_t tsresol = 6;
  std::int64_t offset_s = 0;
};

class Reader {
 public:
  Reader(const std::string& name, std::span<const std::uint8_t> file, CaptureIndex& index)
      : name_(name), file_(file), index_(index) {}

  void run() {
    while (offset_ < file_.size()) {
      ++block_;
      std::string wrong = next();
      if (wrong.empty()) continue;
      wrong = fmt::format("block {} at byte {} (after {} packet records): {}", block_, offset_, index_.records, wrong);
      if (block_ == 1) throw CaptureError(fmt::format("{}: {}", name_, wrong));
      index_.stopped = wrong;
      return;
    }
  }

 private:
  // One block. Empty, or what is wrong with it.
  std::string next() {
    const std::uint64_t left = file_.size() - offset_;
    if (left < 12) return fmt::format("the file ends within it ({} bytes left, a block has at least 12)", left);
    Block head{file_.subspan(offset_, std::min<std::uint64_t>(left, 16)), offset_, swapped_};
    const std::uint32_t type = head.u32(0);  // a section header's type reads the same in both byte orders
    if (type == section_header) {
      if (left < 28) return fmt::format("the file ends within a section header ({} of at least 28 bytes)", left);
      head.swapped = false;
      const std::uint32_t magic = head.u32(8);
      if (magic != byte_order_magic && magic != __builtin_bswap32(byte_order_magic))
        return fmt::format("byte-order magic is {:#010x} and not 0x1a2b3c4d", magic);
      head.swapped = swapped_ = magic != byte_order_magic;
    }
    const std::uint32_t total = head.u32(4);
    const std::uint64_t padded =
        (std::uint64_t{total} + 3) & ~std::uint64_t{3};  // some writers leave the padding out of the count
    if (total < 12) return fmt::format("block length is {}; it must be at least 12", total);
    if (padded > left) return fmt::format("block length is {}, but the file ends after {} bytes", total, left);
    const Block tail{file_.subspan(offset_ + padded - 4, 4), 0, swapped_};
    if (tail.u32(0) != total)
      return fmt::format("block length is {} at its start and {} at its end", total, tail.u32(0));

    const Block block{file_.subspan(offset_ + 8, padded - 12), offset_ + 8, swapped_};
    std::string wrong;
    switch (type) {
      case section_header:
        wrong = section(block);
        break;
      case interface_description:
        wrong = interface(block);
        break;
      case enhanced_packet:
        wrong = enhanced(block);
        break;
      case obsolete_packet:
        wrong = obsolete(block);
        break;
      case simple_packet:
        wrong = simple(block);
        break;
      default:
        break;  // names, statistics, secrets, custom blocks: nothing to replay
    }
    if (wrong.empty()) offset_ += padded;
    return wrong;
  }

  // Calls `take(code, length, offset)` for each option from `at` on. Empty, or what is wrong.
  template <typename Take>
  static std::string options(const Block& block, std::size_t at, Take&& take) {
    while (block.body.size() - at >= 4) {
      const std::uint16_t code = block.u16(at), length = block.u16(at + 2);
      at += 4;
      if (code == option_end) break;
      if (length > block.body.size() - at)
        return fmt::format("option {} claims {} bytes, the block has {} left", code, length, block.body.size() - at);
      take(code, length, at);
      at = std::min<std::size_t>(block.body.size(), at + ((length + 3u) & ~3u));
    }
    return {};
  }

  std::string section(const Block& block) {
    if (block.body.size() < 16) return "section header is too short";
    const std::uint16_t major = block.u16(4), minor = block.u16(6);
    if (major != 1 || (minor != 0 && minor != 2))
      return fmt::format("pcapng version {}.{} is not known; 1.0 and 1.2 are", major, minor);
    interfaces_.clear();
    return options(block, 16, [](std::uint16_t, std::uint16_t, std::size_t) {});
  }

  std::string interface(const Block& block) {
    if (block.body.size() < 8) return "interface description is too short";
    if (index_.interfaces.size() >= most_interfaces) return fmt::format("more than {} interfaces", most_interfaces);
    CaptureInterface about{.name = {}, .description = {}, .link_type = block.u16(0)};
    Interface entry{.index = static_cast<std::uint32_t>(index_.interfaces.size()), .snaplen = block.u32(4)};
    const auto text = [&](std::size_t at, std::uint16_t length) {
      std::string value(reinterpret_cast<const char*>(block.body.data()) + at, length);
      value.resize(std::min(value.size(), value.find('\0')));
      return value;
    };
    std::string wrong = options(block, 8, [&](std::uint16_t code, std::uint16_t length, std::size_t at) {
      if (code == option_if_name) about.name = text(at, length);
      if (code == option_if_description) about.description = text(at, length);
      if (code == option_if_tsresol && length >= 1) entry.tsresol = block.body[at];
      if (code == option_if_tsoffset && length >= 8) entry.offset_s = static_cast<std::int64_t>(block.u64(at));
    });
    if (!wrong.empty()) return wrong;
    interfaces_.push_back(entry);
    index_.interfaces.push_back(std::move(about));
    return {};
  }

  std::string enhanced(const Block& block) {
    if (block.body.size() < 20) return "enhanced packet block is too short";
    return packet(block, block.u32(0), block.u32(4), block.u32(8), block.u32(12), block.u32(16));
  }

  std::string obsolete(const Block& block) {
    if (block.body.size() < 20) return "packet block is too short";
    return packet(block, block.u16(0), block.u32(4), block.u32(8), block.u32(12), block.u32(16));
  }

  std::string packet(const Block& block, std::uint32_t id, std::uint32_t high, std::uint32_t low,
                     std::uint32_t captured, std::uint32_t length) {
    if (id >= interfaces_.size())
      return fmt::format("packet of interface {}, but the section has described {}", id, interfaces_.size());
    if (captured > block.body.size() - 20)
      return fmt::format("packet claims {} captured bytes, its block has room for {}", captured,
                         block.body.size() - 20);
    const Interface& from = interfaces_[id];
    return record(from, block.body_offset + 20, captured, length,
                  stamp_of(std::uint64_t{high} << 32 | low, from.tsresol, from.offset_s));
  }

  // Belongs to the first interface and has no stamp; how much was captured follows from the interface's snaplen.
  std::string simple(const Block& block) {
    if (block.body.size() < 4) return "simple packet block is too short";
    if (interfaces_.empty()) return "simple packet block, but the section has described no interface";
    const Interface& from = interfaces_.front();
    const std::uint32_t length = block.u32(0);
    std::uint64_t captured = std::min<std::uint64_t>(length, block.body.size() - 4);
    if (from.snaplen != 0) captured = std::min<std::uint64_t>(captured, from.snaplen);
    return record(from, block.body_offset + 4, static_cast<std::uint32_t>(captured), length, std::nullopt);
  }

  std::string record(const Interface& from, std::uint64_t offset, std::uint32_t captured, std::uint32_t length,
                     std::optional<Stamp> stamp) {
    if (index_.records == 0xffff'ffff) return "a capture may hold 4294967295 records";
    index_.add(from.index, offset, captured, length, stamp);
    return {};
  }

  const std::string& name_;
  std::span<const std::uint8_t> file_;
  CaptureIndex& index_;
  std::uint64_t offset_ = 0;
  std::uint64_t block_ = 0;
  bool swapped_ = false;
  std::vector<Interface> interfaces_;  // of the current section
};

}  // namespace

bool is_pcapng(std::span<const std::uint8_t> file) {
  constexpr std::uint8_t magic[4] = {0x0a, 0x0d, 0x0d, 0x0a};
  return file.size() >= 4 && std::memcmp(file.data(), magic, 4) == 0;
}

void read_pcapng(const std::string& name, std::span<const std::uint8_t> file, CaptureIndex& index) {
  Reader(name, file, index).run();
}

std::optional<Stamp> stamp_of(std::uint64_t units, std::uint8_t tsresol, std::int64_t offset_s) {
  constexpr Int128 ps_per_s = 1'000'000'000'000;
  Int128 ps = static_cast<Int128>(units);
  const unsigned exponent = tsresol & 0x7f;
  if ((tsresol & 0x80) != 0) {
    ps = ps * ps_per_s >> exponent;  // below 2^104 before the shift
  } else {
    for (unsigned n = exponent; n < 12; ++n) ps *= 10;
    for (unsigned n = 12; n < exponent && ps != 0; ++n) ps /= 10;
  }
  ps += static_cast<Int128>(offset_s) * ps_per_s;
  Int128 ns = ps / 1000;
  if (ns * 1000 > ps) --ns;  // towards the past, before 1970 too
  if (ns > INT64_MAX || ns < INT64_MIN) return std::nullopt;
  return Stamp{static_cast<std::int64_t>(ns), static_cast<std::uint16_t>(ps - ns * 1000)};
}

}  // namespace weft
