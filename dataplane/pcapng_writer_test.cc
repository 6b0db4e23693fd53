// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/pcapng_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dataplane/capture_reader.h"
#include "dataplane/testing/capture_bytes.h"

namespace weft {
namespace {

using namespace literals;
using ::testing::AllOf;
using testing::Bytes;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::frame_bytes;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<TapPoint> taps{{.name = "leaf0:p3 in", .description = "from the host", .speed = {400'000'000'000}},
                                 {.name = "leaf0>spine1", .description = {}},
                                 {.name = "leaf1:eth5()@rx \xc3\xa9,\"'", .description = {}},
                                 {.name = "leaf0 drops", .description = {}}};
constexpr std::uint64_t epoch_ns = 1'700'000'000'000'000'000;

void write_sample(const std::string& path) {
  PcapngWriter writer(path, taps, {.epoch_ns = epoch_ns});
  writer.packet(0, 1'999, frame_bytes(1, 2, 60), 60);
  writer.packet(1, 2'000, frame_bytes(1, 2, 61), 61, "cell 7");
  writer.packet(2, 5_us, frame_bytes(1, 2, 64), 4170);
  writer.packet(3, 3_s, frame_bytes(1, 2, 62), 62, "mtu_exceeded: frame longer than the MTU");
  writer.add_drops(2, 5);
  EXPECT_TRUE(writer.finish());
  EXPECT_EQ(writer.packets(), 4u);
  EXPECT_EQ(writer.lost(), 0u);
}

TEST(PcapngWriter, OwnReaderGetsEverythingBack) {
  const testing::ScratchFolder folder;
  write_sample(folder.file("a"));
  const auto capture = Capture::read(folder.file("a"), true);
  ASSERT_EQ(capture->frames().size(), 4u);
  std::vector<std::int64_t> stamps;
  for (const CaptureFrame& f : capture->frames()) stamps.push_back(f.stamp_ns - static_cast<std::int64_t>(epoch_ns));
  EXPECT_THAT(stamps, ElementsAre(1, 2, 5'000, 3'000'000'000)) << "picoseconds are rounded down";
  EXPECT_EQ(capture->interfaces()[2].name, taps[2].name);
  EXPECT_EQ(capture->interfaces()[0].description, "from the host");
  const auto bytes = capture->bytes(capture->frames()[1]);
  EXPECT_EQ(Bytes(bytes.begin(), bytes.end()), frame_bytes(1, 2, 61));
  EXPECT_EQ(capture->frames()[2].captured, 64u);
  EXPECT_EQ(capture->frames()[2].length, 4170u);
}

TEST(PcapngWriter, EqualRunsGiveEqualBytes) {
  const testing::ScratchFolder folder;
  write_sample(folder.file("a"));
  write_sample(folder.file("b"));
  EXPECT_EQ(testing::read_file(folder.file("a")), testing::read_file(folder.file("b")));
}

TEST(PcapngWriter, TsharkSeesNamesCommentsAndNanoseconds) {
  if (!testing::have_tshark()) GTEST_SKIP() << "tshark isn't installed";
  const testing::ScratchFolder folder;
  write_sample(folder.file("a"));
  const auto out = testing::run(
      "tshark -n -r " + folder.file("a") +
      " -T fields -e frame.interface_name -e frame.time_epoch -e frame.cap_len -e frame.len -e frame.comment");
  EXPECT_EQ(out.status, 0);
  EXPECT_THAT(
      out.lines(),
      ElementsAre("leaf0:p3 in\t1700000000.000000001\t60\t60\t", "leaf0>spine1\t1700000000.000000002\t61\t61\tcell 7",
                  "leaf1:eth5()@rx \xc3\xa9,\"'\t1700000000.000005000\t64\t4170\t",
                  "leaf0 drops\t1700000003.000000000\t62\t62\tmtu_exceeded: frame longer than the MTU"));
  const auto info = testing::run("capinfos -I " + folder.file("a"));
  EXPECT_EQ(info.status, 0);
  EXPECT_THAT(info.text, AllOf(HasSubstr("Number of interfaces in file: 4"), HasSubstr("Name = leaf0>spine1"),
                               HasSubstr("Speed = 400000000000"), HasSubstr("Time precision = nanoseconds (9)"),
                               HasSubstr("Number of stat entries = 1"), HasSubstr("Description = from the host")));
  // Received and dropped as the statistics blocks have them.
  EXPECT_THAT(testing::run("capinfos -F -M " + folder.file("a")).status, 0);
}

TEST(PcapngWriter, NoPacketsAndNoTapsAreFilesToo) {
  const testing::ScratchFolder folder;
  { PcapngWriter writer(folder.file("a"), taps); }
  EXPECT_GT(testing::read_file(folder.file("a")).size(), 100u);
  { PcapngWriter writer(folder.file("b"), {}); }
  if (!testing::have_tshark()) return;
  EXPECT_EQ(testing::run("capinfos " + folder.file("a")).status, 0);
  EXPECT_EQ(testing::run("capinfos " + folder.file("b")).status, 0);
}

TEST(PcapngWriter, LongCommentsAndNamesAreCutAndNotTheFile) {
  const testing::ScratchFolder folder;
  const std::vector<TapPoint> long_name{{.name = std::string(70'000, 'n'), .description = {}}};
  PcapngWriter writer(folder.file("a"), long_name);
  writer.packet(0, 0, frame_bytes(1, 2), 60, std::string(70'000, 'c'));
  writer.packet(0, 1_s, frame_bytes(1, 2), 60);
  EXPECT_TRUE(writer.finish());
  const auto capture = Capture::read(folder.file("a"), true);
  EXPECT_EQ(capture->frames().size(), 2u);
  EXPECT_EQ(capture->interfaces()[0].name.size(), 65'532u);
}

TEST(PcapngWriter, FilesThatCannotBeMade) {
  const testing::ScratchFolder folder;
  const auto why = [](const std::string& path) -> std::string {
    try {
      PcapngWriter writer(path, taps);
    } catch (const CaptureWriteError& error) {
      return error.what();
    }
    return "made";
  };
  EXPECT_THAT(why(folder.file("none/a")), AllOf(HasSubstr("none/a: "), HasSubstr("No such file")));
  EXPECT_THAT(why(folder.file("")), HasSubstr("directory"));
  EXPECT_THAT(why("/dev/full"), AllOf(HasSubstr("/dev/full"), HasSubstr("No space left")));
}

/// In here files can grow to `bytes` and no further, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, SIG_DFL);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

TEST(PcapngWriter, FullDiskLeavesWholeBlocksAndOneLine) {
  // Limits before, at and after block boundaries, within the first flush and behind it.
  for (const rlim_t limit : {1'000u, 50'000u, 50'001u, 50'003u, 1'048'577u, 1'500'000u}) {
    SCOPED_TRACE(limit);
    const testing::ScratchFolder folder;
    constexpr std::uint64_t packets = 4000;
    std::uint64_t in_file = 0;
    {
      const FileSizeLimit full(limit);
      PcapngWriter writer(folder.file("a"), taps);
      for (std::uint64_t i = 0; i < packets; ++i)
        writer.packet(static_cast<TapId>(i % 4), i * 1_us, frame_bytes(1, 2, 500), 500, "why");
      EXPECT_FALSE(writer.finish());
      EXPECT_FALSE(writer.finish());
      EXPECT_EQ(writer.packets() + writer.lost(), packets);
      in_file = writer.packets();
      EXPECT_THAT(writer.error(), AllOf(HasSubstr("/a: writing the capture failed after " + std::to_string(in_file) +
                                                  " packets: File too large"),
                                        HasSubstr("later packets are lost")));
      EXPECT_EQ(writer.error().find('\n'), std::string::npos);
      EXPECT_EQ(writer.error().find("cut short"), std::string::npos);
      writer.packet(0, 0, frame_bytes(1, 2), 60);
      EXPECT_EQ(writer.packets() + writer.lost(), packets + 1);
    }
    EXPECT_LE(testing::read_file(folder.file("a")).size(), limit);
    EXPECT_GT(testing::read_file(folder.file("a")).size() + 1000, limit) << "as much as fits is kept";
    const auto capture = Capture::read(folder.file("a"), true);  // strict: nothing is cut
    EXPECT_EQ(capture->frames().size(), in_file);
    if (testing::have_tshark()) {
      EXPECT_EQ(testing::run("capinfos -c " + folder.file("a")).status, 0);
    }
  }
}

TEST(PcapngWriter, ReaderOfThePipeGoesAway) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  PcapngWriter writer(ends[1], "pipe", taps);
  ::close(ends[0]);
  for (int i = 0; i < 4000; ++i) writer.packet(0, 0, frame_bytes(1, 2, 500), 500);
  EXPECT_FALSE(writer.finish());  // and no SIGPIPE has ended the test
  EXPECT_THAT(writer.error(), HasSubstr("Broken pipe"));
  EXPECT_EQ(writer.packets(), 0u);
  EXPECT_EQ(writer.lost(), 4000u);
}

TEST(PcapngWriter, PipeCarriesTheSameBytesAsAFile) {
  const testing::ScratchFolder folder;
  write_sample(folder.file("a"));
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);  // holds 64 KiB: the sample fits
  {
    PcapngWriter writer(ends[1], "pipe", taps, {.epoch_ns = epoch_ns});
    writer.packet(0, 1'999, frame_bytes(1, 2, 60), 60);
    writer.packet(1, 2'000, frame_bytes(1, 2, 61), 61, "cell 7");
    writer.packet(2, 5_us, frame_bytes(1, 2, 64), 4170);
    writer.packet(3, 3_s, frame_bytes(1, 2, 62), 62, "mtu_exceeded: frame longer than the MTU");
    writer.add_drops(2, 5);
  }
  Bytes bytes(65'536);
  const ssize_t n = ::read(ends[0], bytes.data(), bytes.size());
  ::close(ends[0]);
  bytes.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  EXPECT_EQ(bytes, testing::read_file(folder.file("a")));
}

TEST(PcapngWriter, KilledInTheMiddleTheFileIsReadableToTheLastFlush) {
  const testing::ScratchFolder folder;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    PcapngWriter writer(folder.file("a"), taps);
    for (int i = 0; i < 100; ++i) writer.packet(0, 0, frame_bytes(1, 2, 500), 500);
    writer.flush();
    for (int i = 0; i < 100; ++i) writer.packet(0, 0, frame_bytes(1, 2, 500), 500);
    ::raise(SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(Capture::read(folder.file("a"), true)->frames().size(), 100u);
}

}  // namespace
}  // namespace weft
