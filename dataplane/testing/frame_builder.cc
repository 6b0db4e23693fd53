// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/testing/frame_builder.h"

#include <pcap/pcap.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <new>

#include "dataplane/bytes.h"
#include "dataplane/checksum.h"

namespace weft::testing {
namespace {

void put16(Bytes& bytes, std::uint16_t v) {
  bytes.push_back(static_cast<std::uint8_t>(v >> 8));
  bytes.push_back(static_cast<std::uint8_t>(v));
}
void put32(Bytes& bytes, std::uint32_t v) {
  put16(bytes, static_cast<std::uint16_t>(v >> 16));
  put16(bytes, static_cast<std::uint16_t>(v));
}
void put_mac(Bytes& bytes, std::uint64_t mac) {
  put16(bytes, static_cast<std::uint16_t>(mac >> 32));
  put32(bytes, static_cast<std::uint32_t>(mac));
}

}  // namespace

Packet& Packet::eth(std::uint64_t destination, std::uint64_t source) {
  put_mac(bytes_, destination);
  put_mac(bytes_, source);
  return *this;
}

Packet& Packet::vlan(std::uint16_t id, std::uint8_t pcp, std::uint16_t type) {
  put16(bytes_, type);
  put16(bytes_, static_cast<std::uint16_t>(pcp << 13 | id));
  return *this;
}

Packet& Packet::type(std::uint16_t ether_type) {
  put16(bytes_, ether_type);
  return *this;
}

Packet& Packet::snap(std::uint16_t ether_type) {
  snap_at_ = static_cast<std::uint32_t>(bytes_.size());
  put16(bytes_, 0);
  put_mac(bytes_, 0xaaaa'0300'0000);
  put16(bytes_, ether_type);
  return *this;
}

Packet& Packet::ipv4(std::uint32_t source, std::uint32_t destination, std::uint8_t tos, std::uint8_t ttl,
                     std::uint8_t protocol, const Bytes& options) {
  if (snap_at_ == 0) put16(bytes_, 0x0800);
  ip_at_ = static_cast<std::uint32_t>(bytes_.size());
  six_ = false;
  bytes_.push_back(static_cast<std::uint8_t>(0x45 + options.size() / 4));
  bytes_.push_back(tos);
  put16(bytes_, 0);
  put32(bytes_, 0x1234'4000);
  bytes_.push_back(ttl);
  bytes_.push_back(protocol);
  put16(bytes_, 0);
  put32(bytes_, source);
  put32(bytes_, destination);
  return raw(options);
}

Packet& Packet::ipv6(std::uint16_t source, std::uint16_t destination, std::uint8_t tos, std::uint8_t hop_limit,
                     std::uint8_t next_header) {
  if (snap_at_ == 0) put16(bytes_, 0x86dd);
  ip_at_ = static_cast<std::uint32_t>(bytes_.size());
  six_ = true;
  put32(bytes_, 6u << 28 | std::uint32_t{tos} << 20);
  put16(bytes_, 0);
  bytes_.push_back(next_header);
  bytes_.push_back(hop_limit);
  for (const std::uint16_t host : {source, destination}) {
    put32(bytes_, 0x2001'0db8);
    put32(bytes_, 0), put32(bytes_, 0);
    put32(bytes_, host);
  }
  return *this;
}

Packet& Packet::udp(std::uint16_t source, std::uint16_t destination) {
  udp_at_ = static_cast<std::uint32_t>(bytes_.size());
  put16(bytes_, source);
  put16(bytes_, destination);
  put32(bytes_, 0);
  return *this;
}

Packet& Packet::tcp(std::uint16_t source, std::uint16_t destination) {
  put16(bytes_, source);
  put16(bytes_, destination);
  put32(bytes_, 1), put32(bytes_, 0), put32(bytes_, 0x5010'ffff), put32(bytes_, 0);
  return *this;
}

Packet& Packet::bth(std::uint32_t destination_qp, std::uint32_t psn) {
  roce_ = true;
  put32(bytes_, 0x0440'ffff);
  put32(bytes_, destination_qp);
  put32(bytes_, psn);
  return *this;
}

Packet& Packet::raw(const Bytes& bytes) {
  for (const std::uint8_t byte : bytes) bytes_.push_back(byte);
  return *this;
}

Packet& Packet::payload(std::uint32_t count, std::uint8_t value) {
  bytes_.insert(bytes_.end(), count, value);
  return *this;
}

Bytes Packet::build() const {
  Bytes b = bytes_;
  if (roce_) b.resize(b.size() + 4);
  if (snap_at_ != 0) store_be16(b.data() + snap_at_, static_cast<std::uint16_t>(b.size() - snap_at_ - 2));
  if (udp_at_ != 0) store_be16(b.data() + udp_at_ + 4, static_cast<std::uint16_t>(b.size() - udp_at_));
  if (ip_at_ != 0 && six_) store_be16(b.data() + ip_at_ + 4, static_cast<std::uint16_t>(b.size() - ip_at_ - 40));
  if (ip_at_ != 0 && !six_) {
    std::uint8_t* ip = b.data() + ip_at_;
    store_be16(ip + 2, static_cast<std::uint16_t>(b.size() - ip_at_));
    store_be16(ip + 10, static_cast<std::uint16_t>(~ones_sum(ip, (ip[0] & 15u) * 4)));
  }
  if (roce_) {
    const std::uint32_t icrc = reference_icrc(b, ip_at_);
    std::memcpy(b.data() + b.size() - 4, &icrc, 4);
  }
  return b;
}

std::uint32_t reference_icrc(std::span<const std::uint8_t> frame, std::uint32_t ip_at) {
  const bool six = frame[ip_at] >> 4 == 6;
  const std::uint32_t header = six ? 40 : (frame[ip_at] & 15u) * 4;
  const std::uint32_t total = six ? 40u + load_be16(&frame[ip_at + 4]) : load_be16(&frame[ip_at + 2]);
  Bytes covered(8, 0xff);
  for (const std::uint8_t byte : frame.subspan(ip_at, total - 4)) covered.push_back(byte);
  std::uint8_t* ip = covered.data() + 8;
  if (six)
    ip[0] |= 0x0f, ip[1] = ip[2] = ip[3] = ip[7] = 0xff;
  else
    ip[1] = ip[8] = ip[10] = ip[11] = 0xff;
  ip[header + 6] = ip[header + 7] = ip[header + 12] = 0xff;
  std::uint32_t crc = ~std::uint32_t{0};
  for (const std::uint8_t byte : covered) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ 0xedb8'8320 : crc >> 1;
  }
  return ~crc;
}

bool icrc_is_right(std::span<const std::uint8_t> frame, std::uint32_t ip_at) {
  const bool six = frame[ip_at] >> 4 == 6;
  const std::uint32_t total = six ? 40u + load_be16(&frame[ip_at + 4]) : load_be16(&frame[ip_at + 2]);
  std::uint32_t there;
  std::memcpy(&there, &frame[ip_at + total - 4], 4);
  return there == reference_icrc(frame, ip_at);
}

HeapFrame::HeapFrame(std::span<const std::uint8_t> bytes, std::uint32_t in_port, std::uint32_t first_segment) {
  constexpr std::size_t header_bytes = sizeof(rte_mbuf) + sizeof(Frame);
  void* memory = std::aligned_alloc(alignof(rte_mbuf), header_bytes);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, header_bytes);
  headers_.reset(memory);
  const auto length = static_cast<std::uint32_t>(bytes.size());
  const std::uint32_t readable = first_segment == 0 || first_segment > length ? length : first_segment;
  data_ = std::make_unique<std::uint8_t[]>(readable);
  std::copy_n(bytes.begin(), readable, data_.get());

  auto* mbuf = static_cast<rte_mbuf*>(memory);
  mbuf->buf_addr = data_.get();
  mbuf->buf_len = mbuf->data_len = static_cast<std::uint16_t>(readable);
  mbuf->pkt_len = length;
  mbuf->nb_segs = 1;
  mbuf->refcnt = 1;
  mbuf->priv_size = frame_private_bytes;
  frame_ = frame_of(mbuf);
  frame_->length = length;
  frame_->in_port = in_port;
}

std::vector<Bytes> read_capture(const std::string& path) {
  std::vector<Bytes> frames;
  char error[PCAP_ERRBUF_SIZE];
  pcap_t* capture = pcap_open_offline(path.c_str(), error);
  if (capture == nullptr) return frames;
  if (pcap_datalink(capture) == DLT_EN10MB) {
    pcap_pkthdr* header;
    const std::uint8_t* data;
    while (pcap_next_ex(capture, &header, &data) == 1) frames.emplace_back(data, data + header->caplen);
  }
  pcap_close(capture);
  return frames;
}

std::string public_captures() {
  namespace fs = std::filesystem;
  const char* given = std::getenv("WEFT_PUBLIC_CAPTURES");
  const char* source = std::getenv("WEFT_SOURCE");
  const fs::path folder =
      given != nullptr ? fs::path(given) : fs::path(source != nullptr ? source : ".") / "../shared/captures/public";
  std::error_code ignored;
  return fs::is_directory(folder, ignored) ? folder.lexically_normal().string() : std::string();
}

}  // namespace weft::testing
