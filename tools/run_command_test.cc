// SPDX-License-Identifier: BSD-3-Clause
// `weft run` around a fabric that is made up: exit codes, messages, files. The real one is in tests/run_test.py.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tools/commands.h"
#include "tools/testing/sample_result.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr const char* small_config = R"(fabric: voq
topology: {leaves: 2, spines: 2, hosts_per_leaf: 2}
duration: 1ms
traffic:
  - constant: {pattern: permutation, load: 0.5}
)";

struct Outcome {
  int exit_code;
  std::string out, err;
};

class RunCommandTest : public ::testing::Test {
 protected:
  RunCommandTest() {
    std::string pattern = (fs::temp_directory_path() / "weft-run-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    old_ = fs::current_path();
    fs::current_path(root_);
    std::ofstream("small.yaml") << small_config;
  }
  ~RunCommandTest() override {
    fs::current_path(old_);
    fs::remove_all(root_);
  }

  Outcome weft(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "weft");
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int exit_code = run_program(static_cast<int>(arguments.size()), arguments.data(),
                                      [this](const Config& config, const RunOptions& options) {
                                        seen_ = config;
                                        options_ = options;
                                        return fabric_(options);
                                      });
    return {exit_code, ::testing::internal::GetCapturedStdout(), ::testing::internal::GetCapturedStderr()};
  }
  static std::string read(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  static void one_line(const std::string& err, std::string_view what) {
    EXPECT_NE(err.find(what), std::string::npos) << err;
    EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1) << err;
    EXPECT_EQ(err.rfind("weft: ", 0), 0u) << err;
  }

  fs::path root_, old_;
  Config seen_;
  RunOptions options_;
  std::function<RunResult(const RunOptions&)> fabric_ = [](const RunOptions&) { return testing::sample_result(); };
};

TEST_F(RunCommandTest, WritesTheFolderAndPrintsTheTable) {
  const Outcome o = weft({"run", "small.yaml", "--out", "out"});
  EXPECT_EQ(o.exit_code, 0) << o.err;
  EXPECT_EQ(o.err, "");
  EXPECT_NE(o.out.find("the books balance"), std::string::npos) << o.out;
  for (const char* name : {"config.yaml", "results.json", "flows.csv", "series.csv", "links.csv", "latency.csv"})
    EXPECT_GT(fs::file_size(fs::path("out") / name), 0u) << name;
  EXPECT_EQ(std::distance(fs::directory_iterator("out"), fs::directory_iterator()), 6);
}

TEST_F(RunCommandTest, JsonIsTheFileItself) {
  const Outcome o = weft({"run", "small.yaml", "--out", "out", "--json"});
  EXPECT_EQ(o.exit_code, 0) << o.err;
  EXPECT_EQ(o.out, read("out/results.json"));
}

TEST_F(RunCommandTest, FlagsGoOnTopOfTheConfigAndIntoTheFolder) {
  std::ofstream("a.pcap") << "";
  const Outcome o = weft({"run", "small.yaml", "--out", "out", "--seed", "42", "--workers", "3", "--capture",
                          "hosts,drops", "--set", "voq.request_bytes=4KiB", "--set", "duration=2ms", "--replay",
                          "a.pcap", "--strict", "--eal", "--no-huge -m 64"});
  ASSERT_EQ(o.exit_code, 0) << o.err;
  EXPECT_EQ(options_.eal_arguments, "--no-huge -m 64");
  EXPECT_TRUE(options_.strict);
  EXPECT_EQ(options_.out_dir, "out");
  const Config again = load_config("out/config.yaml");
  EXPECT_EQ(to_yaml(again), to_yaml(seen_));
  EXPECT_EQ(again.run.seed, 42u);
  EXPECT_EQ(again.run.workers, 3u);
  EXPECT_EQ(again.voq.request_bytes, 4096u);
  EXPECT_EQ(again.run.duration, 2'000'000'000u);
  EXPECT_TRUE(again.capture.hosts);
  EXPECT_TRUE(again.capture.drops);
  EXPECT_FALSE(again.capture.cells);
  ASSERT_EQ(again.traffic.size(), 1u);
  const auto& replay = std::get<ReplayConfig>(again.traffic[0]);
  EXPECT_TRUE(replay.strict);
  EXPECT_EQ(fs::path(replay.file), fs::absolute("a.pcap")) << "found from any folder";
}

TEST_F(RunCommandTest, UsageIsTwoAndOneLine) {
  Outcome o = weft({"run"});
  EXPECT_EQ(o.exit_code, 2);
  one_line(o.err, "CONFIG");
  o = weft({"run", "small.yaml", "--nonsense"});
  EXPECT_EQ(o.exit_code, 2);
  one_line(o.err, "--nonsense");
  o = weft({"fly"});
  EXPECT_EQ(o.exit_code, 2);
  one_line(o.err, "fly");
  o = weft({"run", "small.yaml", "--workers", "0"});
  EXPECT_EQ(o.exit_code, 2);
  one_line(o.err, "--workers");
  o = weft({"run", "small.yaml", "--seed", "-1"});
  EXPECT_EQ(o.exit_code, 2);
  one_line(o.err, "--seed");
  o = weft({"run", "small.yaml", "--capture", "hosts,everything"});
  EXPECT_EQ(o.exit_code, 2);
  one_line(o.err, "everything");
  o = weft({"run", "missing.yaml"});
  EXPECT_EQ(o.exit_code, 2);
  one_line(o.err, "missing.yaml");
  o = weft({"run", "small.yaml", "--set", "voq.nonsense=1"});
  EXPECT_EQ(o.exit_code, 2);
  one_line(o.err, "nonsense");
  o = weft({"run", "small.yaml", "--out", "."});
  EXPECT_EQ(o.exit_code, 2);
  one_line(o.err, "not empty");
  EXPECT_EQ(weft({}).exit_code, 2);
  EXPECT_FALSE(fs::exists("weft-results")) << "nothing of a run that never was";
}

TEST_F(RunCommandTest, HelpAndVersionAreZero) {
  Outcome o = weft({"help"});
  EXPECT_EQ(o.exit_code, 0);
  EXPECT_NE(o.out.find("check"), std::string::npos) << o.out;
  EXPECT_EQ(weft({"--help"}).exit_code, 0);
  o = weft({"help", "run"});
  EXPECT_EQ(o.exit_code, 0);
  EXPECT_NE(o.out.find("--replay"), std::string::npos) << o.out;
  o = weft({"help", "fly"});
  EXPECT_EQ(o.exit_code, 2);
  one_line(o.err, "fly");
  o = weft({"--version"});
  EXPECT_EQ(o.exit_code, 0);
  EXPECT_EQ(o.out.rfind("weft ", 0), 0u) << o.out;
}

TEST_F(RunCommandTest, SetUpThatFailsIsOneAndLeavesNoFolder) {
  fabric_ = [](const RunOptions&) -> RunResult { throw std::runtime_error("a.pcap: record 7: no Ethernet"); };
  Outcome o = weft({"run", "small.yaml"});
  EXPECT_EQ(o.exit_code, 1);
  one_line(o.err, "record 7");
  EXPECT_FALSE(fs::exists("weft-results"));
  fabric_ = [](const RunOptions&) -> RunResult { throw ConfigError("small.yaml:1: fabric: not built"); };
  o = weft({"run", "small.yaml"});
  EXPECT_EQ(o.exit_code, 2);
  one_line(o.err, "not built");
}

TEST_F(RunCommandTest, ResultsThatCannotBeTrustedAreOneAndLoud) {
  fabric_ = [](const RunOptions&) {
    RunResult r = testing::sample_result();
    r.balanced = false;
    return r;
  };
  Outcome o = weft({"run", "small.yaml", "--out", "unbalanced"});
  EXPECT_EQ(o.exit_code, 1);
  one_line(o.err, "BOOKS DO NOT BALANCE");
  EXPECT_TRUE(fs::exists("unbalanced/results.json"));

  fabric_ = [](const RunOptions&) {
    RunResult r = testing::sample_result();
    r.frames.no_frame_memory = 3;
    return r;
  };
  o = weft({"run", "small.yaml", "--out", "memory"});
  EXPECT_EQ(o.exit_code, 1);
  one_line(o.err, "frame_pool");

  fabric_ = [](const RunOptions&) {
    RunResult r = testing::sample_result();
    r.interrupted = true;
    r.error = "capture.pcapng: cannot write: No space left on device";
    return r;
  };
  o = weft({"run", "small.yaml", "--out", "full"});
  EXPECT_EQ(o.exit_code, 1);
  one_line(o.err, "No space left");
  EXPECT_EQ(nlohmann::json::parse(read("full/results.json"))["interrupted"], true);
}

TEST_F(RunCommandTest, SignalsAskTheRunToEnd) {
  for (const int signal : {SIGINT, SIGTERM}) {
    fabric_ = [signal](const RunOptions& options) {
      EXPECT_FALSE(*options.stop) << "left over from the run before";
      ::raise(signal);
      RunResult r = testing::sample_result();
      r.interrupted = *options.stop;
      return r;
    };
    const std::string out = "signal-" + std::to_string(signal);
    const Outcome o = weft({"run", "small.yaml", "--out", out.c_str()});
    EXPECT_EQ(o.exit_code, 1);
    one_line(o.err, "interrupted at");
    EXPECT_EQ(nlohmann::json::parse(read(out + "/results.json"))["interrupted"], true);
  }
}

TEST_F(RunCommandTest, TheReserveIsHeldDuringTheRunOnly) {
  fabric_ = [](const RunOptions& options) {
    EXPECT_GE(fs::file_size(fs::path(options.out_dir) / ".reserve"), 1u << 20);
    return testing::sample_result();
  };
  EXPECT_EQ(weft({"run", "small.yaml", "--out", "out"}).exit_code, 0);
  EXPECT_FALSE(fs::exists("out/.reserve"));
}

TEST_F(RunCommandTest, ForceDoesNotEatWhatItReplays) {
  ASSERT_EQ(weft({"run", "small.yaml", "--out", "out"}).exit_code, 0);
  std::ofstream("out/capture.pcapng") << "frames";
  const Outcome o = weft({"run", "small.yaml", "--out", "out", "--force", "--replay", "out/capture.pcapng"});
  EXPECT_EQ(o.exit_code, 2);
  one_line(o.err, "replayed by this run");
  EXPECT_EQ(read("out/capture.pcapng"), "frames");
  EXPECT_EQ(weft({"run", "out/config.yaml", "--out", "out", "--force"}).exit_code, 0) << "a config may replace itself";
}

TEST_F(RunCommandTest, ReplayReplacesOneEntryButNotOneOfSeveral) {
  std::ofstream("two.yaml") << small_config << "  - replay: {file: a.pcap}\n  - replay: {file: b.pcap}\n";
  std::ofstream("one.yaml") << small_config << "  - replay: {file: a.pcap, loop: 3}\n";
  const Outcome o = weft({"run", "two.yaml", "--replay", "c.pcap"});
  EXPECT_EQ(o.exit_code, 2);
  one_line(o.err, "several replay entries");
  ASSERT_EQ(weft({"run", "one.yaml", "--replay", "c.pcap"}).exit_code, 0);
  ASSERT_EQ(seen_.traffic.size(), 2u);
  EXPECT_EQ(std::get<ReplayConfig>(seen_.traffic[1]).loop, 3u);
  EXPECT_EQ(fs::path(std::get<ReplayConfig>(seen_.traffic[1]).file).filename(), "c.pcap");
}

}  // namespace
}  // namespace weft
