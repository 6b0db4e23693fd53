// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Starting DPDK so that its user need not know it: huge pages where there are enough free, ordinary memory (advised to
// be huge) where not, no root, no files left behind, no chatter, any number of workers on any number of CPUs.
#include <sched.h>

#include <cstdint>
#include <functional>
#include <string>

namespace weft {

struct EalOptions {
  enum class Memory : std::uint8_t { automatic, huge_pages, ordinary };

  std::uint32_t workers = 1;  // lcores, the calling thread included
  std::uint64_t memory_bytes =
      1ull << 30;  // for frame pools and tables; ordinary memory costs nothing until it is touched
  Memory memory = Memory::automatic;
  bool pin = false;      // one CPU a worker, as live ports want; else the kernel places workers on the CPUs allowed
  bool devices = false;  // look for PCI devices
  bool shared_memory = false;  // a device's peer maps this process' memory (virtio-user)
  std::string
      extra;  // more EAL arguments, as of `--eal "…"`; what they say about memory, lcores or logs replaces the above
};

/// One a process, and only once: DPDK cannot start a second time.
class Eal {
 public:
  /// Throws std::runtime_error with one line that says what is wrong.
  explicit Eal(const EalOptions& options);
  ~Eal();
  Eal(const Eal&) = delete;
  Eal& operator=(const Eal&) = delete;

  [[nodiscard]] std::uint32_t workers() const { return workers_; }
  [[nodiscard]] bool huge_pages() const { return huge_pages_; }

  /// Runs work(0) to work(workers - 1) at the same time, each on its lcore, work(0) on the calling thread; returns when
  /// all have. The first exception (by worker) is thrown again here; the others must then be brought to an end by
  /// `work`.
  void run_workers(const std::function<void(std::uint32_t)>& work);

  /// Starting DPDK binds the caller to its lcores' CPUs, and threads made later inherit that. A control thread
  /// (progress, capture writer, TBB) calls this to have the CPUs that the process started with, less those that workers
  /// are pinned to if any are left.
  void use_control_cpus() const;

 private:
  std::uint32_t workers_;
  bool huge_pages_ = false;
  cpu_set_t caller_cpus_, control_cpus_;
};

}  // namespace weft
