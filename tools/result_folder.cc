// SPDX-License-Identifier: BSD-3-Clause
#include "tools/result_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "tools/commands.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view reserve_name = ".reserve";

[[noreturn]] void fail(const fs::path& path, std::string_view what, int error) {
  throw std::runtime_error(fmt::format("{}: {}: {}", path.string(), what, std::strerror(error)));
}

/// Creates `path` and its parents; returns the topmost folder that was missing, or nothing.
fs::path create_folders(const fs::path& path) {
  fs::path missing;
  for (fs::path p = path; !p.empty() && !fs::exists(p); p = p.parent_path()) missing = p;
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    throw std::runtime_error(fmt::format("{}: cannot create the result folder: {}", path.string(), error.message()));
  return missing;
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

int write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return ::fsync(fd) == 0 ? 0 : errno;
}

}  // namespace

void write_whole(const fs::path& target, std::string_view content) {
  const fs::path temporary = target.parent_path() / fmt::format(".{}.tmp", target.filename().string());
  int error = 0;
  {
    const Descriptor fd(::open(temporary.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666));
    error = fd.get() < 0 ? errno : write_all(fd.get(), content);
  }
  if (error == 0 && ::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(temporary.c_str());
  fail(target, "cannot write", error);
}

ResultFolder::ResultFolder(const std::string& out, const std::string& name, bool force, const FolderKind& kind) {
  if (out.empty()) {
    const fs::path parent = "weft-results";
    created_ = create_folders(parent);
    for (unsigned n = 1;; ++n) {  // mkdir decides, so that two runs started together get two folders
      path_ = parent / fmt::format("{}{}-{}", name, kind.suffix, n);
      if (::mkdir(path_.c_str(), 0777) == 0) break;
      if (errno != EEXIST) fail(path_, "cannot create the result folder", errno);
    }
    if (created_.empty()) created_ = path_;
    lock();
    return;
  }
  path_ = fs::path(out).lexically_normal();
  if (!path_.has_filename()) path_ = path_.parent_path();  // "out/" is "out"
  if (fs::exists(path_) && !fs::is_directory(path_))
    throw UsageError(fmt::format("--out {}: is a file; give a folder, new or empty", out));
  created_ = create_folders(path_);
  lock();
  try {
    const bool empty = std::none_of(fs::directory_iterator(path_), fs::directory_iterator(),
                                    [](const fs::directory_entry& e) { return e.path().filename() != reserve_name; });
    if (empty) return;
    if (!force)
      throw UsageError(
          fmt::format("--out {}: folder is not empty; give a new one, or --force to replace an earlier {}'s "
                      "files in it",
                      out, kind.what));
    if (std::ranges::none_of(kind.marks, [&](std::string_view mark) { return fs::exists(file(mark)); }))
      throw UsageError(fmt::format("--out {}: --force replaces an earlier {}, and this folder holds none (no {})", out,
                                   kind.what, kind.marks.front()));
    for (const std::string_view known : kind.files) fs::remove(file(known));
  } catch (...) {
    unlock();
    throw;
  }
}

ResultFolder::~ResultFolder() { unlock(); }

void ResultFolder::lock() {
  const fs::path path = file(reserve_name);
  reserve_fd_ = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
  if (reserve_fd_ < 0) fail(path_, "cannot write", errno);
  if (::flock(reserve_fd_, LOCK_EX | LOCK_NB) == 0) return;
  ::close(reserve_fd_);
  reserve_fd_ = -1;
  throw UsageError(fmt::format("--out {}: another run is writing to this folder; give another one", path_.string()));
}

void ResultFolder::unlock() {
  if (reserve_fd_ < 0) return;
  std::error_code ignored;
  fs::remove(file(reserve_name), ignored);
  ::close(reserve_fd_);
  reserve_fd_ = -1;
}

void ResultFolder::reserve(std::uint64_t bytes) {
  const int error = ::posix_fallocate(reserve_fd_, 0, static_cast<off_t>(bytes));
  if (error == 0) return;
  release();
  fail(path_, fmt::format("no room for the results ({} KiB are set aside for them)", (bytes + 1023) / 1024), error);
}

void ResultFolder::release() {
  // Truncating cannot fail for want of room; were it to fail otherwise, write() says what that leads to.
  if (reserve_fd_ >= 0) [[maybe_unused]]
    const int ignored = ::ftruncate(reserve_fd_, 0);
}

void ResultFolder::write(std::string_view name, std::string_view content) const { write_whole(file(name), content); }

void ResultFolder::discard() {
  unlock();
  std::error_code ignored;
  if (fs::exists(file("results.json"), ignored) || fs::exists(file("capture.pcapng"), ignored)) return;
  fs::remove(file("config.yaml"), ignored);
  if (created_.empty()) return;
  // Upwards from the folder to the topmost one that is ours, as long as nobody put anything into them.
  for (fs::path p = path_; fs::remove(p, ignored) && p != created_;) p = p.parent_path();
}

}  // namespace weft
