// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <tuple>
#include <vector>

#include "dataplane/link_ring.h"
#include "dataplane/rng.h"

namespace weft {
namespace {

constexpr TimePs window = 1_ns;

struct Ping {
  TimePs at;
  std::uint64_t value;
};
using Link = LinkRing<Ping>;

struct Stop {
  TimePs at;
  std::uint32_t kinds;
  bool operator==(const Stop&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Stop& stop) { return out << stop.at << " ps: " << stop.kinds; }

/// Passes each ping on to a node of its choice, a random while after; and sends some of its own by a timer.
class PingNode final : public Node {
 public:
  PingNode(std::uint64_t seed, std::uint32_t number) : random_(stream(seed, number, 0)) {}

  void join(PingNode& other, Link& link) {
    out_.push_back({&link, 0});
    other.in_.push_back(&link);
  }
  /// Sends `pings` at `start` and every `gap` after.
  void send_by_itself(TimePs start, TimePs gap, std::uint64_t pings) { timer_ = start, gap_ = gap, left_ = pings; }

  void advance(TimePs from, TimePs until) override {
    EXPECT_LT(from, until);
    EXPECT_GE(from, done_) << "time went back";
    EXPECT_LE(until - from, window);
    done_ = until;
    windows_.push_back({from, until});
    arrived_.clear();
    for (std::uint32_t i = 0; i < in_.size(); ++i) {
      in_[i]->refresh();
      for (; !in_[i]->empty() && in_[i]->peek().at < until; in_[i]->take()) {
        EXPECT_GE(in_[i]->peek().at, from) << "a ping came to a window that was over";
        arrived_.emplace_back(in_[i]->peek().at, i, in_[i]->peek().value);
      }
    }
    std::stable_sort(arrived_.begin(), arrived_.end());
    std::size_t next = 0;
    for (;;) {
      const TimePs arrival = next < arrived_.size() ? std::get<0>(arrived_[next]) : until;
      if (timer_ < arrival) {
        heard_.push_back({timer_, ~std::uint64_t{0}});
        send(timer_, 8);
        timer_ = --left_ == 0 ? never : timer_ + gap_;
      } else if (next < arrived_.size()) {
        const std::uint64_t value = std::get<2>(arrived_[next++]);
        heard_.push_back({arrival, value});
        if (value != 0) send(arrival, value - 1);
      } else {
        break;
      }
    }
    sent_ = false;
    for (Out& out : out_) {
      sent_ |= out.link->committed() != out.published;
      out.published = out.link->committed();
      out.link->publish();
    }
    for (Link* link : in_) link->retire();
  }
  [[nodiscard]] TimePs earliest() const override {
    TimePs at = timer_;
    for (Link* link : in_)
      if (!link->empty()) at = std::min(at, link->peek().at);
    return at;
  }
  [[nodiscard]] bool sent_in_window() const override { return sent_; }
  void at_stop(TimePs now, std::uint32_t kinds) override {
    EXPECT_GE(now, done_);
    stops_.push_back({now, kinds});
    if (kinds & stop_fault && woken_by_faults) timer_ = now, left_ = 1;
  }

  [[nodiscard]] const std::vector<Stop>& stops() const { return stops_; }
  [[nodiscard]] const std::vector<std::pair<TimePs, TimePs>>& windows() const { return windows_; }
  [[nodiscard]] const std::vector<std::pair<TimePs, std::uint64_t>>& heard() const { return heard_; }
  bool woken_by_faults = false;

 private:
  struct Out {
    Link* link;
    TimePs last;
    std::uint64_t published = 0;
  };
  void send(TimePs now, std::uint64_t value) {
    if (out_.empty()) return;
    Out& out = out_[random_.below(out_.size())];
    out.last = std::max(out.last, now + window + random_.below(3'000));  // one serialiser a link: in arrival order
    out.link->append() = {out.last, value};
    out.link->commit();
  }
  Rng random_;
  std::vector<Out> out_;
  std::vector<Link*> in_;
  TimePs timer_ = never, gap_ = 0, done_ = 0;
  std::uint64_t left_ = 0;
  bool sent_ = false;
  std::vector<std::tuple<TimePs, std::uint32_t, std::uint64_t>> arrived_;
  std::vector<Stop> stops_;
  std::vector<std::pair<TimePs, TimePs>> windows_;
  std::vector<std::pair<TimePs, std::uint64_t>> heard_;
};

/// Every node joined to every other.
struct Mesh {
  explicit Mesh(std::uint32_t count, std::uint64_t seed = 1) {
    for (std::uint32_t i = 0; i < count; ++i) nodes.push_back(std::make_unique<PingNode>(seed, i));
    for (auto& from : nodes)
      for (auto& to : nodes)
        if (from != to) from->join(*to, *links.emplace_back(std::make_unique<Link>()));
  }
  /// Runs on `workers` threads; nodes are dealt in turn.
  std::unique_ptr<Kernel> run(const KernelConfig& config, std::uint32_t workers = 1, const Pacer* pacer = nullptr,
                              WindowObserver* observer = nullptr) {
    std::vector<Node*> all;
    std::vector<std::uint32_t> worker_of;
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      all.push_back(nodes[i].get());
      worker_of.push_back(i % workers);
    }
    auto kernel = std::make_unique<Kernel>(config, all, worker_of, workers, pacer, observer);
    std::vector<std::thread> others;
    for (std::uint32_t w = 1; w < workers; ++w) others.emplace_back([&, w] { kernel->work(w); });
    kernel->work(0);
    for (std::thread& other : others) other.join();
    return kernel;
  }
  std::vector<std::unique_ptr<PingNode>> nodes;
  std::vector<std::unique_ptr<Link>> links;
};

KernelConfig config_of(std::optional<TimePs> duration) {
  KernelConfig config;
  config.window = window;
  config.duration = duration;
  return config;
}

TEST(Kernel, APingCrossesALinkAndComesBack) {
  Mesh mesh(2);
  mesh.nodes[0]->send_by_itself(100, 0, 1);
  const auto kernel = mesh.run(config_of({}));
  ASSERT_EQ(mesh.nodes[0]->heard().size(), 5u);  // its own timer, and 7, 5, 3, 1 hops left
  ASSERT_EQ(mesh.nodes[1]->heard().size(), 5u);  // 8, 6, 4, 2, 0
  EXPECT_EQ(mesh.nodes[0]->heard()[0].first, 100u);
  EXPECT_EQ(mesh.nodes[1]->heard().back().second, 0u);
  EXPECT_GE(mesh.nodes[1]->heard().back().first, 100 + 9 * window);
  EXPECT_FALSE(kernel->stopped_early());
  EXPECT_GT(kernel->end(), mesh.nodes[1]->heard().back().first);
  EXPECT_LE(kernel->end(), mesh.nodes[1]->heard().back().first + window) << "drained is noticed in the same window";
}

TEST(Kernel, BusyNodesStopAtEveryStop) {
  KernelConfig config = config_of(6'000);
  config.warmup = 1'500;
  config.sample_interval = 700;
  config.fault_times = {5'000, 2'300, 1'400, 2'300};
  Mesh mesh(2);
  mesh.nodes[0]->send_by_itself(0, 10, 10'000);
  const auto kernel = mesh.run(config);
  const std::vector<Stop> expected{{700, stop_sample},   {1'400, stop_sample | stop_fault},
                                   {1'500, stop_warmup}, {2'100, stop_sample},
                                   {2'300, stop_fault},  {2'800, stop_sample},
                                   {3'500, stop_sample}, {4'200, stop_sample},
                                   {4'900, stop_sample}, {5'000, stop_fault},
                                   {5'600, stop_sample}, {6'000, stop_end}};
  EXPECT_EQ(mesh.nodes[0]->stops(), expected);
  EXPECT_EQ(mesh.nodes[1]->stops(), expected);
  EXPECT_EQ(kernel->end(), 6'000u);
  EXPECT_FALSE(kernel->stopped_early());
  TimePs at = 0;
  for (const auto& [from, until] : mesh.nodes[1]->windows()) {
    EXPECT_EQ(from, at) << "no window is left out while something is pending";
    at = until;
  }
  EXPECT_EQ(mesh.nodes[0]->heard().front().first, 0u);
  EXPECT_LT(mesh.nodes[1]->heard().back().first, 6'000u) << "nothing of the end's own instant is handled";
}

TEST(Kernel, IdleNodesStopAtAllButTheSamplesThatWouldRepeat) {
  KernelConfig config = config_of(6_ms);
  config.warmup = 1'500'000'000;
  config.sample_interval = 700'000;
  config.fault_times = {1_ms, 5_ms};
  Mesh mesh(2);
  const auto kernel = mesh.run(config);
  std::vector<Stop> fixed;
  for (const Stop& stop : mesh.nodes[1]->stops())
    if ((stop.kinds & ~std::uint32_t{stop_sample}) != 0)
      fixed.push_back({stop.at, stop.kinds & ~std::uint32_t{stop_sample}});
  EXPECT_EQ(fixed,
            (std::vector<Stop>{{1_ms, stop_fault}, {1'500_us, stop_warmup}, {5_ms, stop_fault}, {6_ms, stop_end}}));
  EXPECT_LE(mesh.nodes[1]->stops().size(), 2 * fixed.size() + 1) << "at most a sample beside each";
  EXPECT_LE(kernel->windows(), 5u) << "the first, and one after each fault";
  EXPECT_EQ(kernel->end(), 6_ms);
}

TEST(Kernel, NoWarmupIsAStopAtZero) {
  Mesh mesh(1);
  mesh.run(config_of(2_ns));
  EXPECT_EQ(mesh.nodes[0]->stops(), (std::vector<Stop>{{0, stop_warmup}, {2_ns, stop_end}}));
}

TEST(Kernel, FifteenSecondsOfSilenceTakeAHandfulOfWindows) {
  for (const std::uint32_t workers : {1u, 2u}) {
    Mesh mesh(2);
    mesh.nodes[0]->send_by_itself(40_ns, 15_s, 2);
    KernelConfig config = config_of({});
    config.sample_interval = 1_ms;
    const auto kernel = mesh.run(config, workers);
    const auto& heard = mesh.nodes[0]->heard();
    EXPECT_TRUE(std::any_of(heard.begin(), heard.end(), [](const auto& h) { return h.first == 15_s + 40_ns; }));
    // Two volleys of nine hops; each hop takes at most 4 ns and so at most five windows.
    EXPECT_LE(kernel->windows(), 2 * 9 * 5u + 4);
    EXPECT_GT(kernel->end(), 15_s + 40_ns);
    EXPECT_LT(kernel->end(), 15_s + 40_ns + 9 * 4_ns + window);
  }
}

TEST(Kernel, AJumpLandsOnAFaultThatWakesANode) {
  KernelConfig config = config_of(1_s);
  config.fault_times = {3_ms};
  Mesh mesh(2);
  mesh.nodes[1]->woken_by_faults = true;
  const auto kernel = mesh.run(config, 2);
  ASSERT_FALSE(mesh.nodes[1]->heard().empty());
  EXPECT_EQ(mesh.nodes[1]->heard().front().first, 3_ms);
  EXPECT_GE(mesh.nodes[0]->heard().front().first, 3_ms + window);
  EXPECT_LE(kernel->windows(), 60u);  // nine hops of at most five windows, and the jumps
  EXPECT_EQ(kernel->end(), 1_s);
}

TEST(Kernel, SamplesGoOnOnTheirGridAfterAJump) {
  KernelConfig config = config_of(100'050);
  config.warmup = 100;
  config.sample_interval = 700;
  Mesh mesh(1);
  mesh.nodes[0]->send_by_itself(98'000, 1, 10'000);  // 98000 is on the grid
  mesh.run(config);
  std::vector<TimePs> samples;
  for (const Stop& stop : mesh.nodes[0]->stops())
    if ((stop.kinds & stop_sample) != 0) samples.push_back(stop.at);
  for (const TimePs at : samples) EXPECT_EQ(at % 700, 0u);
  ASSERT_GE(samples.size(), 3u);
  EXPECT_LE(samples.size(), 5u) << "of the 140 that the silence would have had";
  const std::vector<TimePs> last(samples.end() - 3, samples.end());
  EXPECT_EQ(last, (std::vector<TimePs>{98'000, 98'700, 99'400}));
}

TEST(Kernel, ResultsDoNotDependOnTheNumberOfWorkers) {
  const auto result = [](std::uint64_t seed, std::uint32_t workers) {
    Mesh mesh(7, seed);
    for (std::uint32_t i = 0; i < 7; ++i) mesh.nodes[i]->send_by_itself(i * 300, 2'500 + 10 * i, 100);
    KernelConfig config = config_of({});
    config.warmup = 50_ns;
    config.sample_interval = 20_ns;
    config.fault_times = {33'333};
    const auto kernel = mesh.run(config, workers);
    std::vector<std::vector<std::pair<TimePs, std::uint64_t>>> heard;
    std::vector<std::vector<Stop>> stops;
    for (const auto& node : mesh.nodes) heard.push_back(node->heard()), stops.push_back(node->stops());
    return std::make_tuple(heard, stops, kernel->end(), kernel->windows());
  };
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const auto one = result(seed, 1);
    ASSERT_GT(std::get<0>(one)[0].size(), 500u);
    EXPECT_TRUE(one == result(seed, 2));
    EXPECT_TRUE(one == result(seed, 4));
  }
  EXPECT_FALSE(result(1, 1) == result(2, 1)) << "else the comparison shows nothing";
}

class Watcher final : public WindowObserver {
 public:
  explicit Watcher(std::uint64_t stop_in) : stop_in_(stop_in) {}
  void window_done(std::uint64_t number, TimePs horizon) override {
    EXPECT_EQ(number, numbers++);
    EXPECT_GE(horizon, last_horizon);
    last_horizon = horizon;
  }
  bool stop_requested() override { return asked_++ >= stop_in_; }
  std::uint64_t numbers = 0;
  TimePs last_horizon = 0;

 private:
  std::uint64_t stop_in_, asked_ = 0;
};

TEST(Kernel, AStopRequestEndsTheRunWithItsWindow) {
  for (const std::uint32_t workers : {1u, 2u, 4u}) {
    Mesh mesh(4);
    mesh.nodes[0]->send_by_itself(0, 100, 1'000'000'000);
    Watcher watcher(20);
    const auto kernel = mesh.run(config_of({}), workers, nullptr, &watcher);
    EXPECT_EQ(kernel->windows(), 21u);
    EXPECT_EQ(kernel->end(), 21 * window);
    EXPECT_TRUE(kernel->stopped_early());
    EXPECT_EQ(watcher.numbers, 21u);
    EXPECT_EQ(watcher.last_horizon, never);
    for (const auto& node : mesh.nodes) {
      EXPECT_EQ(node->stops().back(), (Stop{21 * window, stop_end}));
      EXPECT_EQ(node->windows().size(), 21u);
    }
  }
}

TEST(Kernel, ARunWithoutTrafficEndsAtOnce) {
  Mesh mesh(3);
  Watcher watcher(never);
  const auto kernel = mesh.run(config_of({}), 2, nullptr, &watcher);
  EXPECT_EQ(kernel->windows(), 1u);
  EXPECT_EQ(kernel->end(), window);
  EXPECT_FALSE(kernel->stopped_early());
  EXPECT_EQ(mesh.nodes[2]->stops().back(), (Stop{window, stop_end}));
}

/// A wall clock that passes as it is looked at: `step` with each look.
class StepPacer final : public Pacer {
 public:
  explicit StepPacer(TimePs step) : step_(step) {}
  bool wait_for(TimePs from) const override {
    ++waits;
    for (int looks = 0; looks < 100; ++looks)
      if ((now_ += step_) >= from) return true;
    return false;
  }
  TimePs now() const override { return now_; }
  void rest(TimePs until) const override {
    ++rests;
    if (until > now_) now_ = std::min(until, now_ + 100 * step_);
  }
  mutable std::uint64_t waits = 0, rests = 0;

 private:
  TimePs step_;
  mutable TimePs now_ = 0;
};

TEST(Kernel, AWallClockChangesNoWindow) {
  Mesh paced(4), free_running(4);
  for (Mesh* mesh : {&paced, &free_running}) mesh->nodes[0]->send_by_itself(0, 5_us, 3);
  const StepPacer pacer(100_ps);
  const auto kernel = paced.run(config_of({}), 2, &pacer);
  const auto other = free_running.run(config_of({}), 1);
  EXPECT_EQ(kernel->windows(), other->windows());
  EXPECT_EQ(kernel->end(), other->end());
  for (std::size_t i = 0; i < paced.nodes.size(); ++i)
    EXPECT_EQ(paced.nodes[i]->windows(), free_running.nodes[i]->windows());
  EXPECT_GE(pacer.waits, kernel->windows());
  EXPECT_GE(pacer.now(), paced.nodes[0]->windows().back().first) << "a window began before its time";
}

TEST(Kernel, LagIsWhatTheClockIsAheadAtAWindowsStart) {
  Mesh mesh(4);
  mesh.nodes[0]->send_by_itself(0, 1_ns, 1'000);
  const StepPacer pacer(1'500_ps);  // half as fast again as windows of 1 ns follow each other
  const auto kernel = mesh.run(config_of({}), 1, &pacer);
  EXPECT_EQ(kernel->lag().count(), kernel->windows());
  // Half a nanosecond more with each window; what the edges of the run add is below two of them.
  EXPECT_NEAR(static_cast<double>(kernel->lag().max()), 500.0 * static_cast<double>(kernel->windows()), 1'000);
  EXPECT_GE(kernel->late_windows(), kernel->windows() - 2);
}

TEST(Kernel, AStopEndsAWait) {
  Mesh mesh(2);
  mesh.nodes[0]->send_by_itself(1_s, 1_ns, 1);
  Watcher watcher(1_ns);
  const StepPacer pacer(1_us);
  const auto kernel = mesh.run(config_of({}), 2, &pacer, &watcher);
  EXPECT_TRUE(kernel->stopped_early());
  EXPECT_LT(kernel->end(), 1_s) << "the pause had not passed";
}

/// Has a live port: what comes in at given times of the clock.
class LiveNode final : public Node {
 public:
  explicit LiveNode(std::vector<TimePs> arrivals) : arrivals_(std::move(arrivals)) {}
  void poll(TimePs now) override {
    EXPECT_GE(now, done_) << "the time of a poll has been handled already";
    ++polls;
    for (; next_ < arrivals_.size() && arrivals_[next_] <= now; ++next_) {
      ready_.push_back(now);
      worst_wait = std::max(worst_wait, now - arrivals_[next_]);
    }
  }
  void advance(TimePs from, TimePs until) override {
    EXPECT_GE(from, done_);
    done_ = until;
    for (; handled < ready_.size() && ready_[handled] < until; ++handled) EXPECT_GE(ready_[handled], from);
  }
  TimePs earliest() const override { return handled < ready_.size() ? ready_[handled] : never; }
  bool sent_in_window() const override { return false; }
  void at_stop(TimePs, std::uint32_t kinds) override { stops |= kinds; }
  void flush() override { flushed = handled; }

  std::size_t handled = 0, flushed = 0;
  std::uint64_t polls = 0;
  std::uint32_t stops = 0;
  TimePs worst_wait = 0;

 private:
  std::vector<TimePs> arrivals_;
  std::vector<TimePs> ready_;
  std::size_t next_ = 0;
  TimePs done_ = 0;
};

TEST(Kernel, LivePortsArePolledWhileNothingElseHappens) {
  for (const std::uint32_t workers : {1u, 2u}) {
    std::vector<TimePs> times;
    for (TimePs at = 1_us; at < 1_ms; at += 7'123_ps) times.push_back(at);
    LiveNode a(times), b({500_us});
    KernelConfig config = config_of({});
    config.live = true;
    config.duration = 2_ms;
    const StepPacer pacer(300_ps);
    Kernel kernel(config, {&a, &b}, {0, workers - 1}, workers, &pacer, nullptr);
    std::thread other([&] {
      if (workers == 2) kernel.work(1);
    });
    kernel.work(0);
    other.join();
    EXPECT_EQ(kernel.end(), 2_ms);
    EXPECT_EQ(a.handled, times.size());
    EXPECT_EQ(a.flushed, a.handled);
    EXPECT_EQ(b.handled, 1u);
    EXPECT_GT(pacer.rests, 0u) << "the second half is idle";
    EXPECT_LT(a.worst_wait, 40_ns) << "a few looks at the clock; no rest while frames come 7 ns apart";
    EXPECT_TRUE((a.stops & stop_end) != 0);
  }
}

TEST(Kernel, ALateLiveRunLosesNoStopAndNoFrame) {
  std::vector<TimePs> times;
  for (TimePs at = 0; at < 100_us; at += 10_ns) times.push_back(at);
  LiveNode node(times);
  KernelConfig config = config_of({});
  config.live = true;
  config.duration = 200_us;
  config.sample_interval = 1_us;
  const StepPacer pacer(5_ns);  // five windows pass with each look
  Kernel kernel(config, {&node}, {0}, 1, &pacer, nullptr);
  kernel.work(0);
  EXPECT_EQ(node.handled, times.size());
  EXPECT_EQ(node.flushed, node.handled);
  EXPECT_TRUE((node.stops & stop_sample) != 0);
}

}  // namespace
}  // namespace weft
