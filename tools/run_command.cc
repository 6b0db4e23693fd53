// SPDX-License-Identifier: BSD-3-Clause
// `weft run CONFIG`: one run of one fabric, from the command line to a result folder (docs/running.md).
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/commands.h"
#include "tools/config.h"
#include "tools/report.h"
#include "tools/result_folder.h"
#include "tools/run.h"
#include "tools/stop_signals.h"
#include "tools/table.h"
#include "tools/version.h"

namespace weft {
namespace {

struct RunArguments {
  std::string config, replay, out, eal;
  std::vector<std::string> capture, overrides;
  std::optional<std::uint32_t> workers;
  std::optional<std::uint64_t> seed;
  bool json = false, strict = false, force = false;
};

/// One line on a terminal, redrawn a few times a second; nothing where stderr is a file or a pipe.
class ProgressLine {
 public:
  void operator()(const RunProgress& progress) {
    const auto now = std::chrono::steady_clock::now();
    if (!terminal_ || now - drawn_ < std::chrono::milliseconds(200)) return;
    drawn_ = now;
    std::string line = duration_text(progress.now);
    if (progress.duration) line += fmt::format(" of {}", duration_text(*progress.duration));
    if (progress.lag) line += fmt::format(", {} behind the clock", duration_text(*progress.lag));
    fmt::print(stderr, "\r{}, {} frames delivered\x1b[K", line, grouped(progress.delivered));
    std::fflush(stderr);
  }
  void clear() const {
    if (terminal_ && drawn_ != std::chrono::steady_clock::time_point{}) fmt::print(stderr, "\r\x1b[K");
  }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  std::chrono::steady_clock::time_point drawn_{};
};

void set_replay(Config& config, const std::string& file) {
  ReplayConfig* replay = nullptr;
  for (TrafficConfig& traffic : config.traffic) {
    if (auto* r = std::get_if<ReplayConfig>(&traffic)) {
      if (replay != nullptr)
        throw UsageError(fmt::format("--replay {}: {} has several replay entries; edit the file", file, config.source));
      replay = r;
    }
  }
  if (replay == nullptr) {
    config.traffic.assign(1, ReplayConfig{});
    replay = &std::get<ReplayConfig>(config.traffic.front());
  }
  replay->file = std::filesystem::absolute(file).lexically_normal().string();
}

void set_capture(Config& config, const std::vector<std::string>& points) {
  CaptureConfig& capture = config.capture;
  capture.hosts = capture.cells = capture.control = capture.drops = false;
  for (const std::string& point : points) {
    if (point == "hosts") {
      capture.hosts = true;
    } else if (point == "cells") {
      capture.cells = true;
    } else if (point == "control") {
      capture.control = true;
    } else if (point == "drops") {
      capture.drops = true;
    } else if (point != "none" || points.size() > 1) {
      throw UsageError(
          fmt::format("--capture: '{}' is no capture point; hosts, cells, control, drops, or none", point));
    }
  }
}

/// The config as run: the file, --set on top, the other flags on top of that.
Config effective_config(const RunArguments& arguments) {
  Config config = load_config(arguments.config, arguments.overrides);
  if (arguments.workers) config.run.workers = *arguments.workers;
  if (arguments.seed) config.run.seed = *arguments.seed;
  if (!arguments.replay.empty()) set_replay(config, arguments.replay);
  if (!arguments.capture.empty()) set_capture(config, arguments.capture);
  for (TrafficConfig& traffic : config.traffic) {
    auto* replay = std::get_if<ReplayConfig>(&traffic);
    if (replay == nullptr) continue;
    if (arguments.strict) replay->strict = true;
    // The folder's config.yaml must find the capture from anywhere.
    if (!replay->file.empty()) replay->file = std::filesystem::absolute(replay->file).lexically_normal().string();
  }
  return config;
}

/// Room for the reports, generously: JSON and CSV lines of about 400 bytes for sixteen flows a port and for the links,
/// and the samples of each switch and link.
std::uint64_t report_bytes(const Topology& topology) {
  constexpr std::uint64_t line = 400, flows_a_port = 16, samples = 200;
  const std::uint64_t lines = topology.host_ports() * (flows_a_port + 2) + topology.fabric_links.size() * 2;
  const std::uint64_t links = 2 * (topology.host_ports() + topology.fabric_links.size()), digits = 8;
  return (1u << 20) + lines * line + (topology.leaves + topology.spines) * samples * line / 4 +
         links * samples * digits;
}

/// --force removes an earlier run's files: not one that this run is about to read.
void refuse_to_eat_input(const RunArguments& arguments, const Config& config) {
  if (!arguments.force || arguments.out.empty()) return;
  for (const TrafficConfig& traffic : config.traffic) {
    const auto* replay = std::get_if<ReplayConfig>(&traffic);
    if (replay == nullptr) continue;
    std::error_code error;
    const auto capture = std::filesystem::path(arguments.out) / "capture.pcapng";
    if (std::filesystem::equivalent(replay->file, capture, error) && !error)
      throw UsageError(
          fmt::format("--out {}: its capture.pcapng is replayed by this run; give another folder", arguments.out));
  }
}

/// What the run itself tells against it, for people. Empty: nothing.
std::vector<std::string> verdict(const RunResult& result) {
  std::vector<std::string> failures;
  if (!result.balanced) {
    const FrameBooks& f = result.frames;
    failures.push_back(
        fmt::format("THE BOOKS DO NOT BALANCE: offered {} + replicated {} is not delivered {} + filtered {} + dropped "
                    "{} + in flight "
                    "{}; this is a fault in weft, do not use these results",
                    f.offered, f.replicated, f.delivered, f.filtered_total(), f.dropped_total(), result.in_flight));
  }
  if (result.frames.no_frame_memory > 0)
    failures.push_back(
        fmt::format("{} frames found no memory in the emulator: these are not network drops; set "
                    "frame_pool higher",
                    grouped(result.frames.no_frame_memory)));
  if (!result.error.empty()) failures.push_back(result.error);
  if (result.interrupted && result.error.empty())
    failures.push_back(
        fmt::format("interrupted at {} of emulated time; results cover the run until then", duration_text(result.end)));
  return failures;
}

/// Writes every report that the disk takes, the most important one first. Says what could not be written.
bool write_reports(ResultFolder& folder, const RunResult& result, const Config& config, const std::string& json) {
  folder.release();
  bool whole = true;
  const auto write = [&](std::string_view name, const std::string& content) {
    try {
      folder.write(name, content);
    } catch (const std::exception& e) {
      fmt::print(stderr, "weft: {}\n", e.what());
      whole = false;
    }
  };
  write("results.json", json);
  write("flows.csv", flows_csv(result, config.topology));
  write("series.csv", series_csv(result));
  write("links.csv", links_csv(result));
  write("latency.csv", latency_csv(result));
  return whole;
}

bool print_out(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written) fmt::print(stderr, "weft: standard output: cannot write: {}\n", std::strerror(errno));
  return written;
}

/// CLI11 would take -1 for 2^64 - 1.
std::string whole_number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size()) return {};
  return fmt::format("'{}' is no whole number from 0 to 2^64 - 1", text);
}

int run(const RunArguments& arguments, const RunFabric& fabric_run) {
  const Config config = effective_config(arguments);
  refuse_to_eat_input(arguments, config);
  ResultFolder folder(arguments.out, std::filesystem::path(arguments.config).stem().string(), arguments.force);

  RunResult result;
  ProgressLine progress;
  const StopSignals signals;
  try {
    folder.write("config.yaml", fmt::format("# As run by weft {}.\n{}", version, to_yaml(config)));
    folder.reserve(report_bytes(config.topology));
    RunOptions options;
    options.out_dir = folder.path().string();
    options.eal_arguments = arguments.eal;
    options.strict = arguments.strict;
    options.stop = &signals.requested();
    options.say = [](const std::string& line) { fmt::print(stderr, "weft: {}\n", line); };
    options.progress = [&progress](const RunProgress& p) { progress(p); };
    result = fabric_run(config, options);
  } catch (...) {
    progress.clear();
    folder.discard();
    throw;
  }
  progress.clear();

  const std::string json = results_json(result, config);
  const bool written = write_reports(folder, result, config, json);
  const bool printed = print_out(arguments.json ? json : result_table(result, config, folder.path().string()));
  const std::vector<std::string> failures = verdict(result);
  for (const std::string& failure : failures) fmt::print(stderr, "weft: {}\n", failure);
  return written && printed && failures.empty() ? 0 : 1;
}

}  // namespace

void add_run_command(CLI::App& app, int& exit_code, RunFabric fabric_run) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "Run one fabric and write a result folder");
  command->add_option("CONFIG", arguments->config, "Configuration, a YAML file")->required()->type_name("FILE");
  command
      ->add_option("--replay", arguments->replay,
                   "Capture to replay: in the config's replay entry, or as the only traffic")
      ->type_name("FILE");
  command->add_option("--capture", arguments->capture, "What to capture: hosts,cells,control,drops, or none")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("POINTS");
  command->add_option("--workers", arguments->workers, "Worker threads; results do not depend on it")
      ->check(CLI::Range(1u, 128u))
      ->type_name("N");
  command->add_option("--seed", arguments->seed, "Seed of all random choices")
      ->check(CLI::Validator(whole_number, ""))
      ->type_name("N");
  command->add_option("--set", arguments->overrides, "Change a key of the config: voq.sram=16MiB; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  command->add_option("--out", arguments->out, "Result folder, new or empty (default: weft-results/<config>-<n>)")
      ->type_name("DIR");
  command->add_flag("--force", arguments->force, "Replace an earlier run's files in --out");
  command->add_flag("--json", arguments->json, "Print results.json instead of the table");
  command->add_flag("--strict", arguments->strict, "Refuse captures that would otherwise be repaired and counted");
  command->add_option("--eal", arguments->eal, "More arguments for DPDK's EAL")->type_name("\"ARGS\"");
  command->callback(
      [arguments, fabric_run = std::move(fabric_run), &exit_code] { exit_code = run(*arguments, fabric_run); });
}

}  // namespace weft
