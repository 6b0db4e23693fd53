// SPDX-License-Identifier: BSD-3-Clause
#include "ethernet/load_balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "dataplane/parse.h"
#include "dataplane/testing/frame_builder.h"

namespace weft::ethernet {
namespace {

using testing::HeapFrame;
using testing::Packet;

// 7 degrees of freedom: a uniform hash exceeds 29.9 once in 10,000 (chi-square), 24.3 once in 1,000. Seeds are fixed,
// so a test passes or fails for good; 28 draws at 1 in 10,000 make a good hash fail once in 360 choices of seeds.
constexpr double chi_square_limit = 29.9;

std::uint32_t key_of(std::uint32_t source, std::uint32_t destination, std::uint16_t port, std::uint32_t qp,
                     HashFields fields) {
  const auto bytes = Packet("one of many flows").eth(2, 4).ipv4(source, destination).udp(port, 4791).bth(qp).build();
  const HeapFrame frame(bytes);
  frame.get()->length = static_cast<std::uint32_t>(bytes.size());
  return flow_key(frame.get(), fields);
}

double chi_square(const std::vector<std::uint32_t>& counts) {
  const double expected = std::accumulate(counts.begin(), counts.end(), 0.0) / static_cast<double>(counts.size());
  double sum = 0;
  for (const std::uint32_t n : counts) sum += (n - expected) * (n - expected) / expected;
  return sum;
}

std::vector<std::uint16_t> numbers(std::uint16_t n) {
  std::vector<std::uint16_t> all(n);
  std::iota(all.begin(), all.end(), std::uint16_t{0});
  return all;
}

struct Balancer {
  explicit Balancer(const EthernetConfig& config, std::uint16_t links = 8, std::uint64_t seed = 77)
      : balancer(config, std::vector<Rate>(links, Rate{400'000'000'000}), seed, Rng(5)) {
    balancer.set_members(group, numbers(links));
    queues.resize(links);
  }
  std::uint32_t choose(std::uint32_t key, TimePs now = 0) {
    return balancer.choose(group, key, 1500, now, [&](std::uint32_t link) { return queues[link]; });
  }
  LoadBalancer balancer;
  LoadBalancer::Group group;
  std::vector<std::uint64_t> queues;
};

// How flows can differ: each way must spread over the links by itself.
enum class Vary { random, udp_port, queue_pair, address };
std::vector<std::uint32_t> keys(Vary vary, std::uint32_t count, HashFields fields) {
  Rng random(9);
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < count; ++i) switch (vary) {
      case Vary::random:
        all.push_back(key_of(random.next32(), random.next32(), static_cast<std::uint16_t>(random.next32()),
                             random.next32() & 0xff'ffff, fields));
        break;
      case Vary::udp_port:
        all.push_back(key_of(0x0a000001, 0x0a000102, static_cast<std::uint16_t>(49152 + i), 17, fields));
        break;
      case Vary::queue_pair:
        all.push_back(key_of(0x0a000001, 0x0a000102, 49152, 17 + i, fields));
        break;
      case Vary::address:
        all.push_back(key_of(0x0a000000 + (i >> 6), 0x0a010000 + (i & 63), 49152, 17, fields));
        break;
    }
  return all;
}

TEST(FlowKey, FourThousandFlowsAreUniformOverEightLinksForEachHash) {
  for (const HashFields fields : {HashFields::five_tuple, HashFields::five_tuple_qp})
    for (const bool resilient : {false, true})
      for (const Vary vary : {Vary::random, Vary::udp_port, Vary::queue_pair, Vary::address})
        for (const std::uint64_t seed : {1ull, 0xfeed'beef'1234'5678ull}) {
          if (vary == Vary::queue_pair && fields == HashFields::five_tuple) continue;  // one flow
          EthernetConfig config;
          config.hash.resilient = resilient;
          Balancer b(config, 8, seed);
          std::vector<std::uint32_t> counts(8);
          for (const std::uint32_t key : keys(vary, 4096, fields)) ++counts[b.choose(key)];
          // Addresses and ports in sequence may spread more evenly than chance, never less.
          EXPECT_LT(chi_square(counts), chi_square_limit)
              << static_cast<int>(vary) << " seed " << seed << (resilient ? " resilient" : "");
        }
}

// The textbook's figures for ECMP: eight flows find eight links with 8! / 8^8 = 0.24%, and put 2.60 on the worst one on
// average.
TEST(FlowKey, EightFlowsCollideOnEightLinksAsOftenAsChanceHasIt) {
  constexpr int draws = 40'000;
  Rng random(3);
  int without = 0;
  std::uint64_t worst = 0;
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<std::uint32_t> counts(8);
    const std::uint64_t seed = random.next();
    for (int flow = 0; flow < 8; ++flow) ++counts[bucket(switch_hash(random.next32(), seed), 8)];
    const std::uint32_t most = *std::max_element(counts.begin(), counts.end());
    without += most == 1;
    worst += most;
  }
  EXPECT_NEAR(without, draws * 40'320.0 / 16'777'216, 4 * 9.8);  // four sigma of a count of 96
  EXPECT_NEAR(static_cast<double>(worst) / draws, 2.60, 0.02);   // scatters by 0.7 a draw: 0.0035, and 2.60 is rounded
}

TEST(FlowKey, OneUdpPortNeedsTheQueuePair) {
  std::set<std::uint32_t> without, with;
  for (const std::uint32_t key : keys(Vary::queue_pair, 256, HashFields::five_tuple))
    without.insert(bucket(switch_hash(key, 3), 8));
  for (const std::uint32_t key : keys(Vary::queue_pair, 256, HashFields::five_tuple_qp))
    with.insert(bucket(switch_hash(key, 3), 8));
  EXPECT_EQ(without.size(), 1u);
  EXPECT_EQ(with.size(), 8u);
}

// What the forwarder has left in the frame saves parsing it again, and must not change the key.
TEST(FlowKey, DoesNotDependOnWhetherTheFrameWasParsed) {
  const std::vector<testing::Bytes> frames = {
      Packet("RoCE").eth(2, 4).ipv4(1, 2).udp(5, 4791).bth(17).build(),
      Packet("RoCE, another queue pair").eth(2, 4).ipv4(1, 2).udp(5, 4791).bth(18).build(),
      Packet("UDP of the same size").eth(2, 4).ipv4(1, 2).udp(5, 4792).payload(12).build(),
      Packet("short UDP to the RoCE port").eth(2, 4).ipv4(1, 2).udp(5, 4791).payload(11).build(),
      Packet("UDP without payload").eth(2, 4).ipv4(1, 2).udp(5, 6).build()};
  std::set<std::uint32_t> different;
  for (const HashFields fields : {HashFields::five_tuple, HashFields::five_tuple_qp})
    for (const testing::Bytes& bytes : frames) {
      HeapFrame frame(bytes);
      frame.get()->length = static_cast<std::uint32_t>(bytes.size());
      const std::uint32_t unparsed = flow_key(frame.get(), fields);
      frame.get()->ip_version = 4;
      frame.get()->l3_offset = 14;
      EXPECT_EQ(flow_key(frame.get(), fields), unparsed) << bytes.size();
      if (fields == HashFields::five_tuple_qp) different.insert(unparsed);
    }
  EXPECT_EQ(different.size(), frames.size());
}

TEST(FlowKey, FragmentsAndWhatIsNotIpHaveOneToo) {
  const auto v6 = Packet("IPv6").eth(2, 4).ipv6(1, 2).udp(5, 6).payload(20).build();
  const auto v6_other = Packet("IPv6, another port").eth(2, 4).ipv6(1, 2).udp(7, 6).payload(20).build();
  const auto arp = Packet("ARP").eth(2, 4).type(0x0806).payload(46).build();
  const auto arp_other = Packet("ARP from another").eth(2, 6).type(0x0806).payload(46).build();
  const auto key = [](const testing::Bytes& bytes) {
    return flow_key(HeapFrame(bytes).get(), HashFields::five_tuple_qp);
  };
  EXPECT_NE(key(v6), key(v6_other));
  EXPECT_NE(key(arp), key(arp_other));
  EXPECT_EQ(key(arp), key(arp));
}

// Two tiers of four: what the first sends one way, the second must spread again.
TEST(Polarisation, SharedSeedsUsePartOfTheSecondTierAndOwnSeedsAllOfIt) {
  const auto flows = keys(Vary::udp_port, 1024, HashFields::five_tuple);
  const auto used = [&](std::uint64_t first, std::uint64_t second) {
    std::map<std::uint32_t, std::set<std::uint32_t>> seen;
    for (const std::uint32_t key : flows)
      seen[bucket(switch_hash(key, first), 4)].insert(bucket(switch_hash(key, second), 4));
    std::size_t least = 4;
    for (const auto& [link, onward] : seen) least = std::min(least, onward.size());
    return least;
  };
  EXPECT_EQ(used(1234, 1234), 1u);
  EXPECT_EQ(used(1234, 99), 4u);
}

// CRCs are linear: seeds that are only xored in would make the second tier a permutation of the first.
TEST(Polarisation, SecondTierIsUniformWithinEachLinkOfTheFirst) {
  const auto flows = keys(Vary::random, 8 * 4096, HashFields::five_tuple);
  std::vector<std::vector<std::uint32_t>> counts(8, std::vector<std::uint32_t>(8));
  for (const std::uint32_t key : flows) ++counts[bucket(switch_hash(key, 1234), 8)][bucket(switch_hash(key, 99), 8)];
  for (const auto& second : counts) EXPECT_LT(chi_square(second), chi_square_limit);
}

TEST(LoadBalancer, EcmpKeepsAFlowOnItsLink) {
  Balancer b({});
  for (std::uint32_t key = 0; key < 100; ++key) {
    const std::uint32_t link = b.choose(key * 2'654'435'761u);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(b.choose(key * 2'654'435'761u), link);
  }
}

TEST(LoadBalancer, ResilientHashingMovesOnlyTheFlowsOfTheLinkThatLeft) {
  for (const bool resilient : {true, false}) {
    EthernetConfig config;
    config.hash.resilient = resilient;
    Balancer b(config);
    const auto flows = keys(Vary::random, 4096, HashFields::five_tuple);
    std::vector<std::uint32_t> before;
    for (const std::uint32_t key : flows) before.push_back(b.choose(key));
    b.balancer.set_members(b.group, {0, 1, 2, 4, 5, 6, 7});
    std::uint32_t moved = 0;
    std::vector<std::uint32_t> counts(8);
    for (std::size_t i = 0; i < flows.size(); ++i) {
      const std::uint32_t now = b.choose(flows[i]);
      EXPECT_NE(now, 3u);
      ++counts[now];
      moved += before[i] != 3 && now != before[i];
    }
    // Without it, 7 links cut the hash's range elsewhere than 8 did. Before the gap the i-th eighth loses i/7 to its
    // neighbour, behind it (7 - i)/7: 9/7 of 512 flows for the fourth link; 4 sigma are 94.
    if (resilient)
      EXPECT_EQ(moved, 0u);
    else
      EXPECT_NEAR(moved, 9 / 7.0 * 512, 94);
    counts.erase(counts.begin() + 3);
    // 64 slots of the lost link go to 7: 9 or 10 each, up to 5% unevenness of the law itself on top of chance (3 sigma
    // of 585: 12%).
    for (const std::uint32_t n : counts) EXPECT_NEAR(n, 4096 / 7.0, 4096 / 7.0 * 0.17);
    b.balancer.set_members(b.group, numbers(8));
    std::uint32_t back = 0;
    for (const std::uint32_t key : flows) back += b.choose(key) == 3;
    EXPECT_NEAR(back, 512, 512 * 0.2);  // 3 sigma of 512 are 12%, and the slots of one in eight
  }
}

TEST(LoadBalancer, FlowletMovesOnlyAfterAPause) {
  EthernetConfig config;
  config.load_balance = LoadBalance::flowlet;
  Balancer b(config);
  const std::uint32_t first = b.choose(42, 0);
  TimePs now = 0;
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(b.choose(42, now += config.flowlet_idle), first) << "no longer silent than the gap";
  EXPECT_EQ(b.balancer.flowlets_begun, 1u);
  std::set<std::uint32_t> links;
  for (int i = 0; i < 200; ++i) links.insert(b.choose(42, now += config.flowlet_idle + 1));
  EXPECT_EQ(links.size(), 8u);  // one is missed with 8 x (7/8)^200, 1 in 10^10
}

TEST(LoadBalancer, AdaptiveAvoidsQueuesAndLoad) {
  EthernetConfig config;
  config.load_balance = LoadBalance::adaptive;
  Balancer b(config);
  b.queues.assign(8, 100'000);
  b.queues[5] = 0;
  EXPECT_EQ(b.choose(1), 5u);
  b.queues.assign(8, 0);
  // Eight flows that begin together take eight links: each choice is seen by the next as load.
  std::set<std::uint32_t> links;
  for (std::uint32_t key = 100; key < 107; ++key) links.insert(b.choose(key));
  EXPECT_EQ(links.size(), 7u);
  EXPECT_EQ(links.count(5), 0u) << "it has carried a frame of late";
}

TEST(LoadBalancer, SprayUsesAllLinks) {
  for (const Spray spray : {Spray::random, Spray::round_robin, Spray::shortest_queue}) {
    EthernetConfig config;
    config.load_balance = LoadBalance::spray;
    config.spray = spray;
    Balancer b(config);
    std::vector<std::uint32_t> counts(8);
    for (int i = 0; i < 8000; ++i) ++counts[b.choose(7)];
    for (const std::uint32_t n : counts)
      if (spray == Spray::random)
        EXPECT_NEAR(n, 1000, 120);  // 4 sigma of 29.6
      else
        EXPECT_EQ(n, 1000u);
    b.queues.assign(8, 10);
    b.queues[2] = 1;
    if (spray == Spray::shortest_queue) {
      for (int i = 0; i < 20; ++i) EXPECT_EQ(b.choose(7), 2u);
    }
  }
}

}  // namespace
}  // namespace weft::ethernet
