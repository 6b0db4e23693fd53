// SPDX-License-Identifier: BSD-3-Clause
#include "cells/cell_format.h"

#include <algorithm>

namespace weft::cells {

namespace {

constexpr std::uint8_t format_version = 1;
constexpr std::uint8_t type_data = 0;  // control kinds follow: 1 request, 2 give-back, 3 grant, 4 hold-back

class Writer {
 public:
  explicit Writer(std::vector<std::uint8_t>& out) : out_(out) { out_.clear(); }
  void u8(std::uint64_t v) { out_.push_back(static_cast<std::uint8_t>(v)); }
  void u16(std::uint64_t v) { u8(v >> 8), u8(v); }
  void u32(std::uint64_t v) { u16(v >> 16), u16(v); }
  void u64(std::uint64_t v) { u32(v >> 32), u32(v); }
  void bytes(const std::uint8_t* data, std::size_t size) { out_.insert(out_.end(), data, data + size); }
  /// Locally administered addresses that name the leaves.
  void ethernet(std::uint16_t source, std::uint16_t destination) {
    for (const std::uint16_t leaf : {destination, source}) {
      u32(0x02'77'66'00), u16(leaf);
    }
    u16(cell_ethertype);
  }

 private:
  std::vector<std::uint8_t>& out_;
};

/// Copies `size` bytes from `offset` of a frame, whose tail may be in further segments.
void copy_from(const Frame* frame, std::uint32_t offset, std::uint32_t size, Writer& out) {
  for (const rte_mbuf* segment = mbuf_of(frame); segment != nullptr && size > 0; segment = segment->next) {
    if (offset >= segment->data_len) {
      offset -= segment->data_len;
      continue;
    }
    const std::uint32_t here = std::min<std::uint32_t>(size, segment->data_len - offset);
    out.bytes(rte_pktmbuf_mtod_offset(segment, const std::uint8_t*, offset), here);
    size -= here;
    offset = 0;
  }
  for (; size > 0; --size) out.u8(0);  // a modelled frame's payload
}

}  // namespace

void materialise(const Cell& cell, std::vector<std::uint8_t>& out) {
  Writer w(out);
  w.ethernet(cell.source, cell.destination);
  w.u8(format_version);
  w.u8(type_data);
  w.u8(cell.flags);
  const unsigned frames = cell.ending + ((cell.flags & cell_open) != 0 ? 1u : 0u);
  w.u8(frames);
  w.u16(cell.source);
  w.u16(cell.destination);
  w.u16(cell.stream);
  w.u16(cell.payload);
  w.u32(cell.sequence);
  w.u16(cell.offset);
  const Frame* frame = cell.first;
  for (unsigned i = 0; i < frames; ++i, frame = frame->next) w.u16(frame->length);
  frame = cell.first;
  std::uint32_t left = cell.payload, offset = cell.offset;
  while (left > 0) {
    const std::uint32_t here = std::min(left, frame->length - offset);
    copy_from(frame, offset, here, w);
    left -= here;
    offset = 0;
    if (left > 0) frame = frame->next;
  }
}

void materialise(const ControlCell& cell, std::vector<std::uint8_t>& out) {
  Writer w(out);
  w.ethernet(cell.source, cell.destination);
  w.u8(format_version);
  w.u8(1 + static_cast<std::uint8_t>(cell.kind));
  w.u8(cell.refresh ? 1 : 0);
  w.u8(0);
  w.u16(cell.source);
  w.u16(cell.destination);
  w.u16(cell.stream);
  w.u16(cell.longest);
  w.u64(cell.total);
  w.u64(cell.given_back);
  w.u64(cell.withdrawn);
}

}  // namespace weft::cells
