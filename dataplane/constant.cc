// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/constant.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>

#include "dataplane/addresses.h"
#include "dataplane/checksum.h"
#include "dataplane/classify.h"
#include "dataplane/crc32.h"
#include "dataplane/exponential.h"
#include "dataplane/frame_pool.h"
#include "dataplane/parse.h"

namespace weft {
namespace {

// Offsets in an untagged frame.
constexpr std::uint32_t ip_at = 14, udp_at = 34, bth_at = 42, payload_at = 54;
constexpr std::uint32_t icrc_bytes = 4;
constexpr std::uint64_t purpose_permutation = 0x7065'726d, purpose_times = 0x7469'6d65;

/// The ICRC's state over one field of `count` bytes that lies `at` bytes into the frame, all else zero, up to the PSN's
/// word.
std::uint32_t field_state(std::uint32_t at, const std::uint8_t* field, std::uint32_t count) {
  std::uint8_t covered[bth_at + 8 - ip_at]{};
  std::memcpy(covered + (at - ip_at), field, count);
  return crc32::add(0, covered, sizeof covered);
}

void reduce(Uint128& a, Uint128& b) {
  Uint128 x = a, y = b;
  while (y != 0) {
    const Uint128 r = x % y;
    x = y;
    y = r;
  }
  a /= x;
  b /= x;
}

}  // namespace

struct ConstantSource::Size {
  std::uint32_t length;
  std::uint16_t ip_length, udp_length;
  std::uint32_t crc_state;   // what the two length fields add
  std::uint32_t crc_target;  // the first payload word is the state there XOR this
  TimePs gap;                // whole picoseconds
  std::uint64_t gap_q16;     // the same times 2^16, for Poisson
  Uint128 gap_rest;
};

struct ConstantSource::Sizes {
  std::vector<Size> sizes;
  Uint128 denominator;
};

struct ConstantSource::Peer {
  std::uint64_t mac;
  std::uint32_t ipv4;
  std::uint32_t crc_state;  // what the destination address adds
};

struct ConstantSource::Setup {
  const ConstantConfig& config;
  std::uint32_t host, first_peer, last_peer_plus_one, steps;
  bool round;
  std::uint32_t entry;
  std::uint8_t dscp;
  std::uint64_t seed;
  std::shared_ptr<const Sizes> sizes;
  std::shared_ptr<const std::vector<Peer>> peers;
};

ConstantSource::ConstantSource(const Setup& setup)
    : sizes_(setup.sizes),
      peers_(setup.peers),
      stop_(setup.config.stop),
      random_(stream(setup.seed, setup.host, purpose_times + setup.entry)),
      self_(setup.host),
      peer_(setup.first_peer),
      last_peer_(setup.last_peer_plus_one),
      steps_(setup.steps),
      poisson_(setup.config.poisson),
      rocev2_(setup.config.udp_destination == rocev2_udp_port),
      round_(setup.round) {
  traffic_class = setup.config.traffic_class;

  std::uint8_t* t = template_;
  store_mac(t + 6, host_mac(setup.host));
  store_be16(t + 12, ether_type::ipv4);
  std::uint8_t* ip = t + ip_at;
  ip[0] = 0x45;
  ip[1] = static_cast<std::uint8_t>(setup.dscp << 2 | (setup.config.ect ? 2 : 0));
  ip[6] = 0x40;  // don't fragment
  ip[8] = 64;
  ip[9] = ip_protocol::udp;
  store_be32(ip + 12, host_ipv4(setup.host));
  checksum_sum_ = ones_sum(ip, 20);
  store_be16(t + udp_at, setup.config.udp_source);
  store_be16(t + udp_at + 2, setup.config.udp_destination);
  if (rocev2_) {
    std::uint8_t* bth = t + bth_at;
    bth[0] = 0x07;                // RC RDMA WRITE Middle
    bth[1] = 0x40;                // path migrated, as without path migration; no padding
    store_be16(bth + 2, 0xffff);  // the default partition
    store_be32(bth + 4, 0x10 + ((setup.host * 16 + setup.entry) & 0xf'ffff));
    // What switches may change counts as ones: TOS, TTL, checksums, and the byte of FECN and BECN (IBTA annex A17).
    std::uint8_t covered[bth_at + 8];
    std::memcpy(covered, t, sizeof covered);
    std::memset(covered + ip_at - 8, 0xff, 8);
    for (const std::uint32_t at : {ip_at + 1, ip_at + 8, ip_at + 10, ip_at + 11, udp_at + 6, udp_at + 7, bth_at + 4})
      covered[at] = 0xff;
    crc_state_ = crc32::add(crc32::start, covered + ip_at - 8, sizeof covered - (ip_at - 8));
  }

  const Size& first = sizes_->sizes.front();
  const std::uint64_t draw = random_.next();
  const std::uint64_t phase =
      poisson_ ? static_cast<std::uint64_t>(static_cast<Uint128>(first.gap_q16) * exponential_q32(draw) >> 48)
               : static_cast<std::uint64_t>(static_cast<Uint128>(first.gap) * draw >> 64);
  const bool fits = phase < never - setup.config.start;
  ready = fits && setup.config.start + phase < stop_ ? setup.config.start + phase : never;
  next_length = first.length;
}

void ConstantSource::write(std::uint8_t* bytes) {
  const Size& size = sizes_->sizes[size_index_];
  const Peer& peer = (*peers_)[peer_];
  std::memcpy(bytes, template_, header_bytes);
  store_mac(bytes, peer.mac);
  store_be16(bytes + ip_at + 2, size.ip_length);
  store_be32(bytes + ip_at + 16, peer.ipv4);
  std::uint32_t sum = checksum_sum_ + size.ip_length + (peer.ipv4 >> 16) + (peer.ipv4 & 0xffff);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  store_be16(bytes + ip_at + 10, static_cast<std::uint16_t>(~sum));
  store_be16(bytes + udp_at + 4, size.udp_length);
  if (rocev2_) {
    const std::uint32_t psn_word = __builtin_bswap32(psn_);
    std::memcpy(bytes + bth_at + 8, &psn_word, sizeof psn_word);
    const std::uint32_t state = crc32::add_word(crc_state_ ^ size.crc_state ^ peer.crc_state, psn_word);
    const std::uint32_t balance = state ^ size.crc_target;
    std::memcpy(bytes + payload_at, &balance, sizeof balance);
  }
  advance();
}

void ConstantSource::advance() {
  const Size& sent = sizes_->sizes[size_index_];
  TimePs gap = sent.gap;
  if (poisson_) {
    const auto drawn = static_cast<Uint128>(sent.gap_q16) * exponential_q32(random_.next());
    gap = static_cast<TimePs>((drawn + (std::uint64_t{1} << 47)) >> 48);
  } else {
    rest_ += sent.gap_rest;
    if (rest_ >= sizes_->denominator) {
      rest_ -= sizes_->denominator;
      ++gap;
    }
  }
  ready = gap < never - ready && ready + gap < stop_ ? ready + gap : never;

  if (++size_index_ == sizes_->sizes.size()) size_index_ = 0;
  next_length = sizes_->sizes[size_index_].length;

  if (++step_count_ == steps_) {
    step_count_ = 0;
    psn_ = (psn_ + 1) & 0xff'ffff;
  }
  if (round_) {
    if (++peer_ == last_peer_) peer_ = 0;
    if (peer_ == self_ && ++peer_ == last_peer_) peer_ = 0;
  }
}

Frame* ConstantSource::take(FramePool& pool) {
  Frame* frame = pool.take(next_length);
  if (frame == nullptr) [[unlikely]]
    advance();
  else
    write(bytes_of(frame));
  return frame;
}

std::vector<std::uint32_t> make_permutation(const Topology& topology, Rng random) {
  const std::uint32_t hosts = topology.host_ports();
  if (topology.leaves < 2)
    throw std::invalid_argument(
        "pattern permutation: every pair crosses leaves, and there is one leaf only; add leaves, or use "
        "pattern all-to-all");
  // Start from every host's opposite number on the next leaf and swap receivers where both pairs still cross: every
  // assignment that crosses leaves can be reached, all are equally likely in the long run, and 32 swaps a host are long
  // enough.
  std::vector<std::uint32_t> to(hosts);
  for (std::uint32_t host = 0; host < hosts; ++host) to[host] = (host + topology.hosts_per_leaf) % hosts;
  for (std::uint64_t swap = 0; swap < std::uint64_t{hosts} * 32; ++swap) {
    const auto a = static_cast<std::uint32_t>(random.below(hosts)), b = static_cast<std::uint32_t>(random.below(hosts));
    if (topology.leaf_of(a) != topology.leaf_of(to[b]) && topology.leaf_of(b) != topology.leaf_of(to[a]))
      std::swap(to[a], to[b]);
  }
  return to;
}

std::vector<PlacedSource> make_constant_sources(std::span<const ConstantConfig> entries, const Topology& topology,
                                                const ForwardingConfig& forwarding, const ClassesConfig& classes,
                                                std::uint64_t seed) {
  using Source = ConstantSource;
  std::vector<PlacedSource> placed;
  if (entries.empty()) return placed;
  const std::uint32_t hosts = topology.host_ports();
  if (hosts > max_modelled_hosts)
    throw std::invalid_argument("constant traffic: modelled hosts have addresses for " +
                                std::to_string(max_modelled_hosts) + " ports, not " + std::to_string(hosts));
  const bool routed = forwarding.mode == ForwardingMode::route;
  const std::uint64_t router = routed ? to_number(parse_mac(forwarding.router_mac)) : 0;
  auto peers = std::make_shared<std::vector<Source::Peer>>(hosts);
  for (std::uint32_t host = 0; host < hosts; ++host) {
    std::uint8_t address[4];
    store_be32(address, host_ipv4(host));
    (*peers)[host] = {routed ? router : host_mac(host), host_ipv4(host),
                      field_state(ip_at + 16, address, sizeof address)};
  }

  for (std::uint32_t index = 0; index < entries.size(); ++index) {
    const ConstantConfig& config = entries[index];
    const auto fail = [&](const std::string& what) {
      throw std::invalid_argument("constant traffic " + std::to_string(index + 1) + ": " + what);
    };
    const auto check_port = [&](const char* key, std::uint32_t port) {
      if (port >= hosts)
        fail(std::string(key) + " " + std::to_string(port) + ": host ports are 0 to " + std::to_string(hosts - 1));
    };
    if (!(config.load > 0 && config.load <= 1)) fail("load must be above 0 and at most 1");
    if (config.frames.empty()) fail("frame: at least one length is needed");
    for (const std::uint32_t length : config.frames)
      if (length < min_constant_frame_bytes || length > max_frame_bytes)
        fail("frame " + std::to_string(length) + ": lengths are " + std::to_string(min_constant_frame_bytes) + " to " +
             std::to_string(max_frame_bytes) + " bytes, without FCS");
    std::uint8_t dscp = 0;
    try {
      dscp = dscp_of_class(classes, config.traffic_class);
    } catch (const std::invalid_argument& error) {
      fail(error.what());
    }

    const auto load_ppb = static_cast<std::uint64_t>(std::llround(config.load * 1e9));
    if (load_ppb == 0) fail("load is below a thousand-millionth");
    std::map<std::uint64_t, std::shared_ptr<const Source::Sizes>> sizes_of_rate;
    const auto sizes_at = [&](Rate rate) {
      auto& shared = sizes_of_rate[rate.bits_per_s];
      if (shared != nullptr) return shared;
      auto sizes = std::make_shared<Source::Sizes>();
      Uint128 numerator = static_cast<Uint128>(8'000'000'000'000) * 1'000'000'000;
      sizes->denominator = static_cast<Uint128>(rate.bits_per_s) * load_ppb;
      reduce(numerator, sizes->denominator);
      for (const std::uint32_t length : config.frames) {
        Source::Size size{};
        size.length = length;
        const bool rocev2 = config.udp_destination == rocev2_udp_port;
        size.ip_length = static_cast<std::uint16_t>((length - ip_at) & (rocev2 ? ~3u : ~0u));
        size.udp_length = static_cast<std::uint16_t>(size.ip_length - (udp_at - ip_at));
        std::uint8_t bytes[2];
        store_be16(bytes, size.ip_length);
        size.crc_state = field_state(ip_at + 2, bytes, sizeof bytes);
        store_be16(bytes, size.udp_length);
        size.crc_state ^= field_state(udp_at + 4, bytes, sizeof bytes);
        // The ICRC is ~state. Zero, behind a payload; without one, the word behind the header is the ICRC itself.
        const std::uint32_t payload = rocev2 ? size.ip_length - (payload_at - ip_at) - icrc_bytes : 0;
        size.crc_target = crc32::before_zeros(~std::uint32_t{0}, payload);
        const Uint128 time = (length + ethernet_overhead_bytes) * numerator;
        const Uint128 gap = time / sizes->denominator;
        if (gap >> 47 != 0) fail("load is so low that frames are more than two minutes apart");
        size.gap = static_cast<TimePs>(gap);
        size.gap_rest = time % sizes->denominator;
        size.gap_q16 = size.gap << 16 | static_cast<std::uint64_t>((size.gap_rest << 16) / sizes->denominator);
        sizes->sizes.push_back(size);
      }
      shared = std::move(sizes);
      return shared;
    };
    const auto add = [&](std::uint32_t from, std::uint32_t to, bool round) {
      placed.push_back(
          {from, std::make_unique<Source>(Source::Setup{config, from, to, hosts, round ? hosts - 1 : 1, round, index,
                                                        dscp, seed, sizes_at(topology.host_links[from].rate), peers})});
    };

    switch (config.pattern) {
      case Pattern::permutation: {
        std::vector<std::uint32_t> to;
        try {
          to = make_permutation(topology, stream(seed, index, purpose_permutation));
        } catch (const std::invalid_argument& error) {
          fail(error.what());
        }
        for (std::uint32_t host = 0; host < hosts; ++host) add(host, to[host], false);
        break;
      }
      case Pattern::incast: {
        check_port("receiver", config.receiver);
        std::vector<std::uint32_t> senders = config.senders;
        if (senders.empty())
          for (std::uint32_t host = 0; host < hosts; ++host)
            if (host != config.receiver) senders.push_back(host);
        if (senders.empty()) fail("pattern incast: there is nobody but the receiver");
        std::sort(senders.begin(), senders.end());
        if (std::adjacent_find(senders.begin(), senders.end()) != senders.end()) fail("senders: a port is named twice");
        for (const std::uint32_t sender : senders) {
          check_port("senders", sender);
          if (sender == config.receiver) fail("senders: " + std::to_string(sender) + " is the receiver");
          add(sender, config.receiver, false);
        }
        break;
      }
      case Pattern::all_to_all:
        if (hosts < 2) fail("pattern all-to-all: there is one host only");
        for (std::uint32_t host = 0; host < hosts; ++host) add(host, (host + 1) % hosts, true);
        break;
      case Pattern::one:
        check_port("from", config.from);
        check_port("to", config.to);
        if (config.from == config.to) fail("from and to are the same port");
        add(config.from, config.to, false);
        break;
    }
  }
  return placed;
}

}  // namespace weft
