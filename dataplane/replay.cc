// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <stdexcept>
#include <unordered_map>

#include "dataplane/check.h"
#include "dataplane/frame_pool.h"

namespace weft {
namespace {

constexpr std::size_t addresses_bytes = 12;  // destination and source

std::uint64_t key_of(const MacAddress& mac) {
  std::uint64_t key = 0;
  for (const std::uint8_t byte : mac) key = key << 8 | byte;
  return key;
}

MacAddress parse_mac(const std::string& text) {
  MacAddress mac{};
  bool good = text.size() == 17;
  for (std::size_t i = 0; good && i < mac.size(); ++i) {
    const char* at = text.data() + 3 * i;
    const auto [end, error] = std::from_chars(at, at + 2, mac[i], 16);
    good = error == std::errc{} && end == at + 2 && (i == 5 || at[2] == ':');
  }
  if (!good)
    throw std::invalid_argument(
        fmt::format("replay: \"{}\" is no address; 02:00:00:00:00:01 would be one", printable(text)));
  return mac;
}

bool names(const std::string& wanted, const CaptureInterface& interface, std::size_t number) {
  return wanted == interface.name || (!interface.description.empty() && wanted == interface.description) ||
         wanted == std::to_string(number);
}

// Which host port a frame enters by; see replay.h.
class PortChooser {
 public:
  PortChooser(const Capture& capture, const ReplayConfig& config, const Topology& topology) : topology_(topology) {
    std::vector<bool> named(topology.host_ports());
    for (const ReplayPort& entry : config.ports) {
      if (entry.port >= topology.host_ports())
        throw std::invalid_argument(fmt::format("replay: there is no host port {}; the topology has 0 to {}",
                                                entry.port, topology.host_ports() - 1));
      if (entry.mac.empty() && entry.interface.empty())
        throw std::invalid_argument(
            fmt::format("replay: the entry for {} names neither mac nor interface", port_name(topology, entry.port)));
      named[entry.port] = true;
      Rule rule{.any_mac = entry.mac.empty(),
                .mac = 0,
                .any_interface = entry.interface.empty(),
                .interfaces = {},
                .port = entry.port};
      if (!rule.any_mac) rule.mac = key_of(parse_mac(entry.mac));
      bool found = rule.any_interface;
      for (std::size_t i = 0; i < capture.interfaces().size(); ++i) {
        rule.interfaces.push_back(names(entry.interface, capture.interfaces()[i], i));
        found = found || rule.interfaces.back();
      }
      if (!found)
        unmatched_.push_back(fmt::format("no interface of the capture is called \"{}\"", printable(entry.interface)));
      rules_.push_back(std::move(rule));
    }
    for (std::uint32_t n = 0; n < topology.host_ports(); ++n) {
      const std::uint32_t port = (n % topology.leaves) * topology.hosts_per_leaf + n / topology.leaves;
      if (!named[port]) dealt_.push_back(port);
    }
    if (dealt_.empty())
      for (std::uint32_t n = 0; n < topology.host_ports(); ++n)
        dealt_.push_back((n % topology.leaves) * topology.hosts_per_leaf + n / topology.leaves);
  }

  std::uint32_t port_of(const CaptureFrame& frame, std::span<const std::uint8_t> bytes) {
    MacAddress mac{};
    if (bytes.size() >= addresses_bytes) std::copy_n(bytes.begin() + 6, mac.size(), mac.begin());
    const std::uint64_t key = key_of(mac);
    const bool usable = key != 0 && (mac[0] & 1) == 0;
    for (Rule& rule : rules_) {
      if ((rule.any_mac || rule.mac == key) && (rule.any_interface || rule.interfaces[frame.interface])) {
        rule.used = true;
        if (usable) know(key, mac, rule.port);
        return rule.port;
      }
    }
    if (!usable) {
      ++without_source;
      return dealt_.front();
    }
    const auto [place, fresh] = dealt_to_.try_emplace(key, dealt_[dealt_to_.size() % dealt_.size()]);
    if (fresh && dealt_to_.size() > dealt_.size()) ++sharing;
    know(key, mac, place->second);
    return place->second;
  }

  std::vector<KnownHost> hosts;
  std::uint64_t without_source = 0;
  std::uint64_t sharing = 0;     // addresses that were given a port which has a host already
  std::uint64_t seen_twice = 0;  // addresses that enter by more than one port

  [[nodiscard]] std::vector<std::string> unused() const {
    std::vector<std::string> notes = unmatched_;
    for (std::size_t i = 0; i < rules_.size(); ++i)
      if (!rules_[i].used)
        notes.push_back(
            fmt::format("entry {} of ports (to {}) matches no frame", i + 1, port_name(topology_, rules_[i].port)));
    return notes;
  }

 private:
  struct Rule {
    bool any_mac;
    std::uint64_t mac;
    bool any_interface;
    std::vector<bool> interfaces;
    std::uint32_t port;
    bool used = false;
  };

  void know(std::uint64_t key, const MacAddress& mac, std::uint32_t port) {
    const auto [place, fresh] = known_.try_emplace(key, Home{port, false});
    if (fresh) {
      hosts.push_back({mac, port});
    } else if (place->second.port != port && !place->second.moved) {
      place->second.moved = true;
      ++seen_twice;
    }
  }

  struct Home {
    std::uint32_t port;
    bool moved;
  };

  const Topology& topology_;
  std::vector<Rule> rules_;
  std::vector<std::uint32_t> dealt_;  // ports of the default rule, in order
  std::unordered_map<std::uint64_t, std::uint32_t> dealt_to_;
  std::unordered_map<std::uint64_t, Home> known_;
  std::vector<std::string> unmatched_;
};

[[noreturn]] void refuse(const Capture& capture, const CaptureFrame& frame, const std::string& what) {
  throw CaptureError(fmt::format("{}: refused, as strict asks: record {}: {}", capture.name(), frame.record, what));
}

}  // namespace

ReplaySource::ReplaySource(std::shared_ptr<const Schedule> schedule, std::uint8_t of_class,
                           std::vector<std::uint32_t> frames)
    : schedule_(std::move(schedule)), frames_(std::move(frames)) {
  WEFT_CHECK(!frames_.empty(), "a replay source has frames");
  traffic_class = of_class;
  loop_start_ = schedule_->start;
  show();
}

void ReplaySource::show() {
  if (loop_ == schedule_->loops) {
    ready = never;
    next_length = 0;
    return;
  }
  ready = loop_start_ + schedule_->at[frames_[position_]];
  next_length = peek().length;
}

const CaptureFrame& ReplaySource::peek() const { return schedule_->capture->frames()[frames_[position_]]; }

void ReplaySource::copy_to(std::uint8_t* bytes) const {
  const CaptureFrame& frame = peek();
  std::memcpy(bytes, schedule_->capture->bytes(frame).data(), frame.captured);
  std::memset(bytes + frame.captured, 0, frame.length - frame.captured);
}

void ReplaySource::skip() {
  if (++position_ == frames_.size()) {
    position_ = 0;
    if (++loop_ <
        schedule_->loops)  // from the start of it all, so that rounding does not add up; the planner saw that it fits
      loop_start_ = schedule_->start + *at_speed(schedule_->span, loop_, schedule_->speed);
  }
  show();
}

Frame* ReplaySource::take(FramePool& pool) {
  Frame* frame = pool.take(next_length);
  if (frame != nullptr) copy_to(bytes_of(frame));
  skip();
  return frame;
}

ReplayPlan plan_replay(const ReplayConfig& config, const Topology& topology, const ClassOf& class_of) {
  return plan_replay(Capture::read(config.file, config.strict), config, topology, class_of);
}

ReplayPlan plan_replay(const std::shared_ptr<const Capture>& capture, const ReplayConfig& config,
                       const Topology& topology, const ClassOf& class_of) {
  const std::optional<Speed> speed = speed_of(config.speed);
  if (!speed) throw std::invalid_argument(fmt::format("replay: speed {} is not in 1e-9 to 1e9", config.speed));
  if (config.loop == 0) throw std::invalid_argument("replay: loop 0 would send nothing; 1 or more is needed");
  WEFT_CHECK(topology.host_ports() > 0, "a topology has host ports");

  ReplayPlan plan;
  ReplayResult& result = plan.result;
  const auto& frames = capture->frames();
  auto schedule = std::make_shared<ReplaySource::Schedule>();
  schedule->speed = *speed;
  schedule->loops = config.loop;
  schedule->start = config.start;
  schedule->at.reserve(frames.size());

  std::uint64_t padded = 0, shortened_by_s = 0;
  std::uint32_t first_padded = 0, first_shortened = 0, first_reversed = 0;
  std::map<std::pair<std::uint32_t, std::uint8_t>, std::vector<std::uint32_t>> streams;  // (port, class) -> frames
  PortChooser ports(*capture, config, topology);
  StampUnroller clock(config.max_gap);
  TimePs now = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const CaptureFrame& frame = frames[i];
    now = clock.next(frame.stamp_ns, frame.stamp_ps);
    if (now >= never / 2)
      throw std::invalid_argument(
          fmt::format("replay: {}: with silences of up to max_gap the capture outlasts emulated time; "
                      "a shorter max_gap is needed",
                      capture->name()));
    schedule->at.push_back(now);
    if (clock.shortened) {
      if (result.gaps_shortened++ == 0) first_shortened = frame.record;
      shortened_by_s += static_cast<std::uint64_t>(std::max<std::int64_t>(
          0, i == 0 ? 0 : frame.stamp_ns / 1'000'000'000 - frames[i - 1].stamp_ns / 1'000'000'000));
      if (config.strict) refuse(*capture, frame, "the silence before it is longer than max_gap");
    }
    if (clock.reversed) {
      if (result.time_reversed++ == 0) first_reversed = frame.record;
      if (config.strict) refuse(*capture, frame, "its stamp is earlier than that of the record before");
    }
    if (frame.captured < frame.length) {
      if (padded++ == 0) first_padded = frame.record;
      if (config.strict)
        refuse(*capture, frame, fmt::format("only {} of its {} bytes were captured", frame.captured, frame.length));
    }
    const auto bytes = capture->bytes(frame);
    const std::uint8_t traffic_class = class_of(bytes);
    WEFT_CHECK(traffic_class < traffic_classes, "class of a replayed frame");
    streams[{ports.port_of(frame, bytes), traffic_class}].push_back(static_cast<std::uint32_t>(i));
    plan.longest = std::max(plan.longest, frame.length);
    plan.bytes += frame.length;
  }

  // The last frame of the last loop decides whether everything before it fits into emulated time.
  schedule->span = now;
  const auto last_loop = at_speed(now, config.loop - 1, *speed), last_frame = at_speed(now, 1, *speed);
  constexpr TimePs end = never / 2;
  if (!last_loop || !last_frame || *last_loop >= end || *last_frame >= end || config.start >= end ||
      config.start + *last_loop >= end - *last_frame)
    throw std::invalid_argument(fmt::format("replay: {}: {} loops at speed {} outlast emulated time (106 days)",
                                            capture->name(), config.loop, config.speed));
  for (TimePs& at : schedule->at) at = *at_speed(at, 1, *speed);
  schedule->capture = capture;

  plan.sources.resize(topology.host_ports());
  for (auto& [key, list] : streams)
    plan.sources[key.first].push_back(std::make_unique<ReplaySource>(schedule, key.second, std::move(list)));
  plan.hosts = std::move(ports.hosts);
  plan.first = config.start;
  plan.last = config.start + *last_loop + *last_frame;
  plan.frames = frames.size() * config.loop;
  plan.bytes *= config.loop;
  const std::int64_t epoch = frames.front().stamp_ns;
  const auto lead_ns = static_cast<std::int64_t>(config.start / 1000);
  plan.epoch_ns = epoch > lead_ns ? static_cast<std::uint64_t>(epoch - lead_ns) : 0;

  const CaptureIndex& index = capture->index();
  result.file = capture->name();
  result.expected = plan.frames;
  result.skipped = index.other_link_type + index.too_long + index.no_bytes;
  result.padded = padded * config.loop;
  result.notes = capture->notes();
  const auto note = [&](std::string line) { result.notes.push_back(std::move(line)); };
  if (padded != 0)
    note(fmt::format(
        "{} of {} frames were captured short: sent at their original length, zero-filled (first: record {})", padded,
        frames.size(), first_padded));
  if (result.gaps_shortened != 0)
    note(fmt::format("silences longer than max_gap, shortened to it: {}, {} s in all (first: before record {})",
                     result.gaps_shortened, shortened_by_s, first_shortened));
  if (result.time_reversed != 0)
    note(fmt::format("stamps earlier than the one before, sent right after it: {} (first: record {})",
                     result.time_reversed, first_reversed));
  if (ports.without_source != 0)
    note(fmt::format("frames without a usable source address, sent by the first port dealt: {}", ports.without_source));
  if (ports.sharing != 0)
    note(fmt::format("{} source addresses, more than there are ports to deal: {} share a port with others",
                     plan.hosts.size(), ports.sharing));
  if (ports.seen_twice != 0)
    note(fmt::format("source addresses that enter by more than one port (the first is taken for the host's): {}",
                     ports.seen_twice));
  for (std::string& line : ports.unused()) note(std::move(line));
  return plan;
}

}  // namespace weft
