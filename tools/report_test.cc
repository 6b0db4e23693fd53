// SPDX-License-Identifier: BSD-3-Clause
#include "tools/report.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tools/table.h"
#include "tools/testing/sample_result.h"

namespace weft {
namespace {

using nlohmann::ordered_json;
using testing::sample_config;
using testing::sample_result;

ordered_json sample_json() { return ordered_json::parse(results_json(sample_result(), sample_config())); }

TEST(ResultsJson, HoldsWhatTheRunCounted) {
  const ordered_json j = sample_json();
  EXPECT_EQ(j["schema"], results_schema_version);
  EXPECT_EQ(j["seed"], 7);
  EXPECT_EQ(j["frames"]["offered"], 100);
  EXPECT_EQ(j["frames"]["dropped"]["cell_lost"], 5);
  EXPECT_EQ(j["frames"]["filtered"]["same_port"], 3);
  EXPECT_EQ(j["frames"]["in_flight"], 1);
  EXPECT_EQ(j["cells"]["hold_backs"], 12);
  EXPECT_EQ(j["voq"]["pfc_xon_sent"], 6);
  EXPECT_EQ(j["grants"]["watchdog_returns"], 36);
  EXPECT_EQ(j["reorder"]["max_depth"], 23);
  EXPECT_EQ(j["egress"]["buffer_max_bytes"], 30'000);
  EXPECT_EQ(j["links"][2]["name"], "leaf0>spine1");
  EXPECT_EQ(j["flows"][0]["destination"], "leaf1:p0");
  EXPECT_EQ(j["replays"][0]["file"], "/captures/a \"b\".pcapng");
  EXPECT_EQ(j["warnings"].size(), 1u);
  EXPECT_TRUE(j["error"].is_null());
}

TEST(ResultsJson, NamesEveryReasonEvenWhereNothingHappened) {
  const ordered_json j = ordered_json::parse(results_json(RunResult{}, sample_config()));
  for (const std::string_view name : drop_reason_names)
    EXPECT_EQ(j["frames"]["dropped"].at(std::string(name)), 0) << name;
  for (const std::string_view name : filter_reason_names)
    EXPECT_EQ(j["frames"]["filtered"].at(std::string(name)), 0) << name;
}

TEST(ResultsJson, TimesAreExactToThePicosecond) {
  const std::string text = results_json(sample_result(), sample_config());
  EXPECT_NE(text.find("\"min\": 1234.567,"), std::string::npos) << text;
  EXPECT_NE(text.find("\"pfc_paused_ns\": 7654.321"), std::string::npos);
  EXPECT_NE(text.find("\"duration_ns\": 1000000.000,"),
            std::string::npos);  // trailing zeros stay: the text never jumps
}

TEST(ResultsJson, ThroughputCoversTheTimeAfterWarmup) {
  const ordered_json j = sample_json()["throughput"];
  // 105,000 bytes in 800 us; on the wire 70 frames cost 24 bytes more each.
  EXPECT_DOUBLE_EQ(j["goodput_gbps"], 1.05);
  EXPECT_DOUBLE_EQ(j["wire_gbps"], 1.0668);
  EXPECT_DOUBLE_EQ(j["offered_gbps"], 1.2);
  RunResult all_warmup = sample_result();
  all_warmup.end = all_warmup.warmup;
  EXPECT_EQ(ordered_json::parse(results_json(all_warmup, sample_config()))["throughput"]["goodput_gbps"], 0.0);
}

TEST(ResultsJson, NoSamplesIsNoLatency) {
  const ordered_json j = sample_json()["flows"][1]["latency_ns"];
  EXPECT_EQ(j["count"], 0);
  EXPECT_TRUE(j["min"].is_null());
  EXPECT_TRUE(j["mean"].is_null());
}

TEST(ResultsJson, OnlyCostMayDiffer) {
  RunResult slow = sample_result();
  slow.cost = {99.0, 98.0, 97, 96};
  Config one_worker = sample_config();
  one_worker.run.workers = 1;
  ordered_json a = sample_json(), b = ordered_json::parse(results_json(slow, one_worker));
  EXPECT_NE(a, b);
  a.erase("cost"), b.erase("cost");
  EXPECT_EQ(a.dump(), b.dump());
}

TEST(ResultsJson, BytesThatAreNoTextStillMakeValidJson) {
  RunResult r = sample_result();
  r.replays[0].file = "/captures/\xff\xfe.pcap";
  r.warnings = {"tab\there\nand a line"};
  const ordered_json j = ordered_json::parse(results_json(r, sample_config()));
  EXPECT_EQ(j["warnings"][0], "tab\there\nand a line");
}

TEST(ResultsJson, ValidatesAgainstItsSchema) {
  const char* root = std::getenv("WEFT_SOURCE");
  const std::filesystem::path source = root == nullptr ? "." : root;
  if (std::system("python3 -c 'import jsonschema' 2>/dev/null") != 0)
    GTEST_SKIP() << "python3-jsonschema is not installed";
  const auto folder = std::filesystem::temp_directory_path();
  const auto file = folder / ("weft-report-test-" + std::to_string(::getpid()) + ".json");
  const auto valid = [&](const std::string& text) {
    std::ofstream(file) << text;
    const std::string command =
        "python3 '" + (source / "tests/validate_results.py").string() + "' '" + file.string() + "'";
    return std::system(command.c_str()) == 0;
  };
  EXPECT_TRUE(valid(results_json(sample_result(), sample_config())));
  RunResult nothing_happened;
  nothing_happened.fabric = "voq";
  EXPECT_TRUE(valid(results_json(nothing_happened, sample_config())));
  ordered_json extra = sample_json();
  extra["voq"]["surprise"] = 1;
  EXPECT_FALSE(valid(extra.dump())) << "the schema lets unknown fields pass";
  ordered_json missing = sample_json();
  missing["frames"]["dropped"].erase("cell_lost");
  EXPECT_FALSE(valid(missing.dump())) << "the schema lets a missing drop reason pass";
  std::filesystem::remove(file);
}

TEST(FlowsCsv, OneLineAFlow) {
  EXPECT_EQ(flows_csv(sample_result(), sample_config().topology),
            "source,destination,frames,bytes,out_of_order,first_sent_ns,last_delivered_ns,latency_count,latency_min_ns,"
            "latency_p50_ns,latency_p90_ns,"
            "latency_p99_ns,latency_p999_ns,latency_max_ns,latency_mean_ns\n"
            "leaf0:p0,leaf1:p0,60,90000,0,1.000,900000.001,100,2000.000,2000.001,2000.002,2000.003,2000.004,2000.005,"
            "2000.002\n"
            "leaf0:p1,leaf1:p1,30,45000,1,2.000,800000.000,0,,,,,,,\n");
}

TEST(SeriesCsv, RatesAreOverTheTimeSinceTheSampleBefore) {
  // 50,000 bytes in 500 us are 0.8 Gb/s; 25,000 in the next 500 us are half of it.
  const std::string text = series_csv(sample_result());
  EXPECT_NE(text.find("500.000000,leaf0,50000,0.800000,40000,0.640000,1,300,100,200,300,400,1\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("1000.000000,leaf0,25000,0.400000,20000,0.320000,0,150,0,0,0,0,0\n"), std::string::npos) << text;
}

TEST(LinksCsv, OneColumnALink) {
  EXPECT_EQ(links_csv(sample_result()),
            "time_us,leaf0:p0 in,leaf1:p0 out,leaf0>spine1,spine1>leaf1\n"
            "500.000000,50000,40000,20000,21000\n"
            "1000.000000,25000,20000,10000,9000\n");
}

TEST(LatencyCsv, OneLineAPoint) {
  EXPECT_EQ(latency_csv(sample_result()), "latency_ns,frames\n1234.567,1\n2000.000,60\n2345.678,100\n");
}

TEST(ResultsJson, SaysHowFullAndHowEven) {
  const ordered_json j = sample_json();
  EXPECT_EQ(j["last_delivered_ns"], 900'000.001);
  EXPECT_EQ(j["buffers"]["switch_max_node"], "leaf1");
  EXPECT_EQ(j["buffers"]["all_mean_bytes"], 2'345.7);
  EXPECT_EQ(j["balance"]["up"]["busiest"], "leaf0>spine1");
  EXPECT_EQ(j["balance"]["down"]["busiest_load"], 0.75);
  const ordered_json nothing = ordered_json::parse(results_json(RunResult{}, sample_config()));
  EXPECT_TRUE(nothing["last_delivered_ns"].is_null());
  EXPECT_TRUE(nothing["balance"]["up"].is_null());
  EXPECT_TRUE(nothing["buffers"]["switch_max_node"].is_null());
}

TEST(Table, ShowsWhatAnEngineerAsksFor) {
  Config config = sample_config();
  config.capture.hosts = true;
  const std::string text = result_table(sample_result(), config, "out/my run");
  const auto shows = [&](std::string_view what) {
    EXPECT_NE(text.find(what), std::string::npos) << what << "\n" << text;
  };
  shows("offered                100");
  shows("cell_lost 5");
  shows("the books balance");
  shows("min 1.235 us");
  shows("deepest 23 cells");
  shows("busy min 25.0%  mean 50.0%  max 75.0%");
  shows("2.000 s wall, 3.500 s CPU: 0.00 M cells/s");
  shows("tshark -r 'out/my run/capture.pcapng'");
  shows("ports were shared");
  EXPECT_EQ(text.find("voq_limit"), std::string::npos) << "reasons that did not happen are left out";
}

TEST(Table, BooksThatDoNotBalanceAreLoud) {
  RunResult r = sample_result();
  r.balanced = false;
  EXPECT_NE(result_table(r, sample_config(), "out").find("DO NOT BALANCE"), std::string::npos);
}

}  // namespace
}  // namespace weft
