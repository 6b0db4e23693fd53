// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/capture_reader.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <zlib.h>

#include <thread>

#include "dataplane/pcapng_reader.h"
#include "dataplane/testing/capture_bytes.h"

namespace weft {
namespace {

using ::testing::AllOf;
using testing::Bytes;
using ::testing::ElementsAre;
using testing::frame_bytes;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::PcapFile;
using testing::PcapngFile;
using ::testing::StartsWith;

std::shared_ptr<const Capture> read(const Bytes& bytes, bool strict = false) {
  return Capture::from_bytes("f.pcap", bytes, strict);
}

std::string refusal(const Bytes& bytes, bool strict = false) {
  try {
    read(bytes, strict);
  } catch (const CaptureError& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << "one line";
    return error.what();
  }
  return "accepted";
}

std::vector<std::int64_t> stamps(const Capture& capture) {
  std::vector<std::int64_t> out;
  for (const CaptureFrame& f : capture.frames()) out.push_back(f.stamp_ns);
  return out;
}

Bytes content(const Capture& capture, std::size_t frame) {
  const auto bytes = capture.bytes(capture.frames()[frame]);
  return {bytes.begin(), bytes.end()};
}

TEST(PcapReader, EveryResolutionAndByteOrder) {
  for (const bool big_endian : {false, true}) {
    for (const bool nanoseconds : {false, true}) {
      const PcapFile file{
          .nanoseconds = nanoseconds,
          .big_endian = big_endian,
          .records = {{1'700'000'000, 5, frame_bytes(1, 2)}, {1'700'000'001, 999'999, frame_bytes(2, 1, 61)}}};
      const auto capture = read(file.bytes());
      const std::int64_t unit = nanoseconds ? 1 : 1000;
      EXPECT_THAT(stamps(*capture),
                  ElementsAre(1'700'000'000'000'000'000 + 5 * unit, 1'700'000'001'000'000'000 + 999'999 * unit));
      EXPECT_EQ(content(*capture, 0), frame_bytes(1, 2));
      EXPECT_EQ(content(*capture, 1), frame_bytes(2, 1, 61));  // odd length
      EXPECT_THAT(capture->notes(), IsEmpty());
    }
  }
}

TEST(PcapReader, SecondsAfter2038AreNotNegative) {
  const auto capture = read(PcapFile{.records = {{0xf000'0000, 0, frame_bytes(1, 2)}}}.bytes());
  EXPECT_THAT(stamps(*capture), ElementsAre(0xf000'0000LL * 1'000'000'000));
}

// The header says 64, the record has 200 bytes: libpcap would hand over 64 of them and say nothing.
TEST(PcapReader, SnaplenOfTheHeaderCutsNothing) {
  const auto capture =
      read(PcapFile{.snaplen = 64, .records = {{1, 0, frame_bytes(1, 2, 200)}, {2, 0, frame_bytes(2, 1, 70)}}}.bytes());
  ASSERT_EQ(capture->frames().size(), 2u);
  EXPECT_EQ(content(*capture, 0), frame_bytes(1, 2, 200));
  EXPECT_EQ(content(*capture, 1), frame_bytes(2, 1, 70));
}

TEST(PcapReader, CutAtEveryByteKeepsTheWholeRecords) {
  const Bytes whole =
      PcapFile{.records = {{1, 0, frame_bytes(1, 2)}, {2, 0, frame_bytes(2, 1)}, {3, 0, frame_bytes(1, 2)}}}.bytes();
  constexpr std::size_t header = 24, record = 16 + 60;
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    SCOPED_TRACE(size);
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    if (size < header + record) {
      EXPECT_THAT(refusal(cut), StartsWith("f.pcap: "));
      EXPECT_NE(refusal(cut), "accepted");
      continue;
    }
    const auto capture = read(cut);
    const std::size_t records = (size - header) / record;
    EXPECT_EQ(capture->frames().size(), records);
    if (size == header + records * record) {
      EXPECT_THAT(capture->notes(), IsEmpty());
    } else {
      EXPECT_THAT(capture->notes(), ElementsAre(HasSubstr("record " + std::to_string(records + 1))));
      EXPECT_THAT(refusal(cut, true), AllOf(HasSubstr("strict"), HasSubstr("record " + std::to_string(records + 1))));
    }
  }
}

TEST(PcapReader, RefusesWhatIsNoEthernetCapture) {
  PcapFile sll{.link_type = 113, .records = {{1, 0, frame_bytes(1, 2)}}};
  EXPECT_THAT(refusal(sll.bytes()), AllOf(HasSubstr("LINUX_SLL (113)"), HasSubstr("Ethernet")));
  sll.link_type = 60'000;
  EXPECT_THAT(refusal(sll.bytes()), HasSubstr("unknown (60000)"));
  sll.link_type = 0x0030'0001;
  EXPECT_THAT(refusal(sll.bytes()), HasSubstr("reserved"));
  EXPECT_THAT(refusal(PcapFile{.major = 1}.bytes()), HasSubstr("not a usable pcap file"));
  EXPECT_THAT(refusal(PcapFile{.major = 3}.bytes()), HasSubstr("not a usable pcap file"));
  EXPECT_THAT(refusal(PcapFile{}.bytes()), HasSubstr("no packet records"));
  EXPECT_THAT(refusal({}), HasSubstr("empty (0 bytes)"));
  EXPECT_THAT(refusal({0xd4, 0xc3, 0xb2, 0xa1, 2, 0}), HasSubstr("only 6 bytes"));
  EXPECT_THAT(refusal({'h', 'e', 'l', 'l', 'o'}), HasSubstr("starts with 68 65 6c 6c"));
  EXPECT_THAT(refusal({'h'}), HasSubstr("starts with 68;"));
  EXPECT_THAT(refusal({'s', 'n', 'o', 'o', 'p', 0, 0, 0, 0, 0, 0, 2}), HasSubstr("snoop"));
  EXPECT_THAT(refusal({0x28, 0xb5, 0x2f, 0xfd, 0}), HasSubstr("zstd -d"));
}

TEST(PcapReader, AbsurdLengthsEndTheReadingOrTheFrame) {
  const PcapFile::Record good{1, 0, frame_bytes(1, 2)};
  auto capture = read(PcapFile{.records = {good, {2, 0, frame_bytes(1, 2), 0x7fff'ffff}, good}}.bytes());
  EXPECT_EQ(capture->frames().size(), 1u);
  EXPECT_THAT(capture->notes(), ElementsAre(HasSubstr("record 2")));
  // A length of 4 GB on the wire is in bounds of the format, but not of any port.
  capture = read(PcapFile{.records = {good, {2, 0, frame_bytes(1, 2), -1, 0xffff'ffff}, good}}.bytes());
  EXPECT_EQ(capture->frames().size(), 2u);
  EXPECT_EQ(capture->index().too_long, 1u);
  EXPECT_THAT(capture->notes(), ElementsAre(AllOf(HasSubstr("65407"), HasSubstr("record 2"))));
}

TEST(CaptureReader, LengthBounds) {
  const auto capture = read(PcapFile{.records = {{1, 0, frame_bytes(1, 2, longest_replayed_frame_bytes)},
                                                 {2, 0, frame_bytes(1, 2, longest_replayed_frame_bytes + 1)},
                                                 {3, 0, Bytes{}},
                                                 {4, 0, Bytes{7}},
                                                 {5, 0, frame_bytes(1, 2, 8), -1, 78},
                                                 {6, 0, frame_bytes(1, 2, 100), -1, 40}}}
                                .bytes());
  const auto& frames = capture->frames();
  ASSERT_EQ(frames.size(), 4u);
  EXPECT_EQ(frames[0].length, longest_replayed_frame_bytes);
  EXPECT_EQ(frames[1].length, 1u);  // a runt is the switch's to count
  EXPECT_EQ(frames[2].captured, 8u);
  EXPECT_EQ(frames[2].length, 78u);
  EXPECT_EQ(frames[3].length, 100u);  // captured more than there was: the bytes are there
  EXPECT_EQ(frames[3].record, 6u);
  EXPECT_EQ(capture->index().snapped, 1u);
  EXPECT_THAT(capture->notes(), ElementsAre(HasSubstr("record 2"), AllOf(HasSubstr("length 0"), HasSubstr("record 3")),
                                            AllOf(HasSubstr("original length"), HasSubstr("record 6"))));
}

TEST(CaptureReader, ImpossibleStampsAreThoseOfTheFrameBefore) {
  for (const bool nanoseconds : {false, true}) {
    // 4,294,968 µs x 1000 is 704 in 32 bits: a reader that multiplies first finds the stamp good.
    const std::uint32_t bad = nanoseconds ? 1'000'000'000 : 4'294'968;
    const auto capture = read(PcapFile{.nanoseconds = nanoseconds,
                                       .records = {{9, bad, frame_bytes(1, 2)},
                                                   {7, 0, frame_bytes(1, 2)},
                                                   {9, bad, frame_bytes(1, 2)},
                                                   {8, 0, frame_bytes(1, 2)}}}
                                  .bytes());
    EXPECT_THAT(stamps(*capture), ElementsAre(7'000'000'000, 7'000'000'000, 7'000'000'000, 8'000'000'000));
    EXPECT_THAT(capture->notes(),
                ElementsAre(AllOf(HasSubstr("2 frames"), HasSubstr("time stamp"), HasSubstr("record 1"))));
  }
}

TEST(PcapngReader, EveryPacketBlockInEitherByteOrder) {
  for (const bool big_endian : {false, true}) {
    PcapngFile file(big_endian);
    file.interface("eth0")
        .block(0x0bad, Bytes(40, 1))
        .block(0x8000'0bad, {})
        .packet(0, 1'000'000'007, frame_bytes(1, 2, 61));
    file.obsolete_packet(0, 2'000'000'000, frame_bytes(2, 1))
        .simple_packet(frame_bytes(3, 1), 60)
        .block(5, Bytes(12, 0));
    const auto capture = read(file.bytes);
    EXPECT_THAT(stamps(*capture), ElementsAre(1'000'000'007, 2'000'000'000, 2'000'000'000));
    EXPECT_EQ(content(*capture, 0), frame_bytes(1, 2, 61));
    EXPECT_EQ(content(*capture, 1), frame_bytes(2, 1));
    EXPECT_EQ(content(*capture, 2), frame_bytes(3, 1));
    EXPECT_EQ(capture->interfaces()[0].name, "eth0");
    EXPECT_EQ(capture->interfaces()[0].frames, 3u);
  }
}

TEST(PcapngReader, SimplePacketsAreCutAtTheSnaplenOfTheFirstInterface) {
  PcapngFile file;
  file.interface("a", 1, 9, 0, 33).simple_packet(frame_bytes(1, 2, 33), 90);  // 3 bytes of padding follow
  const auto capture = read(file.bytes);
  EXPECT_EQ(capture->frames()[0].captured, 33u);
  EXPECT_EQ(capture->frames()[0].length, 90u);
}

TEST(PcapngReader, ResolutionsAndOffsets) {
  EXPECT_EQ(stamp_of(1'500'000, 6, 0)->ns, 1'500'000'000);
  EXPECT_EQ(stamp_of(3, 0, 0)->ns, 3'000'000'000);
  EXPECT_EQ(stamp_of(1'234'567, 12, 0)->ns, 1'234);
  EXPECT_EQ(stamp_of(1'234'567, 12, 0)->ps, 567);
  EXPECT_EQ(stamp_of(123'456'789, 15, 0)->ns, 123);
  EXPECT_EQ(stamp_of(123'456'789, 15, 0)->ps, 456);
  EXPECT_EQ(stamp_of(~std::uint64_t{0}, 127, 0)->ns, 0);
  EXPECT_EQ(stamp_of(3ull << 29, 0x80 | 30, 1'000'000'000)->ns, 1'000'000'001'500'000'000);
  EXPECT_EQ(stamp_of(~std::uint64_t{0}, 0xff, 0)->ns, 0);
  EXPECT_EQ(stamp_of(1, 9, -1)->ns, -999'999'999);  // before 1970
  EXPECT_EQ(stamp_of(1, 12, -1)->ns, -1'000'000'000);
  EXPECT_EQ(stamp_of(1, 12, -1)->ps, 1);
  EXPECT_FALSE(stamp_of(~std::uint64_t{0}, 0, 0));
  EXPECT_FALSE(stamp_of(~std::uint64_t{0}, 6, 0));
  EXPECT_FALSE(stamp_of(0, 9, INT64_MAX));
  EXPECT_FALSE(stamp_of(0, 9, INT64_MIN));
  EXPECT_EQ(stamp_of(0x7fff'ffff'ffff'ffff, 9, 0)->ns, INT64_MAX);
}

// Interface numbers and clocks start anew in each section, the byte order too.
TEST(PcapngReader, SectionsOfDifferentByteOrder) {
  PcapngFile file(false);
  file.interface("a", 1, 9).packet(0, 1'000, frame_bytes(1, 2)).section(true);
  file.interface("b", 113, 6)
      .interface("c", 1, 3, 5, 0xffff'ffff)
      .packet(1, 7, frame_bytes(2, 1))
      .packet(0, 9, frame_bytes(2, 1));
  const auto capture = read(file.bytes);
  EXPECT_THAT(stamps(*capture), ElementsAre(1'000, 5'007'000'000));
  ASSERT_EQ(capture->interfaces().size(), 3u);
  EXPECT_EQ(capture->frames()[1].interface, 2u);
  EXPECT_EQ(capture->interfaces()[1].skipped, 1u);
  EXPECT_THAT(capture->notes(),
              ElementsAre(AllOf(HasSubstr("1 packet of interface 1 \"b\""), HasSubstr("LINUX_SLL (113)"))));
  EXPECT_THAT(refusal(file.bytes, true), HasSubstr("LINUX_SLL (113)"));
}

TEST(PcapngReader, OnlyOtherLinkTypesIsARefusalThatNamesThem) {
  PcapngFile file;
  for (int i = 0; i < 12; ++i) file.interface("if\n" + std::to_string(i), 113);
  for (std::uint32_t i = 0; i < 12; ++i) file.packet(i, i, frame_bytes(1, 2));
  const std::string line = refusal(file.bytes);
  EXPECT_THAT(line, AllOf(HasSubstr("interface 0 \"if\\x0a0\""), HasSubstr("LINUX_SLL (113)"),
                          HasSubstr("4 packets of 4 more interfaces")));
}

TEST(PcapngReader, CutAtEveryByteKeepsTheWholeBlocks) {
  PcapngFile file;
  file.interface("eth0").packet(0, 1, frame_bytes(1, 2)).packet(0, 2, frame_bytes(1, 2, 61));
  const std::size_t first = file.bytes.size() - 32 - 64, second = file.bytes.size();
  for (std::size_t size = 0; size <= second; ++size) {
    SCOPED_TRACE(size);
    const Bytes cut(file.bytes.begin(), file.bytes.begin() + static_cast<std::ptrdiff_t>(size));
    if (size < first) {
      EXPECT_NE(refusal(cut), "accepted");
    } else {
      const auto capture = read(cut);
      EXPECT_EQ(capture->frames().size(), size == second ? 2u : 1u);
      EXPECT_EQ(capture->notes().size(), size == first || size == second ? 0u : 1u);
    }
  }
}

TEST(PcapngReader, BadBlocksEndTheReadingWithTheReason) {
  const auto note_of = [](auto&& break_it) {
    PcapngFile file;
    file.interface("eth0").packet(0, 1, frame_bytes(1, 2));
    const std::size_t at = file.bytes.size();
    file.packet(0, 2, frame_bytes(1, 2)).packet(0, 3, frame_bytes(1, 2));
    break_it(file, at);
    const auto capture = read(file.bytes);
    EXPECT_EQ(capture->frames().size(), 1u);
    return capture->notes().empty() ? std::string("nothing") : capture->notes()[0];
  };
  const auto set = [](PcapngFile& file, std::size_t at, std::uint32_t value) {
    for (unsigned i = 0; i < 4; ++i) file.bytes[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
  };
  EXPECT_THAT(note_of([&](PcapngFile& f, std::size_t at) { set(f, at + 4, 8); }), HasSubstr("block length is 8"));
  EXPECT_THAT(note_of([&](PcapngFile& f, std::size_t at) { set(f, at + 4, 0xffff'fffc); }), HasSubstr("the file ends"));
  EXPECT_THAT(note_of([&](PcapngFile& f, std::size_t at) { set(f, at + 88, 96); }),
              HasSubstr("92 at its start and 96 at its end"));
  EXPECT_THAT(note_of([&](PcapngFile& f, std::size_t at) { set(f, at + 8, 1); }), HasSubstr("packet of interface 1"));
  EXPECT_THAT(note_of([&](PcapngFile& f, std::size_t at) { set(f, at + 20, 61); }), HasSubstr("61 captured bytes"));
  EXPECT_THAT(note_of([&](PcapngFile& f, std::size_t at) { set(f, at, 0x0a0d0d0a); }), HasSubstr("byte-order magic"));
  EXPECT_THAT(note_of([&](PcapngFile& f, std::size_t at) { set(f, at, 1), set(f, at + 16, 0xffff'0002); }),
              HasSubstr("option 2 claims"));
}

TEST(PcapngReader, NameAndDescriptionStopAtNul) {
  PcapngFile file;
  file.interface(std::string_view("ab\0cd", 5)).packet(0, 1, frame_bytes(1, 2));
  EXPECT_EQ(read(file.bytes)->interfaces()[0].name, "ab");
}

Bytes gzip(const Bytes& plain) {
  Bytes out(plain.size() + 1000);
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = const_cast<std::uint8_t*>(plain.data());
  stream.avail_in = static_cast<unsigned>(plain.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<unsigned>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(CaptureFile, GzipWholeInMembersCutAndDamaged) {
  PcapFile file;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    Bytes data = frame_bytes(1, 2, 100);
    for (std::size_t b = 14; b < data.size(); ++b) data[b] = static_cast<std::uint8_t>((i * 131 + b * 7919 * i) >> 3);
    file.records.push_back({i, 0, data});
  }
  const Bytes plain = file.bytes();
  EXPECT_EQ(read(gzip(plain))->frames().size(), 1000u);

  Bytes members = gzip(Bytes(plain.begin(), plain.begin() + 5000));
  const Bytes rest = gzip(Bytes(plain.begin() + 5000, plain.end()));
  members.insert(members.end(), rest.begin(), rest.end());
  EXPECT_EQ(read(members)->frames().size(), 1000u);

  Bytes cut = gzip(plain);
  cut.resize(cut.size() / 2);
  const auto capture = read(cut);
  EXPECT_GT(capture->frames().size(), 100u);
  EXPECT_LT(capture->frames().size(), 1000u);
  EXPECT_THAT(capture->notes(), ::testing::Contains(HasSubstr("compressed data ends early")));
  EXPECT_THAT(refusal(cut, true), HasSubstr("strict"));

  Bytes damaged = gzip(plain);
  damaged[damaged.size() - 6] ^= 1;  // the checksum
  EXPECT_THAT(read(damaged)->notes(), ::testing::Contains(HasSubstr("compressed data is damaged")));
  EXPECT_THAT(refusal({0x1f, 0x8b, 8, 0, 0}), HasSubstr("compressed data"));
}

TEST(CaptureFile, ReadsFilesAndPipesAndSaysWhyNot) {
  const testing::ScratchFolder folder;
  const Bytes bytes = PcapFile{.records = {{1, 0, frame_bytes(1, 2)}}}.bytes();
  testing::write_file(folder.file("a"), bytes);
  EXPECT_EQ(Capture::read(folder.file("a"))->frames().size(), 1u);

  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  std::thread writer([&] { testing::write_file(folder.file("pipe"), bytes); });
  EXPECT_EQ(Capture::read(folder.file("pipe"))->frames().size(), 1u);
  writer.join();

  const auto why = [](const std::string& path) {
    try {
      Capture::read(path);
    } catch (const CaptureError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(why(folder.file("none")), AllOf(HasSubstr("/none: "), HasSubstr("No such file")));
  EXPECT_THAT(why(folder.file("")), HasSubstr("is a folder"));
}

TEST(Printable, OneLineWhateverComes) {
  EXPECT_EQ(printable("leaf1:eth5()@rx"), "leaf1:eth5()@rx");
  EXPECT_EQ(printable("a\nb\x7f\xff\xc3\xa9"), "a\\x0ab\\x7f\\xff\xc3\xa9");
  EXPECT_EQ(printable("\xc3"), "\\xc3");
  EXPECT_LT(printable(std::string(10'000, 'x')).size(), 300u);
}

}  // namespace
}  // namespace weft
