// SPDX-License-Identifier: BSD-3-Clause
// `weft compare CONFIG`: the same traffic, seed and hosts through several fabrics, side by side (docs/compare.md).
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/child_run.h"
#include "tools/commands.h"
#include "tools/compare_report.h"
#include "tools/comparison.h"
#include "tools/fabric_choice.h"
#include "tools/result_folder.h"
#include "tools/run_series.h"
#include "tools/stop_signals.h"
#include "tools/svg_plot.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 8> compare_files{"compare.json", "report.html",   "latency.svg", "flows.svg",
                                                        "queues.svg",   "link-load.svg", "links.svg",   "pauses.svg"};
constexpr FolderKind compare_folder{"comparison", "-compare", compare_files, std::span(compare_files).first(2)};
constexpr int failed = 1, usage = 2;

struct CompareArguments {
  std::string config, out, replay, eal, seed;
  std::vector<std::string> fabrics{"voq", "ethernet"}, overrides, capture;
  std::optional<std::uint32_t> workers;
  bool json = false, strict = false, force = false;
};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

/// The command line of one fabric's run.
std::vector<std::string> run_arguments(const CompareArguments& arguments, const FabricChoice& fabric,
                                       const fs::path& folder) {
  std::vector<std::string> run{"run", arguments.config, "--out", (folder / fabric.folder).string()};
  const auto add = [&run](const char* flag, const std::string& value) {
    run.push_back(fmt::format("{}={}", flag, value));  // one word: a value may start with a dash
  };
  for (const std::string& one : arguments.overrides) add("--set", one);
  for (const std::string& one : fabric.overrides) add("--set", one);
  if (!arguments.replay.empty()) add("--replay", arguments.replay);
  if (!arguments.capture.empty()) add("--capture", joined(arguments.capture));
  if (!arguments.eal.empty()) add("--eal", arguments.eal);
  if (arguments.workers) add("--workers", std::to_string(*arguments.workers));
  if (!arguments.seed.empty()) add("--seed", arguments.seed);
  if (arguments.strict) run.emplace_back("--strict");
  if (arguments.force) run.emplace_back("--force");
  return run;
}

/// "2 of 3: ethernet, 12 s", on a terminal only.
class Progress {
 public:
  explicit Progress(std::size_t runs) : runs_(runs) {}
  void begin(const std::string& name) {
    ++run_;
    name_ = name;
    started_ = std::chrono::steady_clock::now();
  }
  void tick() const {
    if (!terminal_) return;
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - started_).count();
    fmt::print(stderr, "\r{} of {}: {}, {} s\x1b[K", run_, runs_, name_, seconds);
    std::fflush(stderr);
  }
  void clear() const {
    if (terminal_) fmt::print(stderr, "\r\x1b[K");
  }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  std::size_t runs_, run_ = 0;
  std::string name_;
  std::chrono::steady_clock::time_point started_;
};

std::vector<ComparedRun> run_all(const CompareArguments& arguments, const std::vector<FabricChoice>& fabrics,
                                 const fs::path& folder, const StopSignals& signals) {
  std::vector<ComparedRun> runs;
  Progress progress(fabrics.size());
  for (const FabricChoice& fabric : fabrics) {
    ComparedRun& run = runs.emplace_back();
    run.name = fabric.name;
    run.folder = fabric.folder;
    if (signals.requested()) {
      run.exit_code = failed;
      run.message = "not run: interrupted before";
      continue;
    }
    progress.begin(fabric.name);
    ChildRun child;
    child.arguments = run_arguments(arguments, fabric, folder);
    child.keep_on_stop = true;
    const ChildOutcome outcome = run_child(child, signals.requested(), [&progress] { progress.tick(); });
    progress.clear();
    run.exit_code = outcome.exit_code;
    run.message = outcome.message;
    run.results = read_results(folder / fabric.folder);
  }
  return runs;
}

/// 2 where nothing was run at all for what the user asked; 1 where a run failed or cannot be trusted.
int verdict(const std::vector<ComparedRun>& runs) {
  bool all_usage = true, all_good = true;
  for (const ComparedRun& run : runs) {
    all_usage &= run.exit_code == usage;
    all_good &= run.exit_code == 0 && !run.results.is_null();
  }
  return all_usage ? usage : all_good ? 0 : failed;
}

/// Runs that fail alike say so once.
void print_messages(const std::vector<ComparedRun>& runs) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string& message = runs[i].message;
    std::string names;
    bool said = false;
    for (std::size_t k = 0; k < runs.size(); ++k) {
      if (runs[k].message != message) continue;
      said |= k < i;
      names += (names.empty() ? "" : ", ") + runs[k].name;
    }
    if (!message.empty() && !said) fmt::print(stderr, "weft: {}: {}\n", names, message);
  }
}

void print_out(const std::string& text) {
  const bool printed = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!printed) throw std::runtime_error(fmt::format("standard output: cannot write: {}", std::strerror(errno)));
}

/// The page, and each of its plots as a file of its own.
void write_report(const ResultFolder& folder, const Json& comparison, const std::vector<ComparedRun>& runs) {
  std::vector<RunSeries> series;
  for (const ComparedRun& run : runs) series.push_back(read_series(folder.path() / run.folder));
  const std::vector<ReportPlot> plots = report_plots(comparison, runs, series);
  folder.write("report.html", report_html(comparison, plots));
  for (const ReportPlot& plot : plots) folder.write(plot.name + ".svg", standalone_svg(plot.wide));
}

int compare(const CompareArguments& arguments) {
  const std::vector<FabricChoice> fabrics = choose_fabrics(arguments.fabrics, arguments.config, arguments.overrides);
  const std::string name = fs::path(arguments.config).stem().string();
  ResultFolder folder(arguments.out, name, arguments.force, compare_folder);
  const StopSignals signals;
  const std::vector<ComparedRun> runs = run_all(arguments, fabrics, folder.path(), signals);
  print_messages(runs);
  const int exit_code = verdict(runs);
  if (std::ranges::all_of(runs, [](const ComparedRun& run) { return run.results.is_null(); })) {
    folder.discard();
    return exit_code;
  }
  std::vector<std::string> notes;
  for (const FabricChoice& fabric : fabrics) notes.insert(notes.end(), fabric.notes.begin(), fabric.notes.end());
  const std::string text = json_text(comparison_json(name, runs, notes));
  const Json comparison = Json::parse(text);
  folder.write("compare.json", text);
  write_report(folder, comparison, runs);
  print_out(arguments.json ? text : comparison_table(comparison, folder.path().string()));
  return exit_code;
}

}  // namespace

void add_compare_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<CompareArguments>();
  CLI::App* command = app.add_subcommand("compare", "Run the same traffic through several fabrics, side by side");
  command->add_option("CONFIG", arguments->config, "Configuration, a YAML file")->required()->type_name("FILE");
  command
      ->add_option("--fabrics", arguments->fabrics,
                   "What to compare: voq, ethernet (as configured), or ethernet/ecmp, /flowlet, /adaptive, /spray "
                   "(default: voq,ethernet)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("LIST");
  command->add_option("--out", arguments->out, "Folder, new or empty (default: weft-results/<config>-compare-<n>)")
      ->type_name("DIR");
  command->add_option("--set", arguments->overrides, "Change a key of the config: voq.sram=16MiB; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  command->add_option("--replay", arguments->replay, "Capture to replay, as of weft run")->type_name("FILE");
  command->add_option("--capture", arguments->capture, "What each run captures, as of weft run")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("POINTS");
  command->add_option("--workers", arguments->workers, "Worker threads of each run; results do not depend on it")
      ->check(CLI::Range(1u, 128u))
      ->type_name("N");
  command->add_option("--seed", arguments->seed, "Seed of all random choices")->type_name("N");
  command->add_flag("--force", arguments->force, "Replace an earlier comparison's files in --out");
  command->add_flag("--json", arguments->json, "Print compare.json instead of the table");
  command->add_flag("--strict", arguments->strict, "Refuse captures that would otherwise be repaired and counted");
  command->add_option("--eal", arguments->eal, "More arguments for DPDK's EAL")->type_name("\"ARGS\"");
  command->callback([arguments, &exit_code] { exit_code = compare(*arguments); });
}

}  // namespace weft
