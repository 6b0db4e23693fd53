// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/capture_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace weft {
namespace {

constexpr std::size_t chunk_bytes = 1 << 20;

struct Descriptor {
  int fd;
  explicit Descriptor(int number) : fd(number) {}
  ~Descriptor() { ::close(fd); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

std::vector<std::uint8_t> read_to_end(int fd, const std::string& path) {
  std::vector<std::uint8_t> bytes;
  std::size_t used = 0;
  for (;;) {
    if (used > longest_unmapped_capture_bytes)
      throw CaptureError(fmt::format("{}: more than {} GiB from a pipe; save it to a file first", path,
                                     longest_unmapped_capture_bytes >> 30));
    bytes.resize(used + chunk_bytes);
    const ssize_t got = ::read(fd, bytes.data() + used, chunk_bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw CaptureError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  bytes.resize(used);
  return bytes;
}

}  // namespace

CaptureFile::CaptureFile(CaptureFile&& other) noexcept
    : mapped_(std::exchange(other.mapped_, nullptr)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)),
      held_(std::move(other.held_)),
      damage_(std::move(other.damage_)) {}

CaptureFile::~CaptureFile() {
  if (mapped_ != nullptr) ::munmap(const_cast<std::uint8_t*>(mapped_), mapped_bytes_);
}

CaptureFile CaptureFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw CaptureError(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  const Descriptor descriptor(fd);
  struct stat about {};
  if (::fstat(fd, &about) != 0) throw CaptureError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  if (S_ISDIR(about.st_mode)) throw CaptureError(fmt::format("{}: is a folder; a capture file is needed", path));

  CaptureFile file;
  if (S_ISREG(about.st_mode) && about.st_size > 0) {
    const auto size = static_cast<std::size_t>(about.st_size);
    void* map = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) throw CaptureError(fmt::format("{}: cannot be mapped: {}", path, std::strerror(errno)));
    file.mapped_ = static_cast<const std::uint8_t*>(map);
    file.mapped_bytes_ = size;
    ::madvise(map, size, MADV_WILLNEED);
  } else if (!S_ISREG(about.st_mode)) {
    file.held_ = read_to_end(fd, path);
  }
  file.inflate(path);
  return file;
}

CaptureFile CaptureFile::of(const std::string& name, std::vector<std::uint8_t> bytes) {
  CaptureFile file;
  file.held_ = std::move(bytes);
  file.inflate(name);
  return file;
}

void CaptureFile::inflate(const std::string& name) {
  const auto packed = bytes();
  if (packed.size() < 3 || packed[0] != 0x1f || packed[1] != 0x8b || packed[2] != 8) return;

  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) throw CaptureError(fmt::format("{}: no memory to inflate it", name));
  std::vector<std::uint8_t> plain;
  std::size_t used = 0, fed = 0;
  for (;;) {
    if (stream.avail_in == 0 && fed < packed.size()) {
      const std::size_t part = std::min(packed.size() - fed, chunk_bytes);
      stream.next_in = const_cast<std::uint8_t*>(packed.data()) + fed;
      stream.avail_in = static_cast<unsigned>(part);
      fed += part;
    }
    if (used == plain.size()) plain.resize(std::max(used * 2, 4 * chunk_bytes));
    const std::size_t room = std::min(plain.size() - used, std::size_t{1} << 30);
    stream.next_out = plain.data() + used;
    stream.avail_out = static_cast<unsigned>(room);
    const int status = ::inflate(&stream, Z_NO_FLUSH);
    used += room - stream.avail_out;
    if (used > longest_unmapped_capture_bytes) {
      inflateEnd(&stream);
      throw CaptureError(fmt::format("{}: unfolds to more than {} GiB; decompress it to a file first", name,
                                     longest_unmapped_capture_bytes >> 30));
    }
    const bool all_fed = stream.avail_in == 0 && fed == packed.size();
    if (status == Z_STREAM_END) {
      if (all_fed) break;
      inflateReset(&stream);  // several gzip members one after the other are one file
      continue;
    }
    if (status == Z_OK && !(all_fed && stream.avail_out != 0)) continue;
    damage_ = fmt::format("compressed data {} after {} unfolded bytes",
                          status == Z_OK || status == Z_BUF_ERROR ? "ends early" : "is damaged", used);
    break;
  }
  inflateEnd(&stream);
  plain.resize(used);
  if (mapped_ != nullptr) ::munmap(const_cast<std::uint8_t*>(mapped_), mapped_bytes_);
  mapped_ = nullptr, mapped_bytes_ = 0;
  held_ = std::move(plain);
}

}  // namespace weft
