// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Captures out: pcapng with one section, one interface a tap point, nanosecond stamps, packet comments, and statistics
// at the end. Written by ourselves because rte_pcapng can neither name interfaces nor comment packets. Nothing in a
// file comes from the clock or the machine: equal runs give equal bytes. Numbers are little-endian on every machine.
//
// The file is readable at every moment, up to what was flushed last: only whole blocks leave the buffer. Should the
// disk fill up or fail, the file is cut back to its last whole block, error() says so once, and what comes later is
// counted as lost.
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/capture_buffer.h"
#include "dataplane/time.h"

namespace weft {

struct TapPoint {
  std::string name;         // any bytes: "leaf0:p3 in", "leaf0>spine1", "leaf0 drops"
  std::string description;  // may be empty
  Rate speed{};             // 0: not said
};

struct PcapngOptions {
  std::string hardware = "emulated leaf/spine fabric";
  std::string os = "weft";
  std::string application = "weft";
  std::uint32_t snaplen = 0;   // as said in the interface descriptions; 0: none. Packets are not cut here.
  std::uint64_t epoch_ns = 0;  // nanoseconds since 1970 at emulated time 0
};

/// The file can't be made. what() is one line.
struct CaptureWriteError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class PcapngWriter {
 public:
  /// Creates or empties `path` ("-": standard output) and writes the section and interface headers out. TapId n is
  /// taps[n]. Throws CaptureWriteError where the file can't be opened or not even the headers fit.
  PcapngWriter(const std::string& path, std::span<const TapPoint> taps, const PcapngOptions& options = {});
  /// The same on an open descriptor, which is closed at the end; `name` is for messages.
  PcapngWriter(int fd, std::string name, std::span<const TapPoint> taps, const PcapngOptions& options = {});
  ~PcapngWriter();  // finishes
  PcapngWriter(const PcapngWriter&) = delete;
  PcapngWriter& operator=(const PcapngWriter&) = delete;

  /// One packet: its first bytes.size() bytes of `original`. Stamp: epoch + at, rounded down to a nanosecond.
  /// Comments over 65,532 bytes are cut.
  void packet(TapId tap, TimePs at, std::span<const std::uint8_t> bytes, std::uint32_t original,
              std::string_view comment = {});

  /// Packets of a tap that never came here (for its statistics).
  void add_drops(TapId tap, std::uint64_t packets) { taps_[tap].drops += packets; }

  /// Hands whole blocks to the kernel. False once writing has failed.
  bool flush();
  /// Statistics, flush, close. Further calls do nothing. False where anything was lost.
  bool finish();

  /// Empty, or one line: which file, what happened, how much of it is good. Set at the first failure and never again.
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] std::uint64_t packets() const { return packets_; }  // in the file, or on the way there
  [[nodiscard]] std::uint64_t lost() const { return lost_; }        // packets that came, but are not in the file

 private:
  struct Tap {
    std::uint64_t packets = 0, drops = 0;
    std::uint64_t last_ns = 0;
  };

  void begin(std::span<const TapPoint> taps, const PcapngOptions& options);
  void fail(int error, std::size_t written);

  std::string name_;
  int fd_ = -1;
  bool regular_ = false;
  std::uint64_t epoch_ns_;
  std::uint64_t good_bytes_ = 0;  // whole blocks in the file
  std::uint64_t packets_ = 0, lost_ = 0;
  std::vector<std::uint8_t> buffer_;
  std::vector<Tap> taps_;
  std::string error_;
};

}  // namespace weft
