// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The subcommands of the weft program. A new one is a file x_command.cc with its add_x_command(), a line here and a
// line in program.cc.
//
// Each add_x_command() registers a subcommand whose callback does the work and leaves the program's exit code:
// 0 done, 1 the run or a check failed, 2 usage or configuration. Exceptions may leave the callback: run_program()
// turns ConfigError and UsageError into one line on stderr and 2, any other std::exception into one line and 1.
#include <CLI/CLI.hpp>
#include <stdexcept>

#include "tools/run.h"

namespace weft {

/// A command line that makes no sense. what() is one line: what is wrong; what would be right.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// `run` is run_fabric(), or what a test puts in its place.
void add_run_command(CLI::App& app, int& exit_code, RunFabric run);
void add_check_command(CLI::App& app, int& exit_code);
void add_compare_command(CLI::App& app, int& exit_code);
void add_sweep_command(CLI::App& app, int& exit_code);

/// The whole program, less the process around it. Returns the exit code.
int run_program(int argc, const char* const* argv, const RunFabric& run);

}  // namespace weft
