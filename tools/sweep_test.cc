// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sweep.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "tools/commands.h"
#include "tools/config.h"
#include "tools/report.h"
#include "tools/testing/sample_result.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

TEST(SweepKey, CommasDivideValues) {
  const SweepKey key = parse_sweep_key("voq.sram=8MiB,16MiB");
  EXPECT_EQ(key.key, "voq.sram");
  EXPECT_EQ(key.values, (std::vector<std::string>{"8MiB", "16MiB"}));
  EXPECT_EQ(parse_sweep_key("seed=1").values.size(), 1u);
  EXPECT_EQ(parse_sweep_key("a=b=c").values, std::vector<std::string>{"b=c"});
}

TEST(SweepKey, CommasInBracketsBracesAndQuotesDoNot) {
  EXPECT_EQ(parse_sweep_key("classes.lossless=[3, 4],[3]").values, (std::vector<std::string>{"[3, 4]", "[3]"}));
  EXPECT_EQ(parse_sweep_key("voq.ecn={kmin: 1KB, kmax: 2KB},{kmin: 0, kmax: 0}").values.size(), 2u);
  EXPECT_EQ(parse_sweep_key("a=\"x,y\",'z,w'").values, (std::vector<std::string>{"\"x,y\"", "'z,w'"}));
}

TEST(SweepKey, RefusesWhatIsNoKeyAndValues) {
  for (const char* text : {"seed", "=1", "seed=", "seed=1,", "seed=,1", "seed=1,,2", "seed=1,1"})
    EXPECT_THROW(parse_sweep_key(text), UsageError) << text;
}

class SweepPlan : public ::testing::Test {
 protected:
  SweepPlan() {
    std::string pattern = (fs::temp_directory_path() / "weft-sweep-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    config_ = (folder_ / "a.yaml").string();
    std::ofstream(config_) << "topology: {leaves: 2, spines: 2, hosts_per_leaf: 2}\n";
  }
  ~SweepPlan() override { fs::remove_all(folder_); }

  fs::path folder_;
  std::string config_;
};

TEST_F(SweepPlan, IsTheCrossProductInOrder) {
  const auto runs =
      plan_sweep(config_, {{"seed", {"1", "2"}}, {"voq.sram", {"8MiB", "9MiB"}}}, {"ethernet", "voq"}, "");
  ASSERT_EQ(runs.size(), 8u);
  EXPECT_EQ(runs[0].values, (std::vector<std::string>{"1", "8MiB"}));
  EXPECT_EQ(runs[1].values, (std::vector<std::string>{"1", "9MiB"}));
  EXPECT_EQ(runs[2].values, (std::vector<std::string>{"2", "8MiB"}));
  EXPECT_EQ(runs[3].fabric, "ethernet");
  EXPECT_EQ(runs[4].fabric, "voq");
  std::set<std::string> folders;
  for (const SweepRun& run : runs) {
    folders.insert(run.folder);
    EXPECT_EQ(run.folder.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"),
              std::string::npos)
        << run.folder;
  }
  EXPECT_EQ(folders.size(), 8u);
}

TEST_F(SweepPlan, AFolderIsThatOfWhatIsRunAndOfNothingElse) {
  const auto folder = [&](const std::vector<SweepKey>& keys, const char* more) {
    return plan_sweep(config_, keys, {}, more)[0].folder;
  };
  const std::string one = folder({{"seed", {"7"}}}, "");
  EXPECT_EQ(one, folder({{"seed", {"7"}}}, ""));
  EXPECT_EQ(one, folder({{"seed", {"7"}}, {"workers", {"2"}}}, "")) << "workers change no result";
  EXPECT_NE(one, folder({{"seed", {"8"}}}, ""));
  EXPECT_NE(one, folder({{"seed", {"7"}}}, "another capture"));
  std::ofstream(config_, std::ios::app) << "duration: 1ms\n";
  EXPECT_NE(one, folder({{"seed", {"7"}}}, ""));
}

TEST_F(SweepPlan, RefusesBeforeAnythingRuns) {
  EXPECT_THROW(plan_sweep(config_, {{"seed", {"1", "x"}}}, {}, ""), ConfigError);
  EXPECT_THROW(plan_sweep(config_, {{"nonsense", {"1"}}}, {}, ""), ConfigError);
  EXPECT_THROW(plan_sweep(config_, {{"seed", {"1"}}, {"seed", {"2"}}}, {}, ""), UsageError);
  EXPECT_THROW(plan_sweep(config_, {{"fabric", {"voq"}}}, {"voq"}, ""), UsageError);
  EXPECT_THROW(plan_sweep(config_, {{"duration", {"1ms", "1000us"}}}, {}, ""), UsageError) << "the same run twice";
  SweepKey many{"seed", {}};
  for (int i = 0; i < 400; ++i) many.values.push_back(std::to_string(i));
  SweepKey times{"sample_interval", {}};
  for (int i = 1; i < 400; ++i) times.values.push_back(std::to_string(i) + "us");
  EXPECT_THROW(plan_sweep(config_, {many, times}, {}, ""), UsageError);
}

TEST_F(SweepPlan, ARowHasACellForEachColumn) {
  const std::vector<SweepKey> keys{{"classes.lossless", {"[3, 4]"}}};
  const SweepRun run{"voq", {"[3, 4]"}, {}, "folder"};
  const auto cells = [](const std::string& line) {
    bool quoted = false;
    return std::count_if(line.begin(), line.end(), [&](char c) {
      quoted ^= c == '"';
      return c == ',' && !quoted;
    });
  };
  const Json results = Json::parse(results_json(testing::sample_result(), testing::sample_config()));
  const std::string row = sweep_row(run, results, "");
  EXPECT_EQ(cells(row), cells(sweep_header(keys)));
  EXPECT_EQ(cells(sweep_row(run, nullptr, "a \"bad\" thing, truly")), cells(sweep_header(keys)));
  EXPECT_EQ(row.rfind("voq,\"[3, 4]\",folder,,100,90,7,1,", 0), 0u) << row;
}

TEST_F(SweepPlan, HalfARunIsNone) {
  EXPECT_TRUE(finished_results(folder_).is_null());
  const std::string text = results_json(testing::sample_result(), testing::sample_config());
  for (const char* name : {"config.yaml", "flows.csv", "series.csv", "links.csv", "latency.csv"})
    std::ofstream(folder_ / name) << "x";
  EXPECT_TRUE(finished_results(folder_).is_null());
  std::ofstream(folder_ / "results.json") << text.substr(0, text.size() / 2);
  EXPECT_TRUE(finished_results(folder_).is_null());
  std::ofstream(folder_ / "results.json") << text;
  EXPECT_FALSE(finished_results(folder_).is_null());
  RunResult interrupted = testing::sample_result();
  interrupted.interrupted = true;
  std::ofstream(folder_ / "results.json") << results_json(interrupted, testing::sample_config());
  EXPECT_TRUE(finished_results(folder_).is_null());
}

}  // namespace
}  // namespace weft
