// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/pcapng_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "dataplane/capture_index.h"
#include "dataplane/check.h"

namespace weft {
namespace {

constexpr std::size_t buffer_bytes = 1 << 20;
constexpr std::uint32_t section_header = 0x0a0d0d0a, interface_description = 1, interface_statistics = 5,
                        enhanced_packet = 6;
constexpr std::uint16_t option_comment = 1, option_shb_hardware = 2, option_shb_os = 3, option_shb_application = 4,
                        option_if_name = 2, option_if_description = 3, option_if_speed = 8, option_if_tsresol = 9,
                        option_isb_received = 4, option_isb_dropped = 5;
constexpr std::size_t longest_option = 65'532;  // 16-bit length, and still whole words

// Appends one block; its length goes in at both ends when it is closed.
class BlockWriter {
 public:
  BlockWriter(std::vector<std::uint8_t>& out, std::uint32_t type) : out_(out), start_(out.size()) {
    u32(type);
    u32(0);
  }
  ~BlockWriter() {
    const auto total = static_cast<std::uint32_t>(out_.size() - start_ + 4);
    u32(total);
    put(start_ + 4, total, 4);
  }
  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;

  void u16(std::uint16_t v) { append(v, 2); }
  void u32(std::uint32_t v) { append(v, 4); }
  void u64(std::uint64_t v) { append(v, 8); }
  void bytes(const void* data, std::size_t length) {
    const auto* from = static_cast<const std::uint8_t*>(data);
    out_.insert(out_.end(), from, from + length);
    out_.resize(out_.size() + (-length & 3));
  }
  void option(std::uint16_t code, std::string_view text) {
    text = text.substr(0, longest_option);
    u16(code);
    u16(static_cast<std::uint16_t>(text.size()));
    bytes(text.data(), text.size());
  }
  void option_u64(std::uint16_t code, std::uint64_t v) {
    u16(code);
    u16(8);
    u64(v);
  }
  void end_of_options() { u32(0); }

 private:
  void append(std::uint64_t v, unsigned count) {
    out_.resize(out_.size() + count);
    put(out_.size() - count, v, count);
  }
  void put(std::size_t at, std::uint64_t v, unsigned count) {
    if constexpr (std::endian::native == std::endian::little) {
      std::memcpy(out_.data() + at, &v, count);
    } else {
      for (unsigned i = 0; i < count; ++i) out_[at + i] = static_cast<std::uint8_t>(v >> (8 * i));
    }
  }

  std::vector<std::uint8_t>& out_;
  std::size_t start_;
};

std::uint32_t u32_at(const std::vector<std::uint8_t>& bytes, std::size_t at) {
  return std::uint32_t{bytes[at]} | std::uint32_t{bytes[at + 1]} << 8 | std::uint32_t{bytes[at + 2]} << 16 |
         std::uint32_t{bytes[at + 3]} << 24;
}

// While it lives, writing to a pipe that nobody reads gives EPIPE and no signal, whatever the program does about
// SIGPIPE.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    if (!was_pending_) {
      const timespec at_once{};
      while (sigtimedwait(&pipe_, nullptr, &at_once) == -1 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_, before_;
  bool was_pending_;
};

}  // namespace

PcapngWriter::PcapngWriter(const std::string& path, std::span<const TapPoint> taps, const PcapngOptions& options)
    : name_(path == "-" ? "standard output" : path), epoch_ns_(options.epoch_ns) {
  fd_ = path == "-" ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                    : ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) throw CaptureWriteError(fmt::format("{}: cannot be written: {}", name_, std::strerror(errno)));
  begin(taps, options);
}

PcapngWriter::PcapngWriter(int fd, std::string name, std::span<const TapPoint> taps, const PcapngOptions& options)
    : name_(std::move(name)), fd_(fd), epoch_ns_(options.epoch_ns) {
  begin(taps, options);
}

PcapngWriter::~PcapngWriter() { finish(); }

void PcapngWriter::begin(std::span<const TapPoint> taps, const PcapngOptions& options) {
  // Only a file that we fill from its start can be cut back; standard output may point into the middle of one.
  struct stat about {};
  regular_ = ::fstat(fd_, &about) == 0 && S_ISREG(about.st_mode) && ::lseek(fd_, 0, SEEK_CUR) == 0;
  taps_.resize(taps.size());
  buffer_.reserve(buffer_bytes + (buffer_bytes >> 2));
  {
    BlockWriter block(buffer_, section_header);
    block.u32(0x1a2b3c4d);
    block.u16(1);
    block.u16(0);
    block.u64(~std::uint64_t{0});  // section length: not said
    if (!options.hardware.empty()) block.option(option_shb_hardware, options.hardware);
    if (!options.os.empty()) block.option(option_shb_os, options.os);
    if (!options.application.empty()) block.option(option_shb_application, options.application);
    block.end_of_options();
  }
  for (const TapPoint& tap : taps) {
    BlockWriter block(buffer_, interface_description);
    block.u16(link_type_ethernet);
    block.u16(0);
    block.u32(options.snaplen);
    block.option(option_if_name, tap.name);
    if (!tap.description.empty()) block.option(option_if_description, tap.description);
    if (tap.speed.bits_per_s != 0) block.option_u64(option_if_speed, tap.speed.bits_per_s);
    block.option(option_if_tsresol, "\x09");
    block.end_of_options();
  }
  if (!flush()) {
    const std::string why = error_;
    finish();
    throw CaptureWriteError(why);
  }
}

void PcapngWriter::packet(TapId tap, TimePs at, std::span<const std::uint8_t> bytes, std::uint32_t original,
                          std::string_view comment) {
  WEFT_CHECK(tap < taps_.size(), "tap point of a captured packet");
  if (fd_ < 0 || !error_.empty()) {
    ++lost_;
    return;
  }
  const std::uint64_t ns = epoch_ns_ + at / 1000;
  Tap& of = taps_[tap];
  ++of.packets;
  of.last_ns = std::max(of.last_ns, ns);
  ++packets_;
  {
    BlockWriter block(buffer_, enhanced_packet);
    block.u32(tap);
    block.u32(static_cast<std::uint32_t>(ns >> 32));
    block.u32(static_cast<std::uint32_t>(ns));
    block.u32(static_cast<std::uint32_t>(bytes.size()));
    block.u32(original);
    block.bytes(bytes.data(), bytes.size());
    if (!comment.empty()) {
      block.option(option_comment, comment);
      block.end_of_options();
    }
  }
  if (buffer_.size() >= buffer_bytes) flush();
}

bool PcapngWriter::flush() {
  if (!error_.empty()) return false;
  std::size_t written = 0;
  const NoPipeSignal no_signal;
  while (written < buffer_.size()) {
    const ssize_t n = ::write(fd_, buffer_.data() + written, buffer_.size() - written);
    if (n > 0) {
      written += static_cast<std::size_t>(n);
    } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      pollfd wait{fd_, POLLOUT, 0};
      ::poll(&wait, 1, -1);
    } else if (n == 0 || errno != EINTR) {
      fail(n == 0 ? EIO : errno, written);
      return false;
    }
  }
  good_bytes_ += written;
  buffer_.clear();
  return true;
}

void PcapngWriter::fail(int error, std::size_t written) {
  // The buffer holds whole blocks: find the last that went out whole, and count the packets behind it as lost.
  std::size_t whole = 0, at = 0;
  std::uint64_t behind = 0;
  while (at < buffer_.size()) {
    const std::uint32_t length = u32_at(buffer_, at + 4);
    if (at + length <= written) {
      whole = at + length;
    } else if (u32_at(buffer_, at) == enhanced_packet) {
      ++behind;
    }
    at += length;
  }
  good_bytes_ += whole;
  bool cut = !regular_;
  if (regular_) cut = ::ftruncate(fd_, static_cast<off_t>(good_bytes_)) == 0;
  packets_ -= behind;
  lost_ += behind;
  error_ = fmt::format("{}: writing the capture failed after {} packets: {}; later packets are lost{}", name_, packets_,
                       std::strerror(error), cut ? "" : ", and its last record may be cut short");
  buffer_.clear();
  buffer_.shrink_to_fit();
}

bool PcapngWriter::finish() {
  if (fd_ < 0) return error_.empty();
  if (error_.empty()) {
    for (std::size_t tap = 0; tap < taps_.size(); ++tap) {
      const std::uint64_t ns = std::max(taps_[tap].last_ns, epoch_ns_);
      BlockWriter block(buffer_, interface_statistics);
      block.u32(static_cast<std::uint32_t>(tap));
      block.u32(static_cast<std::uint32_t>(ns >> 32));
      block.u32(static_cast<std::uint32_t>(ns));
      block.option_u64(option_isb_received, taps_[tap].packets + taps_[tap].drops);
      block.option_u64(option_isb_dropped, taps_[tap].drops);
      block.end_of_options();
    }
    flush();
  }
  // Network file systems tell of a full disk only here.
  if (::close(fd_) != 0 && error_.empty() && errno != EINTR)
    error_ = fmt::format("{}: closing the capture failed: {}; its end may be missing", name_, std::strerror(errno));
  fd_ = -1;
  return error_.empty();
}

}  // namespace weft
