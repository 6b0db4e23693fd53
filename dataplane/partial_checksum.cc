// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/partial_checksum.h"

#include "dataplane/bytes.h"
#include "dataplane/parse.h"

namespace weft {
namespace {

constexpr std::uint32_t fold(std::uint64_t sum) {
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint32_t>(sum);
}

std::uint64_t sum_of(std::span<const std::uint8_t> bytes) {
  std::uint64_t sum = 0;
  std::size_t i = 0;
  for (; i + 2 <= bytes.size(); i += 2) sum += load_be16(&bytes[i]);
  if (i < bytes.size()) sum += std::uint64_t{bytes[i]} << 8;
  return sum;
}

}  // namespace

bool complete_checksum(std::span<std::uint8_t> frame) {
  const ParsedHeaders headers = parse(frame);
  const bool udp = headers.protocol == ip_protocol::udp, tcp = headers.protocol == ip_protocol::tcp;
  if (headers.ip_version == 0 || headers.fragment || headers.l4_offset == 0 || !(udp || tcp)) return false;
  const std::uint32_t l3 = headers.l3_offset, l4 = headers.l4_offset;
  const bool v4 = headers.ip_version == 4;
  const std::uint32_t end = v4 ? l3 + load_be16(&frame[l3 + 2]) : l3 + 40u + load_be16(&frame[l3 + 4]);
  const std::uint32_t field = l4 + (udp ? 6 : 16);
  if (end > frame.size() || field + 2 > end) return false;

  const std::span<const std::uint8_t> addresses = frame.subspan(v4 ? l3 + 12 : l3 + 8, v4 ? 8 : 32);
  const std::uint32_t pseudo = fold(sum_of(addresses) + headers.protocol + (end - l4));
  const std::uint32_t written = load_be16(&frame[field]);
  if (written != pseudo) return false;
  // The field holds the pseudo-header's sum, so the sum over header and payload is that of everything.
  std::uint32_t checksum = ~fold(sum_of(frame.subspan(l4, end - l4))) & 0xffff;
  if (udp && checksum == 0) checksum = 0xffff;
  frame[field] = static_cast<std::uint8_t>(checksum >> 8);
  frame[field + 1] = static_cast<std::uint8_t>(checksum);
  return true;
}

}  // namespace weft
