// SPDX-License-Identifier: BSD-3-Clause
#include "tools/testing/random_config.h"

#include <algorithm>
#include <random>

#include "tools/config_topology.h"

namespace weft {
namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  /// least to most, both included
  template <class T = std::uint64_t>
  T number(std::uint64_t least, std::uint64_t most) {
    return static_cast<T>(least + random_() % (most - least + 1));
  }
  bool chance(unsigned percent) { return random_() % 100 < percent; }
  double fraction() { return static_cast<double>(number(1, 1'000'000)) / 1e6; }
  Rate rate() { return {chance(70) ? number(1, 800) * 1'000'000'000 : number(1'000, 8'000'000'000'000)}; }

 private:
  std::mt19937_64 random_;
};

void roll_topology(Config& config, Dice& dice) {
  TopologyKeys keys;
  keys.leaves = dice.number<std::uint32_t>(2, 6);
  keys.spines = dice.number<std::uint32_t>(1, 5);
  keys.hosts_per_leaf = dice.number<std::uint32_t>(1, 5);
  keys.count = dice.number<std::uint32_t>(1, 3);
  keys.host_link = {dice.rate(), dice.number(0, 1_us)};
  keys.fabric_link = {dice.rate(), dice.number(1_ns, 10_us)};
  config.topology = make_topology(keys);
  for (LinkParams& link : config.topology.host_links)
    if (dice.chance(10)) link = {dice.rate(), dice.number(0, 1_ms)};
  for (FabricLink& link : config.topology.fabric_links)
    if (dice.chance(10)) link.params = {dice.rate(), dice.number(1_ns, 1_ms)};
}

void roll_switches(Config& config, Dice& dice) {
  config.run.seed = dice.number(0, ~std::uint64_t{0} - 1);
  config.run.workers = dice.number<std::uint32_t>(1, 128);
  if (dice.chance(50)) config.run.duration = dice.number(1_us, 10_s);
  if (config.run.duration) config.run.warmup = dice.number(0, *config.run.duration - 1);
  if (dice.chance(50)) config.run.sample_interval = dice.number(1_ns, 1_s);
  if (dice.chance(50)) config.run.frame_pool = dice.number(64, 1u << 30);
  for (auto& c : config.classes.dscp_to_class)
    if (dice.chance(10)) c = dice.number<std::uint8_t>(0, 7);
  for (auto& c : config.classes.pcp_to_class) c = dice.number<std::uint8_t>(0, 7);
  for (auto& group : config.classes.strict_group) group = dice.number<std::uint8_t>(0, 7);
  for (auto& weight : config.classes.weight) weight = dice.number<std::uint16_t>(1, 1000);
  for (auto& lossless : config.classes.lossless) lossless = dice.chance(30);
  if (dice.chance(50)) config.classes.pfc_reaction = dice.number(1, 1_ms);
  if (dice.chance(50)) {
    config.classes.ecn[dice.number(0, 7)] = true;
    const std::uint64_t kmin = dice.number(0, 1'000'000);
    config.voq.ecn = {kmin, kmin + dice.number(1, 1'000'000), dice.fraction(), dice.chance(50), dice.chance(50)};
  }
  config.voq.sram_bytes = dice.number(16u << 20, 1ull << 36);
  if (dice.chance(50)) config.voq.xoff_bytes = dice.number(2000, 30'000), config.voq.xon_bytes = dice.number(1, 2000);
  if (dice.chance(50)) config.voq.headroom_bytes = dice.number(1, 100'000);
  if (dice.chance(50)) config.voq.deep_rate = dice.rate();
  config.voq.deep_bytes = dice.chance(30) ? 0 : dice.number(1, 1ull << 40);
  config.voq.alpha = dice.fraction() * 16;
  config.voq.force_fabric = dice.chance(50);
  config.voq.request_delay = dice.number(0, 1_us);
  config.scheduler.speedup = 1 + dice.fraction();
  if (dice.chance(50)) config.scheduler.egress_buffer_bytes = dice.number(20'000, 200'000);
  if (dice.chance(50)) config.cells.mark_bytes = dice.number(1, 100'000);
  config.cells.timeout = dice.number(1_us, 1_s);
  config.capture = {
      dice.chance(50), dice.chance(50), dice.chance(50), dice.chance(50), {}, {}, dice.number<std::uint32_t>(0, 200)};
}

void roll_live(Config& config, Dice& dice) {
  if (dice.chance(50)) return;
  config.clock = {true, dice.number<std::uint32_t>(1, 1'000'000), dice.chance(50) ? 0 : dice.number(1_us, 10_ms)};
  for (std::uint32_t port = 0; port < config.topology.host_ports(); ++port) {
    if (dice.chance(60)) continue;
    PortConfig& one = config.ports.emplace_back();
    one.port = port;
    one.device = dice.chance(50) ? "0000:3b:00." + std::to_string(port) : "net_tap" + std::to_string(port) + ",iface=a";
    one.mtu = dice.chance(50) ? 0 : dice.number<std::uint32_t>(68, 9202);
    one.promiscuous = dice.chance(50);
    one.multicast = dice.chance(50);
    one.queue_bytes = dice.number(64u << 10, 1u << 30);
    one.pfc = dice.number<PfcAbility>(0, 4);
  }
}

void roll_forwarding(Config& config, Dice& dice) {
  const std::uint32_t last = config.topology.host_ports() - 1;
  ForwardingConfig& forwarding = config.forwarding;
  forwarding.mode = dice.number<ForwardingMode>(0, 2);
  forwarding.learn_only = dice.chance(50);
  forwarding.ageing = dice.number(1_ns, 1000_s);
  if (forwarding.mode == ForwardingMode::route)
    for (std::uint64_t i = dice.number(0, 4); i > 0; --i)
      forwarding.routes.push_back({"10." + std::to_string(i) + ".0.0/16", dice.number<std::uint32_t>(0, last),
                                   dice.chance(50) ? "" : "02:00:00:00:00:0" + std::to_string(i)});
  if (forwarding.mode == ForwardingMode::fixed)
    for (std::uint32_t port = 0; port <= last; ++port)
      forwarding.fixed.emplace_back(port, dice.number<std::uint32_t>(0, last));
}

void roll_traffic(Config& config, Dice& dice) {
  const std::uint32_t last = config.topology.host_ports() - 1;
  for (std::uint64_t i = dice.number(0, 3); i > 0; --i) {
    if (dice.chance(40)) {
      ReplayConfig replay;
      replay.file = "/captures/" + std::to_string(i) + " #'\"\\: " + std::to_string(dice.number(0, 9)) + ".pcapng";
      replay.speed = dice.fraction() * 10;
      replay.loop = dice.number<std::uint32_t>(1, 100);
      replay.strict = dice.chance(50);
      if (dice.chance(50))
        replay.ports.push_back(
            {"02:00:00:00:00:01", dice.chance(50) ? "" : "- *eth0: x", dice.number<std::uint32_t>(0, last)});
      config.traffic.emplace_back(replay);
      continue;
    }
    ConstantConfig constant;
    constant.pattern = dice.number<Pattern>(0, 3);
    constant.load = dice.fraction();
    constant.frames.assign(dice.number(1, 3), dice.number<std::uint32_t>(60, 9216));
    constant.ect = dice.chance(50);
    constant.poisson = dice.chance(50);
    constant.traffic_class = config.classes.dscp_to_class[dice.number(0, 63)];
    constant.receiver = dice.number<std::uint32_t>(0, last);
    if (dice.chance(50)) constant.senders = {(constant.receiver + 1) % (last + 1)};
    constant.from = dice.number<std::uint32_t>(0, last);
    constant.to = (constant.from + 1) % (last + 1);
    constant.start = dice.number(0, 1_ms);
    if (dice.chance(50)) constant.stop = constant.start + dice.number(1_ns, 1_s);
    config.traffic.emplace_back(constant);
  }
}

void roll_faults(Config& config, Dice& dice) {
  const auto links = static_cast<std::uint32_t>(config.topology.fabric_links.size());
  for (std::uint64_t i = dice.number(0, 4); i > 0; --i) {
    FaultConfig fault{
        dice.number(0, 1_s), dice.number<std::uint32_t>(0, links - 1), dice.number<FaultKind>(0, 4), 0, {}};
    if (fault.kind == FaultKind::data_loss || fault.kind == FaultKind::control_loss)
      fault.probability = dice.fraction();
    if (fault.kind == FaultKind::rate) fault.rate = dice.rate();
    config.faults.push_back(fault);
  }
  for (std::uint32_t link = 0; link < links; ++link)
    if (dice.chance(10)) config.capture.links.push_back(link);
  for (std::uint32_t port = 0; port < config.topology.host_ports(); ++port)
    if (dice.chance(10)) config.capture.host_ports.push_back(port);
}

}  // namespace

Config random_config(std::uint64_t seed) {
  Dice dice(seed);
  Config config;
  config.source = "/configs/random.yaml";
  roll_topology(config, dice);
  roll_switches(config, dice);
  roll_forwarding(config, dice);
  roll_traffic(config, dice);
  roll_live(config, dice);
  roll_faults(config, dice);
  return config;
}

}  // namespace weft
