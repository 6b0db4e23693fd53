// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "dataplane/addresses.h"
#include "dataplane/capture_merger.h"
#include "dataplane/classify.h"
#include "dataplane/constant.h"
#include "dataplane/eal.h"
#include "dataplane/frame_pool.h"
#include "dataplane/kernel.h"
#include "dataplane/replay.h"
#include "dataplane/tsc_clock.h"
#include "ethernet/fabric.h"
#include "tools/live.h"
#include "tools/text.h"
#include "voq/fabric.h"

namespace weft {

namespace {

constexpr std::uint64_t mebibyte = 1 << 20;

/// Everything that sends, before there is memory to send from.
struct Traffic {
  std::vector<ReplayPlan> replays;
  std::vector<PlacedSource> constants;
  std::vector<KnownHost> known;
  std::uint32_t longest_replayed = 0, longest_constant = 0, shortest_constant = max_frame_bytes;
};

Traffic plan_traffic(const Config& config, bool strict) {
  Traffic traffic;
  std::vector<ConstantConfig> constants;
  const ClassOf class_of = [&](std::span<const std::uint8_t> bytes) { return classify_bytes(bytes, config.classes); };
  for (const TrafficConfig& entry : config.traffic) {
    if (const auto* replay = std::get_if<ReplayConfig>(&entry)) {
      ReplayConfig with = *replay;
      with.strict |= strict;
      traffic.replays.push_back(plan_replay(with, config.topology, class_of));
      const ReplayPlan& plan = traffic.replays.back();
      traffic.known.insert(traffic.known.end(), plan.hosts.begin(), plan.hosts.end());
      traffic.longest_replayed = std::max(traffic.longest_replayed, plan.longest);
    } else {
      constants.push_back(std::get<ConstantConfig>(entry));
      for (const std::uint32_t length : constants.back().frames) {
        traffic.longest_constant = std::max(traffic.longest_constant, length);
        traffic.shortest_constant = std::min(traffic.shortest_constant, length);
      }
    }
  }
  if (!constants.empty()) {
    traffic.constants =
        make_constant_sources(constants, config.topology, config.forwarding, config.classes, config.run.seed);
    const std::vector<KnownHost> hosts = modelled_hosts(config.topology);
    traffic.known.insert(traffic.known.end(), hosts.begin(), hosts.end());
  }
  return traffic;
}

template <typename FabricKindConfig>
FabricKindConfig common_config(const Config& config) {
  FabricKindConfig fabric;
  fabric.topology = config.topology;
  fabric.classes = config.classes;
  fabric.forwarding = config.forwarding;
  fabric.faults = config.faults;
  fabric.capture = config.capture;
  fabric.warmup = config.run.warmup;
  fabric.seed = config.run.seed;
  return fabric;
}

voq::FabricConfig voq_config(const Config& config) {
  auto fabric = common_config<voq::FabricConfig>(config);
  fabric.voq = config.voq;
  fabric.scheduler = config.scheduler;
  fabric.cells = config.cells;
  return fabric;
}

ethernet::FabricConfig ethernet_config(const Config& config) {
  auto fabric = common_config<ethernet::FabricConfig>(config);
  fabric.ethernet = config.ethernet;
  return fabric;
}

/// Throws std::invalid_argument.
std::unique_ptr<Fabric> make_fabric(const Config& config, std::span<const KnownHost> known, FramePool* copies) {
  if (config.fabric == FabricKind::ethernet)
    return std::make_unique<ethernet::Fabric>(ethernet_config(config), known, copies);
  return std::make_unique<voq::Fabric>(voq_config(config), known, copies);
}

/// Bytes that can be inside at once for each host port: what the ingress buffers hold before they pause their hosts (or
/// a share of a lossy buffer) and the egress buffers; on ethernet what dynamic thresholds leave to many congested ports
/// of each switch.
std::uint64_t bytes_a_port(const Config& config) {
  if (config.fabric == FabricKind::ethernet) {
    const std::uint64_t switches = config.topology.leaves + config.topology.spines;
    return switches * config.ethernet.buffer_bytes / 2 / std::max(config.topology.host_ports(), 1u);
  }
  voq::FabricConfig fabric = voq_config(config);
  voq::resolve_defaults(fabric);
  return fabric.voq.xoff_bytes + fabric.voq.headroom_bytes + fabric.scheduler.egress_buffer_bytes;
}

/// Frames that can be inside at once, those on their way included. Bounded by half of the machine's memory; a pool that
/// runs dry says so.
std::uint32_t pool_frames(const Config& config, std::uint64_t a_port, std::uint32_t shortest, std::uint32_t longest) {
  if (config.run.frame_pool != 0)
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(config.run.frame_pool, 1u << 30));
  const std::uint64_t frames = config.topology.host_ports() * (a_port / std::max(shortest, 60u) + 256) * 5 / 4 + 8192;
  const auto machine =
      static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t most = std::min<std::uint64_t>(machine / 4, 4ull << 30) / (longest + 512);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(frames, 4096, std::max<std::uint64_t>(most, 4096)));
}

class RunObserver final : public WindowObserver {
 public:
  RunObserver(const RunOptions& options, const Config& config, const Fabric& fabric, std::vector<Node*> nodes)
      : options_(options), config_(config), fabric_(fabric), nodes_(std::move(nodes)) {}

  void watch(const Kernel& kernel) { kernel_ = &kernel; }
  /// Opens the capture file; throws CaptureWriteError.
  void open_capture(const std::string& path, const PcapngOptions& pcapng) {
    writer_ = std::make_unique<PcapngWriter>(path, fabric_.taps(), pcapng);
    merger_ = std::make_unique<CaptureMerger>(*writer_);
  }
  void window_done(std::uint64_t window, TimePs horizon) override {
    if (merger_ != nullptr) {
      for (Node* node : nodes_)
        if (CaptureBuffer* capture = node->capture()) merger_->collect(capture->half(window & 1));
      const TimePs lookback = fabric_.capture_lookback();
      merger_->write_until(horizon == never ? never : horizon - std::min(horizon, lookback));
    }
    if (options_.progress && (++windows_ & 63) == 0) {
      const auto now = std::chrono::steady_clock::now();
      if (now - last_progress_ > std::chrono::milliseconds(200)) {
        last_progress_ = now;
        options_.progress({horizon, config_.run.duration, fabric_.delivered(),
                           config_.clock.wall ? std::optional(kernel_->lag_now()) : std::nullopt});
      }
    }
  }
  bool stop_requested() override {
    return (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed)) ||
           (writer_ != nullptr && !writer_->error().empty());
  }
  /// Empty, or what went wrong with the capture.
  std::string finish_capture() {
    if (merger_ == nullptr) return {};
    merger_->finish();
    WEFT_CHECK(merger_->late() == 0, "a capture record came after its place in the file had been written");
    return writer_->error();
  }

 private:
  const RunOptions& options_;
  const Config& config_;
  const Fabric& fabric_;
  const Kernel* kernel_ = nullptr;
  std::vector<Node*> nodes_;
  std::unique_ptr<PcapngWriter> writer_;
  std::unique_ptr<CaptureMerger> merger_;
  std::uint64_t windows_ = 0;
  std::chrono::steady_clock::time_point last_progress_ = std::chrono::steady_clock::now();
};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TimePs sample_interval(const Config& config) {
  if (config.run.sample_interval != 0) return config.run.sample_interval;
  if (config.run.duration) return std::max<TimePs>(1, *config.run.duration / 200);
  return config.clock.wall ? 1_s : 1_ms;
}

/// How well the machine kept up with the clock.
void collect_clock(RunResult& result, const Config& config, const Kernel& kernel) {
  ClockResult& clock = result.clock.emplace();
  clock.dilation = config.clock.dilation;
  clock.windows = kernel.lag().count();
  clock.late = kernel.late_windows();
  clock.lag = kernel.lag().summary();
  clock.behind = kernel.lag_now();
  // What a busy machine may be late by at any moment is not worth a word.
  if (clock.behind < std::max<TimePs>(kernel.end() / 100, 10_ms / clock.dilation)) return;
  const double slower = static_cast<double>(kernel.end() + clock.behind) / static_cast<double>(kernel.end());
  result.warnings.push_back(fmt::format(
      "the machine could not keep up: at its end emulated time was {} behind the clock, {:.2f} times slower "
      "than asked for; clock.dilation {} would be slow enough",
      duration_text(clock.behind), slower, static_cast<std::uint64_t>(slower * clock.dilation) + 1));
}

std::uint64_t nanoseconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

}  // namespace

RunResult run_fabric(const Config& config, const RunOptions& options) {
  const std::uint64_t a_port = [&] {
    try {
      return bytes_a_port(config);
    } catch (const std::invalid_argument& error) {
      throw ConfigError(config.source + ": " + error.what());
    }
  }();
  Traffic traffic = [&] {
    try {
      return plan_traffic(config, options.strict);
    } catch (const std::invalid_argument& error) {
      throw ConfigError(config.source + ": " + error.what());
    }
  }();

  // Constant sources write headers only, and count on the rest being zero: they have a pool of their own, without
  // memory for payloads, so that the frames of a run lie close together. A device wants its frames whole.
  const std::uint32_t stored = config.ports.empty() ? header_bytes : traffic.longest_constant;
  const std::uint32_t workers = config.run.workers;
  const std::uint32_t replay_frames =
      traffic.replays.empty()
          ? 0
          : pool_frames(config, a_port, std::max(traffic.longest_replayed / 4, 60u), traffic.longest_replayed);
  const std::uint32_t constant_frames =
      traffic.constants.empty() ? 0 : pool_frames(config, a_port, traffic.shortest_constant, stored);
  const std::uint32_t copy_buffers = 8192;  // two for each copy
  EalOptions eal_options;
  eal_options.workers = workers;
  eal_options.extra = options.eal_arguments;
  eal_options.memory_bytes = 64 * mebibyte + FramePool::memory_bytes(copy_buffers, header_bytes, workers);
  if (replay_frames != 0)
    eal_options.memory_bytes += FramePool::memory_bytes(replay_frames, traffic.longest_replayed, workers);
  if (constant_frames != 0) eal_options.memory_bytes += FramePool::memory_bytes(constant_frames, stored, workers);
  if (config.forwarding.mode == ForwardingMode::route)
    eal_options.memory_bytes += 64 * mebibyte * config.topology.leaves;
  LivePorts(config).add_needs(eal_options);
  Eal eal(eal_options);
  LivePorts live(config);
  FramePool copies("copies", copy_buffers, header_bytes);
  std::unique_ptr<FramePool> replay_pool, constant_pool;
  if (replay_frames != 0) replay_pool = std::make_unique<FramePool>("replay", replay_frames, traffic.longest_replayed);
  if (constant_frames != 0)
    constant_pool = std::make_unique<FramePool>("constant", constant_frames, traffic.longest_constant, stored);

  std::unique_ptr<Fabric> fabric;
  try {
    fabric = make_fabric(config, traffic.known, &copies);
  } catch (const std::invalid_argument& error) {
    throw ConfigError(config.source + ": " + error.what());
  }
  RunResult result;
  std::uint64_t epoch_ns = 0;
  for (ReplayPlan& plan : traffic.replays) {
    for (std::uint32_t port = 0; port < plan.sources.size(); ++port)
      for (auto& source : plan.sources[port]) fabric->add_source(port, std::move(source), replay_pool.get());
    if (epoch_ns == 0) epoch_ns = plan.epoch_ns;
    result.replays.push_back(plan.result);
  }
  for (PlacedSource& placed : traffic.constants)
    fabric->add_source(placed.port, std::move(placed.source), constant_pool.get());

  live.open(*fabric, options.say);
  if (live.any()) epoch_ns = nanoseconds_since_1970();

  KernelConfig kernel_config;
  kernel_config.window = fabric->window();
  kernel_config.duration = config.run.duration;
  kernel_config.warmup = config.run.warmup;
  kernel_config.sample_interval = sample_interval(config);
  kernel_config.fault_times = fabric->fault_times();
  kernel_config.live = live.any();
  RunObserver observer(options, config, *fabric, fabric->nodes());
  if (!fabric->taps().empty()) {
    PcapngOptions pcapng;
    pcapng.snaplen = config.capture.snaplen;
    pcapng.epoch_ns = epoch_ns;
    observer.open_capture(options.out_dir + "/capture.pcapng", pcapng);
  }
  std::optional<WallPacer<TscClock>> pacer;
  if (config.clock.wall)
    pacer.emplace(TscClock{}, TscClock::ticks_per_s(), config.clock.dilation, TscClock::ticks_of(config.clock.idle));
  Kernel kernel(kernel_config, fabric->nodes(), fabric->placement(workers), workers, pacer ? &*pacer : nullptr,
                &observer);
  observer.watch(kernel);

  if (live.any() && options.say) options.say(config.run.duration ? "running" : "running until Ctrl-C");
  const double cpu_before = cpu_seconds();
  const auto wall_before = std::chrono::steady_clock::now();
  eal.run_workers([&](std::uint32_t worker) {
    if (pacer) prctl(PR_SET_TIMERSLACK, 1UL);  // sleeps are to be as short as they are meant
    kernel.work(worker);
  });
  result.cost.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_before).count();
  result.cost.cpu_s = cpu_seconds() - cpu_before;
  result.cost.windows = kernel.windows();

  result.seed = config.run.seed;
  // A live run without a duration lasts until it is told to end.
  result.interrupted = kernel.stopped_early() && (!live.any() || config.run.duration);
  result.error = observer.finish_capture();
  fabric->collect(result, kernel.end());
  if (pacer) collect_clock(result, config, kernel);
  live.collect(result);
  for (ReplayResult& replay : result.replays) replay.frames = std::min(replay.expected, result.frames.offered);
  return result;
}

}  // namespace weft
