// SPDX-License-Identifier: BSD-3-Clause
// DPDK starts once a process, so each case here runs in a process of its own: a "threadsafe" death test, which runs
// this binary anew and passes when the child leaves with 0 and has said nothing on stderr.
#include "dataplane/eal.h"

#include <gtest/gtest.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "dataplane/frame_pool.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using Memory = EalOptions::Memory;

constexpr std::uint64_t mebibyte = 1u << 20;
constexpr uid_t nobody = 65534;

class EalTest : public ::testing::Test {
 protected:
  EalTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

#define EXPECT_FINE(statement)                    \
  EXPECT_EXIT(                                    \
      {                                           \
        try {                                     \
          statement;                              \
        } catch (const std::exception& e) {       \
          std::fprintf(stderr, "%s\n", e.what()); \
          _exit(1);                               \
        }                                         \
        _exit(0);                                 \
      },                                          \
      ::testing::ExitedWithCode(0), "^$")

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

std::vector<int> cpus_now() {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
  return cpus;
}

void allow_only(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  require(sched_setaffinity(0, sizeof set, &set) == 0, "cannot set the affinity");
}

/// Every worker runs once, on an lcore of its own, at the same time as the others, and can use a pool.
void use(Eal& eal, std::uint32_t workers) {
  require(eal.workers() == workers, "number of workers");
  FramePool pool("use", 2048, 1500);
  std::atomic<std::uint32_t> met = 0;
  std::vector<unsigned> lcores(workers, LCORE_ID_ANY);
  eal.run_workers([&](std::uint32_t worker) {
    lcores[worker] = rte_lcore_id();
    ++met;
    while (met != workers) sched_yield();
    for (int i = 0; i < 1000; ++i) {
      Frame* const frame = pool.take(1500);
      require(frame != nullptr, "the pool is dry");
      free_frame(frame);
    }
  });
  const std::set<unsigned> different(lcores.begin(), lcores.end());
  require(different.size() == workers && !different.contains(LCORE_ID_ANY), "workers share an lcore");
}

TEST_F(EalTest, AnyNumberOfWorkersOnAnyNumberOfCpus) {
  for (const std::uint32_t workers : {1u, 2u, 4u, 16u})
    EXPECT_FINE({
      Eal eal({.workers = workers, .memory_bytes = 64 * mebibyte, .memory = Memory::ordinary});
      use(eal, workers);
    });
}

TEST_F(EalTest, PinnedWorkersTakeCpusInTurn) {
  const std::size_t cpus = cpus_now().size();
  for (const std::uint32_t workers : {1u, 3u})
    EXPECT_FINE({
      Eal eal({.workers = workers, .memory_bytes = 64 * mebibyte, .memory = Memory::ordinary, .pin = true});
      use(eal, workers);
      require(cpus_now().size() == 1, "worker 0 is not pinned");
      eal.use_control_cpus();
      require(cpus_now().size() == (cpus > workers ? cpus - workers : cpus), "CPUs for control threads");
    });
}

// As in a container whose CPUs do not start at 0.
TEST_F(EalTest, OneAllowedCpuThatIsNotTheFirst) {
  const int last = cpus_now().back();
  if (last == 0) GTEST_SKIP() << "this machine has one CPU";
  for (const bool pin : {false, true})
    EXPECT_FINE({
      allow_only(last);
      Eal eal({.workers = 2, .memory_bytes = 64 * mebibyte, .memory = Memory::ordinary, .pin = pin});
      use(eal, 2);
      eal.use_control_cpus();
      require(cpus_now() == std::vector<int>{last}, "not the CPUs that the process had");
    });
}

TEST_F(EalTest, WithoutRoot) {
  if (getuid() != 0) GTEST_SKIP() << "the other tests run without root already";
  for (const Memory memory : {Memory::automatic, Memory::ordinary})
    EXPECT_FINE({
      require(setgid(nobody) == 0 && setuid(nobody) == 0, "cannot become nobody");
      Eal eal({.workers = 2, .memory_bytes = 64 * mebibyte, .memory = memory});
      use(eal, 2);
    });
}

TEST_F(EalTest, WithoutAWritableHomeOrTemporaryDirectory) {
  EXPECT_FINE({
    setenv("TMPDIR", "/proc", 1);
    unsetenv("HOME");
    unsetenv("XDG_RUNTIME_DIR");
    Eal eal({.workers = 1, .memory_bytes = 64 * mebibyte, .memory = Memory::ordinary});
    use(eal, 1);
  });
}

std::uint64_t free_default_huge_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  std::uint64_t pages = 0, kib = 0;
  for (std::string line; std::getline(meminfo, line);) {
    if (line.starts_with("HugePages_Free:")) pages = std::stoull(line.substr(15));
    if (line.starts_with("Hugepagesize:")) kib = std::stoull(line.substr(13));
  }
  return pages * kib * 1024;
}

TEST_F(EalTest, HugePagesAreUsedWhereEnoughAreFree) {
  const std::uint64_t there = free_default_huge_bytes();
  if (there < 64 * mebibyte) GTEST_SKIP() << "no 64 MiB of huge pages are free on this machine";
  EXPECT_FINE({
    Eal eal({.workers = 2, .memory_bytes = 32 * mebibyte});
    require(eal.huge_pages(), "huge pages were not used");
    use(eal, 2);
  });
  EXPECT_FINE({
    Eal eal({.workers = 1, .memory_bytes = there + 2 * mebibyte});
    require(!eal.huge_pages(), "more huge pages than there are");
    use(eal, 1);
  });
}

// Each of them would find enough, both would not: one takes ordinary memory, neither fails.
TEST_F(EalTest, TwoProcessesDoNotCountOnTheSameHugePages) {
  const std::uint64_t there = free_default_huge_bytes();
  if (there < 64 * mebibyte) GTEST_SKIP() << "no 64 MiB of huge pages are free on this machine";
  EXPECT_FINE({
    int up[2];
    int stay[2];
    require(pipe(up) == 0 && pipe(stay) == 0, "no pipe");
    const pid_t child = fork();
    Eal eal({.workers = 1, .memory_bytes = there / 4 * 3});
    char byte = eal.huge_pages() ? 1 : 0;
    if (child == 0) {
      require(write(up[1], &byte, 1) == 1 && read(stay[0], &byte, 1) == 1, "pipe");
      _exit(0);
    }
    const int mine = eal.huge_pages() ? 1 : 0;
    require(read(up[0], &byte, 1) == 1 && mine + byte == 1, "not just one has the huge pages");
    require(write(stay[1], &byte, 1) == 1, "pipe");
    int status = 0;
    require(waitpid(child, &status, 0) == child && status == 0, "the other process failed");
  });
}

TEST_F(EalTest, HugePagesThatAreNotThereAreOneClearLine) {
  EXPECT_EXIT(
      {
        try {
          Eal eal({.memory_bytes = 1ull << 50, .memory = Memory::huge_pages});
        } catch (const std::exception& e) {
          std::fprintf(stderr, "%s", e.what());
          _exit(3);
        }
      },
      ::testing::ExitedWithCode(3), "^1073741824 MiB of huge pages wanted, [0-9]+ MiB are free; reserve more[^\n]*$");
}

/// KiB of this process's memory on huge pages of the transparent kind.
std::uint64_t transparent_huge_kib() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string line; std::getline(rollup, line);)
    if (line.starts_with("AnonHugePages:")) return std::stoull(line.substr(14));
  return 0;
}

TEST_F(EalTest, OrdinaryMemoryIsOnTransparentHugePages) {
  std::ifstream setting("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string text;
  std::getline(setting, text);
  if (text.empty() || text.find("[never]") != text.npos)
    GTEST_SKIP() << "transparent huge pages are off on this machine";
  EXPECT_FINE({
    Eal eal({.memory_bytes = 256 * mebibyte, .memory = Memory::ordinary});
    FramePool pool("huge", 16'384, 9216);
    // 150 MiB of frames; two thirds leave room for a machine whose free memory is in pieces.
    require(transparent_huge_kib() > 100 * 1024, "the pool is on small pages");
  });
}

// What DPDK itself had written to its heap before the memory was exchanged is still right: blocks come and go.
TEST_F(EalTest, TheHeapIsWhole) {
  EXPECT_FINE({
    Eal eal({.memory_bytes = 64 * mebibyte, .memory = Memory::ordinary});
    std::vector<void*> blocks;
    for (std::size_t i = 1; i < 500; ++i) {
      blocks.push_back(rte_malloc("block", i * 100, 0));
      require(blocks.back() != nullptr, "no memory");
      std::memset(blocks.back(), 0xee, i * 100);
    }
    for (void* const block : blocks) rte_free(block);
    rte_malloc_socket_stats stats;
    require(rte_malloc_get_socket_stats(0, &stats) == 0 && stats.heap_totalsz_bytes == 64 * mebibyte, "heap size");
    require(rte_malloc_validate(rte_malloc("last", 100, 0), nullptr) == 0, "the heap is damaged");
  });
}

TEST_F(EalTest, MemorySizedByThePoolIsEnoughForIt) {
  struct Size {
    std::uint32_t frames, longest, workers;
  };
  for (const auto& [frames, longest, workers] : {Size{16, 9216, 1}, Size{20'000, 64, 2}, Size{5000, 9224, 4}})
    EXPECT_FINE({
      Eal eal({.workers = workers,
               .memory_bytes = FramePool::memory_bytes(frames, longest, workers),
               .memory = Memory::ordinary});
      FramePool pool("sized", frames, longest);
    });
}

TEST_F(EalTest, MoreMemoryThanTheMachineHasIsOneClearLine) {
  EXPECT_EXIT(
      {
        try {
          Eal eal({.memory_bytes = 1ull << 50, .memory = Memory::ordinary});
        } catch (const std::exception& e) {
          std::fprintf(stderr, "%s", e.what());
          _exit(3);
        }
      },
      ::testing::ExitedWithCode(3), "^1073741824 MiB of memory wanted, [0-9]+ MiB are available$");
}

std::set<std::string> dpdk_files() {
  std::set<std::string> names;
  for (const char* folder : {"/var/run/dpdk", "/dev/hugepages", "/dev/shm"}) {
    std::error_code none;
    for (const auto& entry : fs::recursive_directory_iterator(folder, none)) names.insert(entry.path());
  }
  for (const auto& entry : fs::directory_iterator(fs::temp_directory_path())) {
    const std::string name = entry.path().filename();
    if (name.starts_with("dpdk") || name.starts_with("weft-eal-")) names.insert(entry.path());
  }
  return names;
}

TEST_F(EalTest, NothingIsLeftBehindByAKill) {
  // A folder of its own, so that other tests running now do not count. The child that is killed runs this test again
  // from its start, and must take its parent's folder, not make another.
  const char* const handed_on = std::getenv("WEFT_EAL_TEST_FOLDER");
  std::string folder = handed_on != nullptr ? handed_on : (fs::temp_directory_path() / "weft-eal-test-XXXXXX").string();
  if (handed_on == nullptr) {
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    ASSERT_EQ(setenv("WEFT_EAL_TEST_FOLDER", folder.c_str(), 1), 0);
  }
  for (const Memory memory : {Memory::automatic, Memory::ordinary}) {
    const std::set<std::string> before = dpdk_files();
    EXPECT_EXIT(
        {
          setenv("TMPDIR", folder.c_str(), 1);
          Eal eal({.workers = 2, .memory_bytes = 32 * mebibyte, .memory = memory});
          FramePool pool("killed", 1000, 1500);
          raise(SIGKILL);
        },
        ::testing::KilledBySignal(SIGKILL), "^$");
    EXPECT_TRUE(fs::is_empty(folder));
    for (const std::string& name : dpdk_files())
      if (!name.starts_with(fs::temp_directory_path().string())) {
        EXPECT_TRUE(before.contains(name)) << name;
      }
  }
  fs::remove_all(folder);
  unsetenv("WEFT_EAL_TEST_FOLDER");
}

TEST_F(EalTest, TwoProcessesDoNotDisturbEachOther) {
  EXPECT_FINE({
    int ready[2];
    require(pipe(ready) == 0, "no pipe");
    const pid_t child = fork();
    {
      Eal eal({.workers = 2, .memory_bytes = 32 * mebibyte});
      use(eal, 2);
      char byte = 0;
      if (child == 0) {
        require(write(ready[1], &byte, 1) == 1, "write");  // up, and stays up until the other is as well
        use(eal, 2);
        _exit(0);
      }
      require(read(ready[0], &byte, 1) == 1, "read");
      use(eal, 2);
    }
    int status = 0;
    require(waitpid(child, &status, 0) == child && status == 0, "the other process failed");
  });
}

TEST_F(EalTest, SaysNothing) {
  EXPECT_FINE({
    char name[] = "/tmp/weft-eal-output-XXXXXX";
    const int file = mkstemp(name);
    unlink(name);
    dup2(file, 1);
    {
      Eal eal({.memory_bytes = 32 * mebibyte, .memory = Memory::ordinary});
      use(eal, 1);
    }
    std::fflush(stdout);
    require(lseek(file, 0, SEEK_END) == 0, "something was written to stdout");
  });
}

TEST_F(EalTest, ArgumentsOfTheUserAreHeeded) {
  EXPECT_FINE({
    Eal eal({.workers = 2, .extra = "--lcores 5@0,'9@0' --no-huge -m 64 --no-shconf"});
    use(eal, 2);
    require(rte_get_main_lcore() == 5, "main lcore");
  });
  EXPECT_FINE({
    Eal eal({.memory_bytes = 64 * mebibyte, .memory = Memory::ordinary, .extra = "--vdev net_null0"});
    use(eal, 1);
  });
}

TEST_F(EalTest, MistakesInTheUsersArgumentsAreOneClearLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"--no-such-option", "^cannot start DPDK: [^\n]*unrecognized option '--no-such-option'[^\n]*$"},
      {"--lcores 0@4000", "^cannot start DPDK: [^\n]*--lcores[^\n]*$"},
      {"--vdev net_no_such0", "^cannot start DPDK: [^\n]*net_no_such0[^\n]*$"},
      {"--lcores 0@0", "^2 workers asked for, but the EAL arguments '--lcores 0@0' give 1 lcores$"},
      {"--vdev 'net_null0", "^EAL arguments [^\n]*: a quote is not closed$"},
  };
  for (const auto& [arguments, expected] : cases)
    EXPECT_EXIT(
        {
          try {
            Eal eal({.workers = 2, .memory_bytes = 32 * mebibyte, .memory = Memory::ordinary, .extra = arguments});
          } catch (const std::exception& e) {
            std::fprintf(stderr, "%s", e.what());
            _exit(3);
          }
        },
        ::testing::ExitedWithCode(3), expected);
  EXPECT_THROW(Eal({.workers = 0}), std::runtime_error);
  EXPECT_THROW(Eal({.workers = 1000}), std::runtime_error);
}

TEST_F(EalTest, AnExceptionOfAWorkerArrives) {
  EXPECT_FINE({
    Eal eal({.workers = 3, .memory_bytes = 32 * mebibyte, .memory = Memory::ordinary});
    std::string caught;
    try {
      eal.run_workers([](std::uint32_t worker) {
        if (worker != 0) throw std::runtime_error("worker " + std::to_string(worker));
      });
    } catch (const std::exception& e) {
      caught = e.what();
    }
    require(caught == "worker 1", "not the first worker's exception");
    use(eal, 3);
  });
}

}  // namespace
}  // namespace weft
