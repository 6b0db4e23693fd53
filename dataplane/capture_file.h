// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The bytes of a capture file, wherever they are: mapped (a plain file costs page cache and no memory of ours), read
// to the end (a pipe), or inflated (gzip). Frames are copied straight from here when they are sent.
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace weft {

/// A capture that can't be read. what() is one line: `file: [record n:] what is wrong[; what would be right]`.
struct CaptureError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Most that a pipe or a gzip file may unfold to in memory. Plain files are mapped and have no limit.
inline constexpr std::uint64_t longest_unmapped_capture_bytes = std::uint64_t{4} << 30;

class CaptureFile {
 public:
  /// Opens `path`. gzip is recognised by its magic. Throws CaptureError: no such file, a folder, unreadable, over the
  /// limit above. A mapped file must not be shortened by others while it is replayed (the kernel would answer with
  /// SIGBUS).
  static CaptureFile open(const std::string& path);
  /// Bytes that are in memory already; they are inflated where they are gzip.
  static CaptureFile of(const std::string& name, std::vector<std::uint8_t> bytes);

  CaptureFile(CaptureFile&& other) noexcept;
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;
  CaptureFile& operator=(CaptureFile&&) = delete;
  ~CaptureFile();

  [[nodiscard]] std::span<const std::uint8_t> bytes() const {
    return mapped_ != nullptr ? std::span{mapped_, mapped_bytes_} : std::span<const std::uint8_t>{held_};
  }
  /// Empty, or why the last part of compressed data is missing.
  [[nodiscard]] const std::string& damage() const { return damage_; }

 private:
  CaptureFile() = default;
  void inflate(const std::string& name);

  const std::uint8_t* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::vector<std::uint8_t> held_;
  std::string damage_;
};

}  // namespace weft
