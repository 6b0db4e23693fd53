// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A capture to be replayed: its Ethernet frames in file order, with their stamps and interfaces. The format is told by
// the file's magic, never by its name: classic pcap goes through libpcap (pcap_reader.h), pcapng through a reader of
// our own (pcapng_reader.h says why), gzip is unfolded first; anything else is refused by name.
//
// What is done with a file that isn't whole or right. `strict` refuses each of these:
//   - it ends within a record, or a record makes no sense: the records before it are used, a note says where and why;
//   - interfaces that aren't Ethernet beside ones that are: the Ethernet records are used, the others counted by
//   interface;
//   - a record with more bytes captured than it says the frame had: the bytes that are there are the frame;
//   - a stamp that is absent or impossible: the frame follows the one before it at once;
//   - a frame longer than longest_replayed_frame_bytes, or of length 0: left out (1 to 13 bytes are replayed: the
//     switch counts them as runts; longer than the MTU: likewise its own to drop).
// Frames captured short, time running backwards and long silences are the replay's to handle (replay.h).
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataplane/capture_file.h"
#include "dataplane/capture_index.h"

namespace weft {

class Capture {
 public:
  /// Throws CaptureError: can't be opened, not a capture, no Ethernet frame in it, or (strict) anything listed above.
  static std::shared_ptr<const Capture> read(const std::string& path, bool strict = false);
  /// The same of bytes in memory; `name` is for messages.
  static std::shared_ptr<const Capture> from_bytes(const std::string& name, std::vector<std::uint8_t> bytes,
                                                   bool strict = false);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<CaptureFrame>& frames() const { return index_.frames; }
  [[nodiscard]] const std::vector<CaptureInterface>& interfaces() const { return index_.interfaces; }
  [[nodiscard]] const CaptureIndex& index() const { return index_; }
  /// What was captured of `frame`; frame.length may be more.
  [[nodiscard]] std::span<const std::uint8_t> bytes(const CaptureFrame& frame) const {
    return file_.bytes().subspan(frame.offset, frame.captured);
  }
  /// One line for each kind of thing that was repaired or left out.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  Capture(std::string name, CaptureFile file, bool strict);
  void note_repairs();

  std::string name_;
  CaptureFile file_;
  CaptureIndex index_;
  std::vector<std::string> notes_;
};

}  // namespace weft
