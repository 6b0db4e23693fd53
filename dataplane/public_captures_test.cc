// SPDX-License-Identifier: BSD-3-Clause
// Captures of public projects: each is read as Wireshark's tools read it, or refused with one line that says why.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "dataplane/replay.h"
#include "dataplane/testing/capture_bytes.h"

namespace weft {
namespace {

using namespace literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

struct PublicCaptures : ::testing::Test {
  void SetUp() override {
    folder = testing::public_captures();
    if (folder.empty()) GTEST_SKIP() << "no public captures here; WEFT_PUBLIC_CAPTURES can say where they are";
    for (const fs::directory_entry& entry : fs::directory_iterator(folder))
      if (entry.path().filename() != "INDEX.tsv") names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
  }
  [[nodiscard]] std::string path(const std::string& name) const { return folder + "/" + name; }
  [[nodiscard]] std::string refusal(const std::string& name, bool strict = false) const {
    try {
      Capture::read(path(name), strict);
    } catch (const CaptureError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      return error.what();
    }
    return "accepted";
  }
  std::string folder;
  std::vector<std::string> names;
};

Topology square_fabric() {
  Topology topology;
  topology.leaves = topology.spines = topology.hosts_per_leaf = 4;
  return topology;
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == '\t') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

std::uint8_t class_0(std::span<const std::uint8_t>) { return 0; }

ReplayPlan plan_of(const std::shared_ptr<const Capture>& capture, const ReplayConfig& config = {}) {
  return plan_replay(capture, config, square_fabric(), class_0);
}

// All of them, in the order of the frames: what is sent is what is in the file, at times that never run backwards.
TEST_F(PublicCaptures, EachIsPlannedWholeOrRefusedInOneLine) {
  std::size_t planned = 0, refused = 0;
  std::vector<std::uint8_t> out(longest_replayed_frame_bytes);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    std::shared_ptr<const Capture> capture;
    try {
      capture = Capture::read(path(name));
    } catch (const CaptureError& error) {
      ++refused;
      EXPECT_THAT(std::string(error.what()), AllOf(HasSubstr(name + ": "), ::testing::Not(HasSubstr("\n"))));
      continue;
    }
    ++planned;
    for (const std::string& note : capture->notes()) EXPECT_EQ(note.find('\n'), std::string::npos);
    const ReplayPlan plan = plan_of(capture);
    EXPECT_EQ(plan.result.expected, capture->frames().size());
    EXPECT_EQ(plan.result.expected + plan.result.skipped, capture->index().records) << "every record is sent or named";
    std::uint64_t frames = 0;
    for (const auto& port : plan.sources) {
      for (const auto& source : port) {
        TimePs before = 0;
        std::uint32_t record = 0;
        for (; source->ready != never; source->skip(), ++frames) {
          EXPECT_GE(source->ready, before);
          EXPECT_GT(source->peek().record, record);
          before = source->ready;
          record = source->peek().record;
          source->copy_to(out.data());
          const auto bytes = capture->bytes(source->peek());
          EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), out.begin()));
        }
      }
    }
    EXPECT_EQ(frames, plan.frames);
  }
  EXPECT_GT(planned, 100u);
  EXPECT_GT(refused, 20u);
}

TEST_F(PublicCaptures, CountsBytesAndTimesAreThoseOfCapinfos) {
  if (!testing::have_tshark()) GTEST_SKIP() << "capinfos isn't installed";
  std::size_t compared = 0;
  // Name, packets, bytes, first and last stamp (least and most), of every file in one go.
  const auto report =
      testing::run("cd '" + folder + "' && capinfos -T -r -B -S -c -d -a -e -K $(ls | grep -v INDEX.tsv)");
  for (const std::string& line : report.lines()) {
    SCOPED_TRACE(line);
    const std::vector<std::string> field = fields_of(line);
    ASSERT_EQ(field.size(), 5u);
    std::shared_ptr<const Capture> capture;
    try {
      capture = Capture::read(path(field[0]));
    } catch (const CaptureError&) {
      continue;
    }
    // capinfos takes this damaged file for a variant of the format with longer record headers; its first record says it
    // isn't.
    if (field[0].starts_with("OISF_suricata-verify__bug-6875-01")) continue;
    const CaptureIndex& index = capture->index();
    EXPECT_EQ(index.records, std::stoull(field[1]));
    const bool comparable =
        index.other_link_type + index.too_long + index.length_contradicted + index.stamp_invalid == 0;
    if (!comparable) continue;
    std::uint64_t bytes = 0;
    std::int64_t first = INT64_MAX, last = INT64_MIN;
    for (const CaptureFrame& frame : capture->frames()) {
      bytes += frame.length;
      first = std::min(first, frame.stamp_ns);
      last = std::max(last, frame.stamp_ns);
    }
    EXPECT_EQ(bytes, std::stoull(field[2]));
    const auto seconds = [&](std::int64_t ns, const std::string& like) {  // with as many digits
      char text[64];
      std::snprintf(text, sizeof text, "%lld.%09lld", static_cast<long long>(ns / 1'000'000'000),
                    static_cast<long long>(ns % 1'000'000'000));
      return std::string(text).substr(0, std::string(text).size() - 9 + (like.size() - like.find('.') - 1));
    };
    EXPECT_EQ(seconds(first, field[3]), field[3]);
    EXPECT_EQ(seconds(last, field[4]), field[4]);
    ++compared;
  }
  EXPECT_GT(compared, 90u);
}

// Frame by frame, for files that differ in what is hard about them; all of them where WEFT_ALL_CAPTURES is set (a
// minute).
TEST_F(PublicCaptures, EveryFrameIsThatOfTshark) {
  if (!testing::have_tshark()) GTEST_SKIP() << "tshark isn't installed";
  std::vector<std::string> chosen{"seladb_PcapPlusPlus__pcapng-example.pcapng",
                                  "seladb_PcapPlusPlus__many_interfaces-1.pcapng",
                                  "seladb_PcapPlusPlus__nanosecs_big_endian.pcap",
                                  "hadrielk_pcapng-test-generator__be_difficult_test202.pcapng",
                                  "hadrielk_pcapng-test-generator__le_difficult_test201.pcapng",
                                  "derived__roce_tail_cut_midrecord.pcap",
                                  "derived__roce_snap64.pcap",
                                  "derived__two_ifs_roce.pcapng",
                                  "debian_wireshark-4.0.17__grpc_stream_reassembly_sample.pcapng.gz",
                                  "xdp2-dev_xdp2__malformed_header-wire_length_tcp.pcap",
                                  "synth__pcapng_tsresol_2pow30_tsoffset_snaplen_ffffffff.pcapng",
                                  "the-tcpdump-group_tcpdump__time_2039.pcap"};
  if (std::getenv("WEFT_ALL_CAPTURES") != nullptr) chosen = names;
  for (const std::string& name : chosen) {
    SCOPED_TRACE(name);
    std::shared_ptr<const Capture> capture;
    try {
      capture = Capture::read(path(name));
    } catch (const CaptureError&) {
      continue;
    }
    if (name.starts_with("OISF_suricata-verify__bug-6875-01")) continue;  // see above
    const auto report = testing::run(
        "tshark -n -r '" + path(name) +
        "' -T fields -e frame.number -e frame.encap_type -e frame.time_epoch -e frame.len -e frame.cap_len");
    std::size_t next = 0;
    for (const std::string& line : report.lines()) {
      const std::vector<std::string> field = fields_of(line);
      ASSERT_EQ(field.size(), 5u);
      const std::uint64_t length = std::stoull(field[3]), captured = std::stoull(field[4]);
      const std::uint64_t sent = std::max(length, captured);
      if (field[1] != "1" || sent > longest_replayed_frame_bytes || sent == 0) continue;
      ASSERT_LT(next, capture->frames().size()) << line;
      const CaptureFrame& frame = capture->frames()[next++];
      // tshark counts custom blocks as records too; of these files only the conformance suite has any.
      if (!name.starts_with("hadrielk")) {
        EXPECT_EQ(frame.record, std::stoull(field[0])) << line;
      }
      EXPECT_EQ(frame.length, sent) << line;
      EXPECT_EQ(frame.captured, captured) << line;
      // A record without a usable stamp has none there (or 0), and that of its neighbour here.
      if (field[2].empty() || capture->index().stamp_invalid != 0) continue;
      const std::size_t dot = field[2].find('.');
      const std::int64_t ns =
          std::stoll(field[2].substr(0, dot)) * 1'000'000'000 + std::stoll(field[2].substr(dot + 1));
      EXPECT_EQ(frame.stamp_ns, ns) << line;
    }
    EXPECT_EQ(next, capture->frames().size());
  }
}

TEST_F(PublicCaptures, ThoseThatAreRefusedSayWhatTheyAre) {
  const std::map<std::string, std::string> expected{
      {"derived__zero_byte_file.pcap", "empty (0 bytes)"},
      {"derived__roce_10byte_file.pcap", "only 10 bytes"},
      {"derived__roce_hdr_plus_6bytes.pcap", "record 1: the file ends within its header (6 of 16 bytes)"},
      {"debian_wireshark-4.0.17__empty.pcap", "no packet records"},
      {"the-tcpdump-group_tcpdump__tcp-handshake-nano.pcap", "LINUX_SLL (113)"},
      {"srinivaskoritala_rdma-softroce-demo__infiniband.pcap", "ERF (197)"},
      {"the-tcpdump-group_tcpdump__ipoib.pcap", "(242)"},
      {"seladb_PcapPlusPlus__microsecs_big_endian.pcap", "NETLINK (253)"},
      {"seladb_PcapPlusPlus__solaris.snoop", "snoop"},
      {"seladb_PcapPlusPlus__pcapng-example.pcapng.zst", "zstd"},
      {"ntop_nDPI__ossfuzz_seed_fake_traces_1.pcapng", "interface 0 left out: link type IPV4 (228)"},
      {"the-tcpdump-group_libpcap__pcap-invalid-version-1.pcap", "archaic"},
      {"the-tcpdump-group_libpcap__pcapng-invalid-vers-1.pcapng", "version 0.1"},
      {"the-tcpdump-group_libpcap__pcapng-invalid-vers-2.pcapng", "version 1.1"},
      {"the-tcpdump-group_libpcap__shb-option-too-long.pcapng", "block 1 at byte 0"},
      {"the-tcpdump-group_libpcap__linktype-reserved-field-not-zero.pcap", "reserved bits"},
      {"ntop_nDPI__fuzz-2021-06-07-c6c72a0a56.pcap", "longer than 65407 bytes"},
      {"the-tcpdump-group_tcpdump__bigtcp-ipv4-vxlan-ipv4.pcap", "longer than 65407 bytes"},
  };
  for (const auto& [name, why] : expected) {
    EXPECT_THAT(refusal(name), AllOf(HasSubstr(name + ": "), HasSubstr(why)));
  }
}

TEST_F(PublicCaptures, MixedLinkTypesAreCountedByInterface) {  // CASES A3
  const auto example = Capture::read(path("seladb_PcapPlusPlus__pcapng-example.pcapng"));
  EXPECT_EQ(example->frames().size(), 59u);
  EXPECT_THAT(example->notes(), Contains(AllOf(HasSubstr("100 packets of interface 1"), HasSubstr("LINUX_SLL (113)"))));
  const auto many = Capture::read(path("seladb_PcapPlusPlus__many_interfaces-1.pcapng"));
  EXPECT_EQ(many->frames().size(), 62u);
  EXPECT_THAT(many->notes(), Contains(HasSubstr("2 packets of interface 10 \"lo0\" left out: link type NULL (0)")));
  EXPECT_THAT(refusal("seladb_PcapPlusPlus__many_interfaces-1.pcapng", true), HasSubstr("\"lo0\""));
}

TEST_F(PublicCaptures, Powers2OffsetsAndNanosecondsArriveInThePlan) {  // CASES A4, A6
  const auto binary = Capture::read(path("synth__pcapng_tsresol_2pow30_tsoffset_snaplen_ffffffff.pcapng"));
  ASSERT_EQ(binary->frames().size(), 3u);
  EXPECT_EQ(binary->frames()[0].stamp_ns, 1'700'000'000'000'000'000);
  EXPECT_EQ(binary->frames()[1].stamp_ns, 1'700'000'000'500'000'000);
  EXPECT_EQ(binary->frames()[2].stamp_ns, 1'700'000'001'000'000'000);
  const auto sweep = Capture::read(path("synth__roce_opcode_sweep_be_nsec.pcap"));
  ASSERT_EQ(sweep->frames().size(), 37u);
  const ReplayPlan plan = plan_of(sweep);
  std::set<TimePs> times;
  for (const auto& port : plan.sources)
    for (const auto& source : port)
      for (; source->ready != never; source->skip()) times.insert(source->ready);
  std::set<TimePs> expected;
  for (TimePs i = 0; i < 37; ++i) expected.insert(i * 87_ns);
  EXPECT_EQ(times, expected);
}

TEST_F(PublicCaptures, TenLoopsOfTwentyOneSecondsDoNotDrift) {  // CASES A7
  ReplayConfig config;
  config.loop = 10;
  const ReplayPlan plan = plan_of(Capture::read(path("oferby_proxy__roce.pcap")), config);
  std::vector<TimePs> last;
  for (const auto& port : plan.sources)
    for (const auto& source : port)
      for (; source->ready != never; source->skip())
        if (source->peek().record == 123) last.push_back(source->ready);
  ASSERT_EQ(last.size(), 10u);
  for (std::size_t n = 0; n < 10; ++n) EXPECT_EQ(last[n], (n + 1) * 21'299'678'000'000ull);
}

TEST_F(PublicCaptures, JumpsOfYearsAreShortened) {
  const ReplayPlan plan = plan_of(Capture::read(path("derived__two_ifs_roce.pcapng")));
  EXPECT_EQ(plan.result.gaps_shortened, 1u);
  EXPECT_LT(plan.last, 200_s);
  EXPECT_THAT(plan.result.notes, Contains(HasSubstr("1057")));  // 105,749,380 s
}

TEST_F(PublicCaptures, InterfacesMapToPortsByNameOrNumber) {
  ReplayConfig config;
  config.ports = {{.mac = "", .interface = "port0", .port = 5},
                  {.mac = "", .interface = "port1", .port = 9},
                  {.mac = "", .interface = "2", .port = 13}};
  const ReplayPlan plan = plan_of(Capture::read(path("synth__incast_3ports_100each_ns.pcapng"), true), config);
  for (const std::uint32_t port : {5u, 9u, 13u}) {
    ASSERT_EQ(plan.sources[port].size(), 1u);
    std::size_t frames = 0;
    for (; plan.sources[port][0]->ready != never; plan.sources[port][0]->skip()) ++frames;
    EXPECT_EQ(frames, 100u);
  }
  // A name with a backslash and braces, as Windows has them.
  config.ports = {{.mac = "", .interface = R"(\Device\NPF_{5AE6EDB4-EFF9-46B3-A3C2-EE50C688A9E6})", .port = 7}};
  const ReplayPlan windows = plan_of(Capture::read(path("zeek_zeek__pcapng-multi-interface.pcapng")), config);
  std::size_t frames = 0;
  for (const auto& source : windows.sources[7])
    for (; source->ready != never; source->skip()) ++frames;
  EXPECT_EQ(frames, 4u);
}

TEST_F(PublicCaptures, SnappedFramesAreSentAtTheirLength) {  // CASES A11
  const auto capture = Capture::read(path("derived__roce_snap64.pcap"));
  const ReplayPlan plan = plan_of(capture);
  EXPECT_EQ(plan.result.padded, 74u);  // counted with tshark: frame.len > frame.cap_len
  std::uint64_t whole_bytes = 0;
  const auto whole = Capture::read(path("oferby_proxy__roce.pcap"));
  for (const CaptureFrame& frame : whole->frames()) whole_bytes += frame.length;
  EXPECT_EQ(plan.bytes, whole_bytes);
  ReplayConfig strict;
  strict.strict = true;
  EXPECT_THROW(plan_of(capture, strict), CaptureError);
}

// The same frames through every disguise: byte order, resolution, compression.
TEST_F(PublicCaptures, VariantsOfOneCaptureAreOneCapture) {
  const auto original = Capture::read(path("oferby_proxy__roce.pcap"));
  for (const char* name : {"derived__roce_bigendian.pcap", "derived__roce_nsec.pcap", "derived__roce.pcap.gz"}) {
    SCOPED_TRACE(name);
    const auto variant = Capture::read(path(name), true);
    ASSERT_EQ(variant->frames().size(), original->frames().size());
    for (std::size_t i = 0; i < original->frames().size(); ++i) {
      const auto a = original->bytes(original->frames()[i]), b = variant->bytes(variant->frames()[i]);
      EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
      EXPECT_EQ(original->frames()[i].stamp_ns / 1000, variant->frames()[i].stamp_ns / 1000);
    }
  }
}

TEST_F(PublicCaptures, RoceFramesOfThePublicLabAreAllThere) {  // CASES A8
  const auto capture = Capture::read(path("montybeatnik_rdma-roce-lab__roce_capture_read-write-ecn.pcap"), true);
  EXPECT_EQ(plan_of(capture).result.expected, 12u);
}

}  // namespace
}  // namespace weft
