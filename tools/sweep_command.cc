// SPDX-License-Identifier: BSD-3-Clause
// `weft sweep CONFIG --set key=a,b,c`: many runs, in parallel, each in a process of its own (docs/compare.md). A second
// call does what is missing.
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/file.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tools/child_run.h"
#include "tools/commands.h"
#include "tools/result_folder.h"
#include "tools/stop_signals.h"
#include "tools/sweep.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr int failed = 1;

struct SweepArguments {
  std::string config, out, replay, eal;
  std::vector<std::string> sets, fabrics, capture;
  std::optional<std::uint32_t> jobs, workers;
  bool strict = false;
};

/// The folder of a sweep: new, empty, or that of an earlier sweep, and one sweep's at a time.
class SweepFolder {
 public:
  explicit SweepFolder(const fs::path& path) : path_(path) {
    if (fs::exists(path_) && !fs::is_directory(path_))
      throw UsageError(fmt::format("--out {}: is a file; give a folder", path_.string()));
    const bool earlier = fs::exists(path_ / "sweep.csv") || fs::exists(path_ / lock_name);
    if (fs::exists(path_) && !fs::is_empty(path_) && !earlier)
      throw UsageError(fmt::format("--out {}: folder is not empty and holds no sweep; give a new one", path_.string()));
    std::error_code error;
    fs::create_directories(path_, error);
    if (!error) lock_ = ::open((path_ / lock_name).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    if (lock_ < 0) throw std::runtime_error(fmt::format("{}: cannot write the sweep's folder", path_.string()));
    if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) return;
    ::close(lock_);
    throw UsageError(
        fmt::format("--out {}: another sweep is writing to this folder; give another one", path_.string()));
  }
  ~SweepFolder() {
    std::error_code ignored;
    fs::remove(path_ / lock_name, ignored);
    ::close(lock_);
  }
  SweepFolder(const SweepFolder&) = delete;
  SweepFolder& operator=(const SweepFolder&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  static constexpr const char* lock_name = ".sweep.lock";
  fs::path path_;
  int lock_ = -1;
};

/// What has become of each run. Runs finish on several threads.
class Outcomes {
 public:
  Outcomes(const fs::path& folder, const std::vector<SweepKey>& keys, const std::vector<SweepRun>& runs)
      : folder_(folder), header_(sweep_header(keys)), rows_(runs.size()) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const Json results = finished_results(folder / runs[i].folder);
      if (results.is_null()) continue;
      rows_[i] = sweep_row(runs[i], results, "");
      ++before_;
    }
    done_ = before_;
    write();
  }
  [[nodiscard]] bool has(std::size_t run) const { return !rows_[run].empty(); }

  void begin() {
    const std::lock_guard lock(mutex_);
    ++running_;
  }
  void end(std::size_t index, const SweepRun& run, const Json& results, const std::string& message) {
    const std::lock_guard lock(mutex_);
    --running_;
    ++done_;
    rows_[index] = sweep_row(run, results, message);
    if (!message.empty()) ++failed_;
    clear_line();
    const std::string values = fmt::format("{}", fmt::join(run.overrides, " "));
    if (!message.empty())
      fmt::print(stderr, "weft: {}: {}\n", values, message);
    else if (!terminal_)
      fmt::print(stderr, "{} of {}: {}\n", done_, rows_.size(), values);
    // Rows are cheap and folders are there in any case: a sweep of thousands of short runs need not write all the time.
    if (const auto now = Clock::now(); now - written_ > std::chrono::seconds(1)) write(), written_ = now;
    draw();
  }
  void abandon() {
    const std::lock_guard lock(mutex_);
    --running_;
  }
  void tick() {
    const std::lock_guard lock(mutex_);
    if (Clock::now() - drawn_ > std::chrono::milliseconds(200)) draw();
  }
  void finish() {
    const std::lock_guard lock(mutex_);
    clear_line();
    write();
  }
  [[nodiscard]] std::size_t done() const { return done_; }
  [[nodiscard]] std::size_t before() const { return before_; }
  [[nodiscard]] std::size_t failures() const { return failed_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// Whole or not at all, as every report.
  void write() const {
    std::string text = header_ + '\n';
    for (const std::string& row : rows_)
      if (!row.empty()) text += row + '\n';
    write_whole(folder_ / "sweep.csv", text);
  }
  void draw() {
    if (!terminal_) return;
    drawn_ = Clock::now();
    constexpr std::size_t width = 30;
    const std::size_t full = rows_.empty() ? width : width * done_ / rows_.size();
    fmt::print(stderr, "\r[{:#<{}}{:.<{}}] {} of {}, {} running{}\x1b[K", "", full, "", width - full, done_,
               rows_.size(), running_, failed_ == 0 ? "" : fmt::format(", {} failed", failed_));
    std::fflush(stderr);
  }
  void clear_line() const {
    if (terminal_) fmt::print(stderr, "\r\x1b[K");
  }

  const fs::path folder_;
  const std::string header_;
  std::vector<std::string> rows_;
  std::mutex mutex_;
  std::size_t done_ = 0, before_ = 0, running_ = 0, failed_ = 0;
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  Clock::time_point drawn_{}, written_ = Clock::now();
};

std::vector<std::string> run_arguments(const SweepArguments& arguments, const SweepRun& run, const fs::path& folder) {
  std::vector<std::string> words{"run", arguments.config, "--out", folder.string()};
  for (const std::string& one : run.overrides) words.push_back("--set=" + one);
  if (!arguments.replay.empty()) words.push_back("--replay=" + arguments.replay);
  if (!arguments.capture.empty()) words.push_back(fmt::format("--capture={}", fmt::join(arguments.capture, ",")));
  if (!arguments.eal.empty()) words.push_back("--eal=" + arguments.eal);
  if (arguments.workers) words.push_back(fmt::format("--workers={}", *arguments.workers));
  if (arguments.strict) words.emplace_back("--strict");
  return words;
}

void do_run(const SweepArguments& arguments, std::size_t index, const SweepRun& run, const fs::path& folder,
            Outcomes& outcomes, const std::atomic<bool>& stop) {
  outcomes.begin();
  const fs::path own = folder / run.folder;
  fs::remove_all(own);  // half of a run that was cut off, or one that failed
  ChildOutcome outcome = run_child({run_arguments(arguments, run, own)}, stop, [&] { outcomes.tick(); });
  if (stop) {
    fs::remove_all(own);
    outcomes.abandon();
    return;
  }
  const Json results = finished_results(own);
  if (outcome.ok() && results.is_null()) outcome.message = "left no whole results";
  outcomes.end(index, run, results, outcome.ok() && !results.is_null() ? "" : outcome.message);
}

/// All that is missing, in order, `jobs` at a time. TBB's threads wait for processes.
void do_all(const SweepArguments& arguments, const std::vector<SweepRun>& runs, const fs::path& folder,
            std::uint32_t jobs, Outcomes& outcomes, const std::atomic<bool>& stop) {
  const tbb::global_control threads(tbb::global_control::max_allowed_parallelism, jobs);
  tbb::task_arena arena(static_cast<int>(jobs));
  std::atomic<std::size_t> next = 0;
  const auto work_off = [&](std::uint32_t) {
    for (std::size_t i = next++; i < runs.size() && !stop; i = next++)
      if (!outcomes.has(i)) do_run(arguments, i, runs[i], folder, outcomes, stop);
  };
  arena.execute([&] { tbb::parallel_for(0u, jobs, work_off, tbb::simple_partitioner()); });
}

std::uint32_t default_jobs(std::uint32_t workers) {
  cpu_set_t cpus;
  const int count = ::sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
  return std::max(1u, static_cast<std::uint32_t>(count) / std::max(workers, 1u));
}

int sweep(const SweepArguments& arguments) {
  std::vector<SweepKey> keys;
  for (const std::string& text : arguments.sets) keys.push_back(parse_sweep_key(text));
  const std::string replay = arguments.replay.empty() ? "" : fs::absolute(arguments.replay).string();
  const std::string more =
      fmt::format("{} {} {}", replay, fmt::join(arguments.capture, ","), arguments.strict ? "strict" : "");
  const std::vector<SweepRun> runs = plan_sweep(arguments.config, keys, arguments.fabrics, more);
  const std::string name = fs::path(arguments.config).stem().string();
  const SweepFolder folder(arguments.out.empty() ? fs::path("weft-results") / (name + "-sweep")
                                                 : fs::path(arguments.out));
  Outcomes outcomes(folder.path(), keys, runs);
  const std::uint32_t jobs = arguments.jobs.value_or(default_jobs(arguments.workers.value_or(1)));
  const StopSignals signals;
  do_all(arguments, runs, folder.path(), jobs, outcomes, signals.requested());
  outcomes.finish();

  fmt::print("{} runs: {} done{}, {} failed\nResults  {}\n", runs.size(), outcomes.done() - outcomes.failures(),
             outcomes.before() == 0 ? "" : fmt::format(" ({} of them before)", outcomes.before()), outcomes.failures(),
             (folder.path() / "sweep.csv").string());
  if (signals.requested() && outcomes.done() < runs.size())
    fmt::print(stderr, "weft: interrupted: {} of {} runs are done; the same command does the rest\n", outcomes.done(),
               runs.size());
  return outcomes.done() == runs.size() && outcomes.failures() == 0 ? 0 : failed;
}

}  // namespace

void add_sweep_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<SweepArguments>();
  CLI::App* command = app.add_subcommand("sweep", "Run all combinations of some values, in parallel, one row a run");
  command->add_option("CONFIG", arguments->config, "Configuration, a YAML file")->required()->type_name("FILE");
  command->add_option("--set", arguments->sets, "A key and the values to run it with: seed=1,2,3; may be repeated")
      ->required()
      ->allow_extra_args(false)
      ->type_name("KEY=A,B,...");
  command
      ->add_option("--fabrics", arguments->fabrics,
                   "Fabrics to run each with, as of weft compare (default: the config's)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("LIST");
  command
      ->add_option("--out", arguments->out, "Folder, new or of an earlier sweep (default: weft-results/<config>-sweep)")
      ->type_name("DIR");
  command->add_option("--jobs", arguments->jobs, "Runs at a time (default: as many as CPUs)")
      ->check(CLI::Range(1u, 1024u))
      ->type_name("N");
  command->add_option("--replay", arguments->replay, "Capture to replay, as of weft run")->type_name("FILE");
  command->add_option("--capture", arguments->capture, "What each run captures, as of weft run")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("POINTS");
  command->add_option("--workers", arguments->workers, "Worker threads of each run; results do not depend on it")
      ->check(CLI::Range(1u, 128u))
      ->type_name("N");
  command->add_flag("--strict", arguments->strict, "Refuse captures that would otherwise be repaired and counted");
  command->add_option("--eal", arguments->eal, "More arguments for DPDK's EAL")->type_name("\"ARGS\"");
  command->callback([arguments, &exit_code] { exit_code = sweep(*arguments); });
}

}  // namespace weft
