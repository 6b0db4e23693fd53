// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/pfc.h"

#include <cmath>

#include "dataplane/bytes.h"
#include "dataplane/parse.h"

namespace weft {
namespace {

constexpr std::uint16_t opcode_pause = 0x0001, opcode_pfc = 0x0101;

}  // namespace

std::array<std::uint8_t, pfc_frame_bytes> build_pfc(const MacAddress& source, const PfcFrame& pfc) {
  std::array<std::uint8_t, pfc_frame_bytes> frame{};
  store_mac(frame.data(), pause_destination);
  std::copy(source.begin(), source.end(), frame.begin() + 6);
  store_be16(frame.data() + 12, ether_type::mac_control);
  store_be16(frame.data() + 14, opcode_pfc);
  store_be16(frame.data() + 16, pfc.enabled);
  for (std::uint32_t c = 0; c < traffic_classes; ++c) store_be16(frame.data() + 18 + 2 * c, pfc.quanta[c]);
  return frame;
}

MacControl parse_mac_control(std::span<const std::uint8_t> frame) {
  using Kind = MacControl::Kind;
  MacControl control;
  if (frame.size() < ethernet_header_bytes || load_be16(frame.data() + 12) != ether_type::mac_control) return control;
  control.kind = Kind::malformed;
  if (frame.size() < 16) return control;
  const std::uint16_t opcode = load_be16(frame.data() + 14);
  if ((opcode != opcode_pfc && opcode != opcode_pause) || load_mac(frame.data()) != pause_destination) {
    control.kind = Kind::other;
    return control;
  }
  if (opcode == opcode_pause) {
    if (frame.size() < 18) return control;
    control.kind = Kind::pause;
    control.quanta = load_be16(frame.data() + 16);
    return control;
  }
  if (frame.size() < 34) return control;
  control.kind = Kind::pfc;
  control.pfc.enabled = frame[17];
  for (std::uint32_t c = 0; c < traffic_classes; ++c) control.pfc.quanta[c] = load_be16(frame.data() + 18 + 2 * c);
  return control;
}

PauseState::PauseState(Rate rate, const std::array<bool, traffic_classes>& lossless) : rate_(rate) {
  for (std::uint32_t c = 0; c < traffic_classes; ++c) lossless_ |= static_cast<std::uint8_t>(lossless[c] << c);
}

std::uint8_t PauseState::receive(const PfcFrame& frame, TimePs at) {
  std::uint8_t changed = 0;
  for (std::uint32_t c = 0; c < traffic_classes; ++c) {
    if ((frame.enabled >> c & 1) == 0) continue;
    ++received_[c];
    if ((lossless_ >> c & 1) == 0) continue;
    const bool was_paused = paused(c, at);
    if (!was_paused) {
      total_[c] += until_[c] - since_[c];
      since_[c] = until_[c] = at;
    }
    until_[c] = at + pause_time(frame.quanta[c], rate_);
    if (was_paused || frame.quanta[c] != 0) changed |= static_cast<std::uint8_t>(1u << c);
  }
  return changed;
}

std::uint8_t PauseState::paused_classes(TimePs now) const {
  std::uint8_t classes = 0;
  for (std::uint32_t c = 0; c < traffic_classes; ++c) classes |= static_cast<std::uint8_t>(paused(c, now) << c);
  return classes;
}

TimePs PauseState::next_change(TimePs now) const {
  TimePs next = never;
  for (const TimePs until : until_)
    if (until > now) next = std::min(next, until);
  return next;
}

TimePs PauseState::paused_total(std::uint32_t traffic_class, TimePs now) const {
  const TimePs since = since_[traffic_class], until = std::min(until_[traffic_class], now);
  return total_[traffic_class] + (until > since ? until - since : 0);
}

std::uint32_t peer_response_quanta(Rate rate) {
  struct Entry {
    std::uint64_t gbit_per_s;
    std::uint32_t quanta;
  };
  constexpr Entry table[] = {{10, 67}, {25, 80}, {40, 118}, {50, 147}, {100, 394}, {200, 453}, {400, 905}};
  for (const Entry& entry : table)
    if (rate.bits_per_s <= entry.gbit_per_s * 1'000'000'000) return entry.quanta;
  return 905;  // 800G, the last published
}

std::uint64_t headroom_bytes(Rate rate, TimePs delay, std::uint32_t mtu, TimePs reaction, TimePs pipeline) {
  const Uint128 time = 2 * static_cast<Uint128>(delay) + reaction + pipeline;
  constexpr std::uint64_t bit_ps_per_byte_s = 8'000'000'000'000;
  const auto flying = static_cast<std::uint64_t>((time * rate.bits_per_s + bit_ps_per_byte_s - 1) / bit_ps_per_byte_s);
  return flying + 2 * (std::uint64_t{mtu} + ethernet_overhead_bytes) + pfc_frame_bytes + ethernet_overhead_bytes;
}

std::uint64_t published_headroom_bytes(const PublishedHeadroom& in) {
  constexpr double light_m_per_s = 198e6;
  const double cell = in.cell_bytes;
  const double worst_case = cell > 128 ? cell / 64 : 2 * cell / (1 + cell);
  const double small = in.small_packets_percent;
  const double occupancy = (100 - small + small * worst_case) / 100;
  const double cable = in.cable_m / light_m_per_s * static_cast<double>(in.rate.bits_per_s) / 8 * (1000.0 / 1024);
  const double propagation =
      in.mtu + 2 * cable + 2.0 * in.gearbox_bytes + in.mac_phy_bytes + 64.0 * peer_response_quanta(in.rate);
  return static_cast<std::uint64_t>(std::ceil((in.lossless_mtu + propagation * occupancy) / 1024)) * 1024;
}

}  // namespace weft
