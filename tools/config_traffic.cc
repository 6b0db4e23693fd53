// SPDX-License-Identifier: BSD-3-Clause
// `traffic:` and `faults:`, the two lists of a config whose items come in kinds.
#include <fmt/format.h>

#include <filesystem>

#include "tools/config_sections.h"
#include "tools/config_topology.h"

namespace weft {
namespace {

constexpr std::uint64_t frame_bytes_min = 60;  // Ethernet's 64, FCS not counted
constexpr std::size_t frame_lengths_max = 4096;

/// 7 x 60, 4 x 566, 1 x 1514 bytes: the usual internet mix, FCS not counted.
const std::vector<std::uint32_t> imix = {60, 60, 60, 60, 60, 60, 60, 566, 566, 566, 566, 1514};

/// A path is meant from the config's folder, and from the current one when it comes from the command line.
Value file(std::string& target, const std::string& source) {
  Value value;
  value.accepts = value.unit = "path, relative to this file";
  value.read = [&target, source, accepts = value.accepts](const YamlNode& node) {
    const std::filesystem::path path = scalar_of(node, accepts);
    if (path.empty() || path.native().find('\0') != std::string::npos) refuse(node, "is no path", accepts);
    const std::filesystem::path folder = node.overridden ? "" : std::filesystem::path(source).parent_path();
    target = std::filesystem::absolute(folder / path).lexically_normal();
  };
  value.write = [&target] { return yaml_scalar(std::filesystem::absolute(target).lexically_normal()); };
  return value;
}

/// `1500`, `imix` or `[64, 1500]`.
Value frame_lengths(std::vector<std::uint32_t>& target) {
  Value value;
  value.accepts = fmt::format("a length from {} to {}, imix, or a list of lengths", frame_bytes_min, max_frame_bytes);
  value.unit = fmt::format("size {} to {} | imix | list of sizes", frame_bytes_min, max_frame_bytes);
  value.read = [&target, accepts = value.accepts](const YamlNode& node) {
    if (node.kind == YamlNode::Kind::scalar && node.scalar == "imix") {
      target = imix;
      return;
    }
    std::vector<std::uint32_t> lengths;
    const auto take = [&](const YamlNode& item) {
      std::uint64_t length = 0;
      try {
        length = parse_size(scalar_of(item, accepts));
      } catch (const UnitError& error) {
        refuse(item, error.what(), accepts);
      }
      if (length < frame_bytes_min) refuse(item, "is too short", accepts);
      if (length > max_frame_bytes) refuse(item, "is too long", accepts);
      lengths.push_back(static_cast<std::uint32_t>(length));
    };
    if (node.kind == YamlNode::Kind::sequence) {
      if (node.items.empty() || node.items.size() > frame_lengths_max)
        node.fail(fmt::format("a list of {} lengths; accepted: 1 to {}", node.items.size(), frame_lengths_max));
      for (const YamlNode& item : node.items) take(item);
    } else {
      take(node);
    }
    target = std::move(lengths);
  };
  value.write = [&target]() -> std::string {
    if (target == imix) return "imix";
    std::vector<std::string> lengths;
    for (const std::uint32_t length : target) lengths.push_back(std::to_string(length));
    return lengths.size() == 1 ? lengths.front() : "[" + join(lengths) + "]";
  };
  return value;
}

std::string anything(const std::string& /*text*/) { return ""; }

Section replay_section(ReplayConfig& replay, const Topology& topology, const std::string& source) {
  const auto entry = [&topology](ReplayPort& port_entry) -> Section {
    return {{"mac", text(port_entry.mac, "a source MAC address, or \"\" for any", anything), "source address"},
            {"interface", text(port_entry.interface, "a capture interface's name or number, or \"\" for any", anything),
             "of the capture"},
            {"port", port(port_entry.port, topology), "where these frames enter", true}};
  };
  return {
      {"file", file(replay.file, source), "pcap or pcapng, replayed at its own timestamps", true},
      {"speed", number(replay.speed, {0, 1e6}), "2: in half the time"},
      {"loop", count(replay.loop, {1, 1u << 30}), "times in all"},
      {"start", time(replay.start, {0, time_max}), "emulated time of the first frame"},
      {"max_gap", time(replay.max_gap, {1_ns, time_max}), "a longer silence is shortened to this, and counted"},
      {"strict", flag(replay.strict), "refuse what would otherwise be repaired and counted"},
      {"ports",
       list_of<ReplayPort>(
           entry, [&replay] { return replay.ports; },
           [&replay](ReplayPort item, const YamlNode& node) {
             if (item.mac.empty() && item.interface.empty())
               node.fail("matches nothing; accepted: mac, interface or both");
             replay.ports.push_back(std::move(item));
           },
           {{"02:00:00:00:00:01", "eth0", 0}}),
       "which frames enter where, the first match wins; []: each new source MAC gets the next port, dealt round the "
       "leaves"},
  };
}

Section constant_section(ConstantConfig& constant, const Topology& topology) {
  return {
      {"pattern",
       choice<Pattern>(constant.pattern, {{"permutation", Pattern::permutation},
                                          {"incast", Pattern::incast},
                                          {"all-to-all", Pattern::all_to_all},
                                          {"one", Pattern::one}}),
       "permutation: every host to one of another leaf, by seed; incast: to `receiver`; one: `from` to `to`"},
      {"load", number(constant.load, {0, 1}), "share of each sender's line rate, wire overhead included"},
      {"frame", frame_lengths(constant.frames), "without FCS; a list is sent in turn; imix: 7 x 60, 4 x 566, 1 x 1514"},
      {"class", count(constant.traffic_class, {0, traffic_classes - 1}),
       "traffic class: frames carry a DSCP that maps to it"},
      {"ect", flag(constant.ect), "frames are ECN-capable, ECT(0)"},
      {"udp_source", count(constant.udp_source, {0, 65'535}), "UDP source port"},
      {"udp_destination", count(constant.udp_destination, {0, 65'535}), "UDP destination port; 4791 is RoCEv2"},
      {"gaps", choice<bool>(constant.poisson, {{"fixed", false}, {"poisson", true}}),
       "between frames; poisson: exponential with the same mean"},
      {"receiver", port(constant.receiver, topology), "incast: where all of it goes"},
      {"senders", port_list(constant.senders, topology, "all"),
       "incast: where it comes from; all: everyone but the receiver"},
      {"from", port(constant.from, topology), "one: the sender"},
      {"to", port(constant.to, topology), "one: the receiver"},
      {"start", time(constant.start, {0, time_max}), "first frames"},
      {"stop", time_or(constant.stop, {1_ns, time_max}, never, "never"), "no frame starts at or after this"},
  };
}

/// One item of `traffic:`, whichever kind it turns out to be.
struct TrafficKeys {
  std::optional<ReplayConfig> replay;
  std::optional<ConstantConfig> constant;
};

/// A mapping that is there or not: `target` comes to be when it is read. A value that is not there is not written.
template <class T>
Value optional_mapping(std::optional<T>& target, std::function<Section(T&)> make) {
  Value value = target ? mapping(make(*target)) : Value{};
  value.accepts = "a mapping";
  value.read = [&target, make](const YamlNode& node) { read_section(node, make(target.emplace())); };
  if (!target) value.write = [] { return std::nullopt; };
  return value;
}

/// One item of `faults:`; exactly one of the optional keys is there.
struct FaultKeys {
  TimePs at = 0;
  std::vector<std::uint32_t> links;
  std::optional<FaultKind> change;  // down, up
  std::optional<double> loss, control_loss;
  std::optional<Rate> rate;
};

/// A leaf that is there or not; `make` binds a leaf to a plain T.
template <class T>
Value optional_leaf(std::optional<T>& target, const std::function<Value(T&)>& make) {
  auto plain = std::make_shared<T>(target.value_or(T{}));
  Value leaf = make(*plain);
  Value value = leaf;
  value.read = [&target, plain, leaf](const YamlNode& node) {
    leaf.read(node);
    target = *plain;
  };
  value.write = [&target, plain, leaf]() -> std::optional<std::string> { return target ? leaf.write() : std::nullopt; };
  return value;
}

Section fault_section(FaultKeys& fault, const Topology& topology) {
  const auto probability = [](double& value) { return number(value, {0, 1}, true); };
  return {
      {"at", time(fault.at, {0, time_max}), "when", true},
      {"link", link_list(fault.links, topology, ""), "which; both directions", true},
      {"do",
       optional_leaf<FaultKind>(fault.change,
                                [](FaultKind& kind) {
                                  return choice<FaultKind>(kind, {{"down", FaultKind::down}, {"up", FaultKind::up}});
                                }),
       "the link dies with what is on it, or returns"},
      {"loss", optional_leaf<double>(fault.loss, probability),
       "probability that a data cell is lost on it from now on"},
      {"control_loss", optional_leaf<double>(fault.control_loss, probability), "the same of a control cell"},
      {"rate", optional_leaf<Rate>(fault.rate, [](Rate& value) { return rate(value); }),
       "it runs at this rate from now on"},
  };
}

std::vector<FaultKeys> to_keys(const std::vector<FaultConfig>& faults) {
  std::vector<FaultKeys> all;
  for (const FaultConfig& fault : faults) {
    FaultKeys& keys = all.emplace_back();
    keys.at = fault.at;
    keys.links = {fault.link};
    switch (fault.kind) {
      case FaultKind::down:
      case FaultKind::up:
        keys.change = fault.kind;
        break;
      case FaultKind::data_loss:
        keys.loss = fault.probability;
        break;
      case FaultKind::control_loss:
        keys.control_loss = fault.probability;
        break;
      case FaultKind::rate:
        keys.rate = fault.rate;
        break;
    }
  }
  return all;
}

void add_faults(std::vector<FaultConfig>& faults, const FaultKeys& keys, const YamlNode& node) {
  if (keys.change.has_value() + keys.loss.has_value() + keys.control_loss.has_value() + keys.rate.has_value() != 1)
    node.fail("one fault does one thing; accepted: exactly one of do, loss, control_loss, rate");
  for (const std::uint32_t link : keys.links) {
    FaultConfig fault{keys.at, link, keys.change.value_or(FaultKind::rate), 0, keys.rate.value_or(Rate{})};
    if (keys.loss) fault.kind = FaultKind::data_loss, fault.probability = *keys.loss;
    if (keys.control_loss) fault.kind = FaultKind::control_loss, fault.probability = *keys.control_loss;
    faults.push_back(fault);
  }
}

}  // namespace

Value traffic_value(std::vector<TrafficConfig>& traffic, const Topology& topology, const std::string& source) {
  const auto section = [&topology, source](TrafficKeys& keys) -> Section {
    return {{"replay",
             optional_mapping<ReplayConfig>(
                 keys.replay,
                 [&topology, source](ReplayConfig& replay) { return replay_section(replay, topology, source); }),
             "a capture"},
            {"constant",
             optional_mapping<ConstantConfig>(
                 keys.constant, [&topology](ConstantConfig& constant) { return constant_section(constant, topology); }),
             "sources of constant rate"}};
  };
  const auto get = [&traffic] {
    std::vector<TrafficKeys> all;
    for (const TrafficConfig& one : traffic) {
      TrafficKeys& keys = all.emplace_back();
      if (const auto* replay = std::get_if<ReplayConfig>(&one)) keys.replay = *replay;
      if (const auto* constant = std::get_if<ConstantConfig>(&one)) keys.constant = *constant;
    }
    return all;
  };
  const auto put = [&traffic](TrafficKeys keys, const YamlNode& node) {
    if (keys.replay.has_value() == keys.constant.has_value())
      node.fail("one entry is one kind of traffic; accepted: exactly one of replay, constant");
    if (keys.replay) traffic.emplace_back(std::move(*keys.replay));
    if (keys.constant) traffic.emplace_back(std::move(*keys.constant));
  };
  ReplayConfig replay;
  replay.file = "/path/to/capture.pcapng";
  return list_of<TrafficKeys>(section, get, put, {{replay, std::nullopt}, {std::nullopt, ConstantConfig{}}});
}

Value faults_value(std::vector<FaultConfig>& faults, const Topology& topology) {
  const auto example = [](TimePs at) {
    FaultKeys keys;
    keys.at = at;
    keys.links = {1};
    return keys;
  };
  std::vector<FaultKeys> examples{example(100_us), example(200_us), example(0), example(0), example(300_us)};
  examples[0].change = FaultKind::down;
  examples[1].change = FaultKind::up;
  examples[2].loss = 1e-4;
  examples[3].control_loss = 1e-3;
  examples[4].rate = Rate{100'000'000'000};
  return list_of<FaultKeys>(
      [&topology](FaultKeys& keys) { return fault_section(keys, topology); }, [&faults] { return to_keys(faults); },
      [&faults](const FaultKeys& keys, const YamlNode& node) { add_faults(faults, keys, node); }, examples);
}

}  // namespace weft
