// SPDX-License-Identifier: BSD-3-Clause
#include "cells/cell_format.h"

#include <gtest/gtest.h>

#include "dataplane/testing/frame_builder.h"

namespace weft::cells {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes counting(std::size_t size, std::uint8_t from) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(from + i);
  return bytes;
}
Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
Bytes part(const Bytes& bytes, std::size_t from, std::size_t count) {
  return {bytes.begin() + static_cast<std::ptrdiff_t>(from), bytes.begin() + static_cast<std::ptrdiff_t>(from + count)};
}

TEST(CellFormat, ADataCellByteForByte) {
  // The end of one frame, a whole one, and the beginning of a third.
  const Bytes a = counting(100, 0), b = counting(60, 100), c = counting(90, 200);
  const testing::HeapFrame fa(a), fb(b), fc(c);
  fa->next = fb.get(), fb->next = fc.get(), fc->next = nullptr;
  Cell cell{};
  cell.first = fa.get();
  cell.offset = 80;
  cell.payload = 20 + 60 + 16;
  cell.ending = 2;
  cell.flags = cell_open | cell_marked;
  cell.source = 3, cell.destination = 0x0102, cell.stream = 43;
  cell.sequence = 0x01020304;
  Bytes out(7, 0xee);  // what was there is replaced
  materialise(cell, out);
  const Bytes header{0x02, 0x77, 0x66, 0x00, 0x01, 0x02, 0x02, 0x77, 0x66, 0x00, 0x00, 0x03, 0x88, 0xb5,  // Ethernet
                     1,    0,    3,    3,  // version, data, flags, frames
                     0,    3,    1,    2,    0,    43,   0,    96,   1,    2,    3,    4,    0,    80,  // to the offset
                     0,    100,  0,    60,   0,    90};                                                 // lengths
  EXPECT_EQ(out, header + part(a, 80, 20) + b + part(c, 0, 16));
}

TEST(CellFormat, ACellInTheMiddleOfAFrame) {
  const Bytes a = counting(1'500, 0);
  const testing::HeapFrame fa(a);
  Cell cell{};
  cell.first = fa.get();
  cell.offset = 512;
  cell.payload = 256;
  cell.flags = cell_open;
  Bytes out;
  materialise(cell, out);
  EXPECT_EQ(out[17], 1) << "one frame has bytes in it";
  ASSERT_EQ(out.size(), 34u + 256);
  EXPECT_EQ(part(out, 34, 256), part(a, 512, 256));
}

TEST(CellFormat, AFrameInSeveralSegments) {
  // A flooded copy: own headers, payload in the original's memory.
  const Bytes head = counting(40, 0), tail = counting(60, 40);
  testing::HeapFrame first(head), second(tail);
  mbuf_of(first.get())->next = mbuf_of(second.get());
  first->length = 100;
  for (const std::uint16_t offset : std::vector<std::uint16_t>{0, 30, 40, 50}) {
    Cell cell{};
    cell.first = first.get();
    cell.offset = offset;
    cell.payload = static_cast<std::uint16_t>(100 - offset);
    cell.ending = 1;
    Bytes out;
    materialise(cell, out);
    EXPECT_EQ(part(out, 34, cell.payload), part(head + tail, offset, cell.payload)) << "from " << offset;
  }
}

TEST(CellFormat, AControlCellByteForByte) {
  ControlCell cell{};
  cell.kind = ControlKind::grant;
  cell.source = 1, cell.destination = 2, cell.stream = 300, cell.longest = 1'524;
  cell.total = 0x0102030405060708, cell.given_back = 9, cell.withdrawn = 10;
  cell.refresh = true;
  Bytes out;
  materialise(cell, out);
  EXPECT_EQ(out, (Bytes{0x02, 0x77, 0x66, 0x00, 0, 2, 0x02, 0x77, 0x66, 0x00, 0, 1,    0x88, 0xb5,  // Ethernet
                        1,    3,    1,    0,    0, 1, 0,    2,    1,    44,   5, 0xf4,  // to the longest frame
                        1,    2,    3,    4,    5, 6, 7,    8,    0,    0,    0, 0,    0,    0,
                        0,    9,    0,    0,    0, 0, 0,    0,    0,    10}));
  cell.kind = ControlKind::hold_back;
  cell.refresh = false;
  materialise(cell, out);
  EXPECT_EQ(out[15], 4);
  EXPECT_EQ(out[16], 0);
}

}  // namespace
}  // namespace weft::cells
