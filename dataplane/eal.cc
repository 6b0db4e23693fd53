// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/eal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_memory.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t mebibyte = 1u << 20;
constexpr const char* huge_page_sizes = "/sys/kernel/mm/hugepages";

/// Splits at blanks; quotes, single or double, keep blanks together.
std::vector<std::string> split_arguments(const std::string& text) {
  std::vector<std::string> arguments;
  std::string current;
  bool open = false;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        current += c;
    } else if (c == '"' || c == '\'') {
      quote = c;
      open = true;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      if (open) arguments.push_back(std::move(current));
      current.clear();
      open = false;
    } else {
      current += c;
      open = true;
    }
  }
  if (quote != 0) throw std::runtime_error(fmt::format("EAL arguments '{}': a quote is not closed", text));
  if (open) arguments.push_back(std::move(current));
  return arguments;
}

/// Whether one of `names` is among the arguments, as `-m 64`, `-m64`, `--lcores 0` or `--lcores=0`.
bool mentions(const std::vector<std::string>& arguments, std::initializer_list<std::string_view> names) {
  return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
      if (!argument.starts_with(name)) return false;
      const bool is_short = name.size() == 2;
      return argument.size() == name.size() || is_short || argument[name.size()] == '=';
    });
  });
}

std::optional<std::uint64_t> read_number(const fs::path& file) {
  std::uint64_t value = 0;
  return std::ifstream(file) >> value ? std::optional(value) : std::nullopt;
}

/// Huge pages that nobody has taken or been promised, over all sizes.
std::uint64_t free_huge_page_bytes() {
  std::uint64_t bytes = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(huge_page_sizes, none)) {
    const std::string name = entry.path().filename();  // hugepages-2048kB
    const std::uint64_t page = std::strtoull(name.c_str() + std::strlen("hugepages-"), nullptr, 10) * 1024;
    const std::uint64_t available = read_number(entry.path() / "free_hugepages").value_or(0);
    const std::uint64_t promised = read_number(entry.path() / "resv_hugepages").value_or(0);
    bytes += (available - std::min(available, promised)) * page;
  }
  return bytes;
}

/// RAM that could be had, by the kernel's estimate and the limit of a control group.
std::uint64_t available_ram_bytes() {
  std::uint64_t bytes = ~std::uint64_t{0};
  std::ifstream meminfo("/proc/meminfo");
  for (std::string line; std::getline(meminfo, line);)
    if (line.starts_with("MemAvailable:")) bytes = std::strtoull(line.c_str() + 13, nullptr, 10) * 1024;
  // cgroup v2, as seen inside a container; "max" reads as no number.
  const auto limit = read_number("/sys/fs/cgroup/memory.max");
  const auto used = read_number("/sys/fs/cgroup/memory.current");
  if (limit && used) bytes = std::min(bytes, *limit - std::min(*limit, *used));
  return bytes;
}

std::vector<int> cpus_of(const cpu_set_t& set) {
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
  return cpus;
}

/// `0@2,1@3` where workers are pinned (in turn, if they outnumber the CPUs), else `(0-1)@(2,3)`.
std::string lcore_map(std::uint32_t workers, const std::vector<int>& cpus, bool pin) {
  if (!pin) return fmt::format("(0-{})@({})", workers - 1, fmt::join(cpus, ","));
  std::vector<std::string> pairs;
  for (std::uint32_t worker = 0; worker < workers; ++worker)
    pairs.push_back(fmt::format("{}@{}", worker, cpus[worker % cpus.size()]));
  return fmt::format("{}", fmt::join(pairs, ","));
}

/// While it lives, what is written to stdout and stderr goes to a file in memory: DPDK prints its banner before it can
/// be told not to, and usage texts on errors.
class OutputHold {
 public:
  OutputHold() : held_(memfd_create("eal-output", MFD_CLOEXEC)) {
    std::fflush(nullptr);
    for (int fd = 1; fd <= 2; ++fd) {
      saved_[fd] = held_ < 0 ? -1 : dup(fd);
      if (saved_[fd] >= 0) dup2(held_, fd);
    }
  }
  ~OutputHold() {
    release();
    if (held_ >= 0) close(held_);
  }
  OutputHold(const OutputHold&) = delete;
  OutputHold& operator=(const OutputHold&) = delete;

  void release() {
    std::fflush(nullptr);
    for (int fd = 1; fd <= 2; ++fd) {
      if (saved_[fd] < 0) continue;
      dup2(saved_[fd], fd);
      close(saved_[fd]);
      saved_[fd] = -1;
    }
  }
  [[nodiscard]] std::string text() const {
    std::string text;
    std::array<char, 4096> block;
    for (ssize_t n = 0; (n = pread(held_, block.data(), block.size(), static_cast<off_t>(text.size()))) > 0;)
      text.append(block.data(), static_cast<std::size_t>(n));
    return text;
  }

 private:
  int held_;
  int saved_[3] = {-1, -1, -1};
};

/// DPDK wants a directory for what secondary processes need, under a path that all users share and where the first one
/// locks the others out. There are no secondary processes here, so it gets one of its own for the time of its start.
class RuntimeDirectory {
 public:
  RuntimeDirectory() : path_((fs::temp_directory_path() / "weft-eal-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) {
      path_.clear();
      return;
    }
    if (const char* value = getenv(variable)) before_ = value;
    setenv(variable, path_.c_str(), 1);
  }
  ~RuntimeDirectory() {
    if (path_.empty()) return;
    if (before_)
      setenv(variable, before_->c_str(), 1);
    else
      unsetenv(variable);
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  RuntimeDirectory(const RuntimeDirectory&) = delete;
  RuntimeDirectory& operator=(const RuntimeDirectory&) = delete;

 private:
  static constexpr const char* variable = "RUNTIME_DIRECTORY";  // systemd's, which DPDK asks first
  std::string path_;
  std::optional<std::string> before_;
};

/// Held from counting the free huge pages until DPDK has taken them, so that two instances do not count the same ones.
class HugePageLock {
 public:
  explicit HugePageLock(bool wanted)
      : directory_(wanted ? open(huge_page_sizes, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1) {
    if (directory_ >= 0) flock(directory_, LOCK_EX);
  }
  ~HugePageLock() { release(); }
  void release() {
    if (directory_ >= 0) close(directory_);
    directory_ = -1;
  }
  HugePageLock(const HugePageLock&) = delete;
  HugePageLock& operator=(const HugePageLock&) = delete;

 private:
  int directory_;
};

/// What DPDK complained about, on one line.
std::string complaint(const std::string& output) {
  std::istringstream lines(output);
  std::vector<std::string> said;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Usage:")) break;
    if (line.starts_with("EAL: ")) line.erase(0, 5);
    const bool banner = line.starts_with("Detected ") || line.starts_with("Selected IOVA") || line.empty();
    const bool repeated =
        std::any_of(said.begin(), said.end(), [&](const std::string& s) { return s.find(line) != s.npos; });
    if (!banner && !repeated) said.push_back(line);
  }
  constexpr std::size_t most = 3;
  if (said.size() > most) said.erase(said.begin(), said.end() - most);
  return said.empty() ? rte_strerror(rte_errno) : fmt::format("{}", fmt::join(said, "; "));
}

/// Without huge pages DPDK's memory is a memfd, and the kernel's usual setting keeps shared memory in 4 KiB pages
/// whatever is advised. So each area is exchanged for private memory, which can be advised, what has been written to it
/// copied. Nothing runs beside the caller yet that would write there.
int make_private_and_huge(const rte_memseg_list* list, void*) {
  if (list->external != 0 || list->len == 0) return 0;
  constexpr std::size_t page = 4096;
  auto* const area = static_cast<std::uint8_t*>(list->base_va);
  std::vector<unsigned char> resident((list->len + page - 1) / page);
  void* const fresh = mmap(nullptr, list->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) return 0;  // slower, not wrong
  if (mincore(area, list->len, resident.data()) != 0) {
    munmap(fresh, list->len);
    return 0;
  }
  for (std::size_t i = 0; i < resident.size(); ++i)
    if ((resident[i] & 1) != 0) std::memcpy(static_cast<std::uint8_t*>(fresh) + i * page, area + i * page, page);
  if (mremap(fresh, list->len, list->len, MREMAP_MAYMOVE | MREMAP_FIXED, area) == MAP_FAILED) {
    munmap(fresh, list->len);
    return 0;
  }
  madvise(area, list->len, MADV_HUGEPAGE);
  return 0;
}

struct Launch {
  const std::function<void(std::uint32_t)>* work = nullptr;
  std::uint32_t worker = 0;
  std::exception_ptr thrown = nullptr;
  std::atomic<bool> done = false;  // DPDK orders memory by itself, but where no race detector sees it
};

int launch(void* argument) {
  auto* const l = static_cast<Launch*>(argument);
  try {
    (*l->work)(l->worker);
  } catch (...) {
    l->thrown = std::current_exception();
  }
  l->done.store(true, std::memory_order_release);
  return 0;
}

}  // namespace

Eal::Eal(const EalOptions& options) : workers_(options.workers) {
  if (workers_ == 0 || workers_ > RTE_MAX_LCORE)
    throw std::runtime_error(fmt::format("{} workers asked for; 1 to {} are possible", workers_, RTE_MAX_LCORE));
  if (sched_getaffinity(0, sizeof caller_cpus_, &caller_cpus_) != 0)
    throw std::runtime_error(fmt::format("cannot read the CPUs allowed: {}", std::strerror(errno)));

  const std::vector<std::string> extra = split_arguments(options.extra);
  const bool own_lcores = !mentions(extra, {"-l", "-c", "-s", "-S", "--lcores"});
  const bool own_memory = !mentions(extra, {"-m", "--no-huge", "--in-memory", "--socket-mem", "--huge-dir",
                                            "--legacy-mem", "--file-prefix", "--proc-type", "--no-shconf"});
  const bool devices = options.devices || mentions(extra, {"-a", "--allow", "-b", "--block"});
  const bool vdevs = mentions(extra, {"--vdev"});
  const bool talkative = mentions(extra, {"--log-level", "-v"});

  std::vector<std::string> arguments{"weft"};
  const std::vector<int> cpus = cpus_of(caller_cpus_);
  if (own_lcores) {
    arguments.insert(arguments.end(), {"--lcores", lcore_map(workers_, cpus, options.pin)});
    arguments.insert(arguments.end(), {"--main-lcore", "0"});
  }
  HugePageLock lock(own_memory && options.memory != EalOptions::Memory::ordinary);
  if (own_memory) {
    const std::uint64_t wanted = (options.memory_bytes + 2 * mebibyte - 1) / (2 * mebibyte) * 2 * mebibyte;
    const std::uint64_t huge = free_huge_page_bytes();
    huge_pages_ = options.memory == EalOptions::Memory::huge_pages ||
                  (options.memory == EalOptions::Memory::automatic && huge >= wanted);
    if (huge_pages_ && huge < wanted)
      throw std::runtime_error(
          fmt::format("{} MiB of huge pages wanted, {} MiB are free; reserve more in "
                      "/proc/sys/vm/nr_hugepages",
                      wanted / mebibyte, huge / mebibyte));
    if (const std::uint64_t ram = available_ram_bytes(); !huge_pages_ && ram < wanted)
      throw std::runtime_error(
          fmt::format("{} MiB of memory wanted, {} MiB are available", wanted / mebibyte, ram / mebibyte));
    arguments.insert(arguments.end(), {"-m", std::to_string(wanted / mebibyte)});
    if (huge_pages_)
      arguments.emplace_back("--in-memory");
    else
      arguments.insert(arguments.end(), {"--no-huge", "--no-shconf"});
  }
  if (!devices) arguments.insert(arguments.end(), {"--no-pci", "--iova-mode=va"});
  if (!mentions(extra, {"--telemetry", "--no-telemetry"})) arguments.emplace_back("--no-telemetry");
  if (!talkative) arguments.emplace_back("--log-level=*:notice");  // held back, and read only if the start fails
  arguments.insert(arguments.end(), extra.begin(), extra.end());

  static std::vector<std::string> kept;  // DPDK keeps pointers to its arguments
  kept = arguments;
  std::vector<char*> argv;
  for (auto& argument : kept) argv.push_back(argument.data());
  argv.push_back(nullptr);

  int started = 0;
  std::string output;
  {
    std::optional<RuntimeDirectory> directory;
    if (own_memory && mentions(arguments, {"--no-telemetry"})) directory.emplace();
    OutputHold hold;
    rte_openlog_stream(stderr);  // else also to syslog
    started = rte_eal_init(static_cast<int>(argv.size()) - 1, argv.data());
    hold.release();
    output = hold.text();
  }
  lock.release();
  if (started < 0)
    throw std::runtime_error(fmt::format("cannot start DPDK: {} (EAL arguments: {})", complaint(output),
                                         fmt::join(arguments.begin() + 1, arguments.end(), " ")));
  if (talkative)
    std::fputs(output.c_str(), stderr);
  else
    rte_log_set_global_level(RTE_LOG_ERR);

  if (rte_lcore_count() < workers_)
    throw std::runtime_error(fmt::format("{} workers asked for, but the EAL arguments '{}' give {} lcores", workers_,
                                         options.extra, rte_lcore_count()));
  // A device backed by shared memory (vhost, memif) needs the memfd.
  if (own_memory && !huge_pages_ && !devices && !vdevs && !options.shared_memory)
    rte_memseg_list_walk(make_private_and_huge, nullptr);

  control_cpus_ = caller_cpus_;
  if (options.pin || !own_lcores) {
    unsigned lcore = 0;
    RTE_LCORE_FOREACH(lcore) {
      const cpu_set_t taken = rte_lcore_cpuset(lcore);
      for (const int cpu : cpus_of(taken)) CPU_CLR(static_cast<std::size_t>(cpu), &control_cpus_);
    }
    if (CPU_COUNT(&control_cpus_) == 0) control_cpus_ = caller_cpus_;
  }
}

Eal::~Eal() {
  rte_eal_cleanup();
  sched_setaffinity(0, sizeof caller_cpus_, &caller_cpus_);
}

void Eal::run_workers(const std::function<void(std::uint32_t)>& work) {
  std::vector<Launch> launches(workers_);
  for (std::uint32_t worker = 0; worker < workers_; ++worker)
    launches[worker].work = &work, launches[worker].worker = worker;
  std::uint32_t next = 1;
  unsigned lcore = 0;
  RTE_LCORE_FOREACH_WORKER(lcore) {
    if (next == workers_) break;
    rte_eal_remote_launch(launch, &launches[next++], lcore);
  }
  launch(&launches[0]);
  rte_eal_mp_wait_lcore();
  std::exception_ptr first;
  for (const Launch& l : launches)
    if (l.done.load(std::memory_order_acquire) && l.thrown && !first) first = l.thrown;
  if (first) std::rethrow_exception(first);
}

void Eal::use_control_cpus() const { sched_setaffinity(0, sizeof control_cpus_, &control_cpus_); }

}  // namespace weft
