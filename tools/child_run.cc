// SPDX-License-Identifier: BSD-3-Clause
#include "tools/child_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <thread>

namespace weft {
namespace {

constexpr auto poll_interval = std::chrono::milliseconds(20);
constexpr int polls_a_tick = 5;

/// What the child wrote to stderr, as one line.
std::string said(int fd) {
  std::string text;
  std::array<char, 4096> block;
  for (ssize_t n = 0;
       text.size() < 65'536 && (n = ::pread(fd, block.data(), block.size(), static_cast<off_t>(text.size()))) > 0;)
    text.append(block.data(), static_cast<std::size_t>(n));
  std::string line;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view one = std::string_view(text).substr(at, end - at);
    if (one.starts_with("weft: ")) one.remove_prefix(6);
    if (!one.empty()) line += (line.empty() ? "" : "; ") + std::string(one);
    at = end + 1;
  }
  return line;
}

/// Between fork and exec only what is safe in a copy of one thread of a process of many.
[[noreturn]] void become(char* const* arguments, int messages, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it died before that was set
  const int nowhere = ::open("/dev/null", O_RDWR);
  ::dup2(nowhere, STDIN_FILENO);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(messages, STDERR_FILENO);
  ::execv("/proc/self/exe", arguments);
  ::_exit(127);
}

ChildOutcome outcome(int status, int messages) {
  ChildOutcome out;
  out.message = said(messages);
  if (WIFEXITED(status)) {
    out.exit_code = WEXITSTATUS(status);
    if (out.exit_code != 0 && out.message.empty()) out.message = fmt::format("ended with exit code {}", out.exit_code);
    return out;
  }
  out.exit_code = 128 + WTERMSIG(status);
  out.message = fmt::format("killed by signal {} ({}){}{}", WTERMSIG(status), ::strsignal(WTERMSIG(status)),
                            out.message.empty() ? "" : ": ", out.message);
  return out;
}

}  // namespace

ChildOutcome run_child(const ChildRun& run, const std::atomic<bool>& stop, const std::function<void()>& tick) {
  std::vector<std::string> arguments = run.arguments;
  arguments.insert(arguments.begin(), "weft");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  const int messages = ::memfd_create("weft-run-messages", MFD_CLOEXEC);
  if (messages < 0) throw std::runtime_error(fmt::format("cannot start a run: {}", std::strerror(errno)));
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) become(argv.data(), messages, parent);
  if (child < 0) {
    const int error = errno;
    ::close(messages);
    throw std::runtime_error(fmt::format("cannot start a run: {}", std::strerror(error)));
  }
  int status = 0, polls = 0;
  bool stopping = false;
  for (;;) {
    const pid_t done = ::waitpid(child, &status, WNOHANG);
    if (done == child || (done < 0 && errno != EINTR)) break;
    if (stop && !stopping) {
      ::kill(child, run.keep_on_stop ? SIGTERM : SIGKILL);
      stopping = true;
    }
    if (tick && ++polls % polls_a_tick == 0) tick();
    std::this_thread::sleep_for(poll_interval);
  }
  const ChildOutcome out = outcome(status, messages);
  ::close(messages);
  return out;
}

}  // namespace weft
