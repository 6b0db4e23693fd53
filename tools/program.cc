// SPDX-License-Identifier: BSD-3-Clause
// The command line as a whole: subcommands, help, version, and what becomes of errors.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "tools/commands.h"
#include "tools/config.h"
#include "tools/version.h"

namespace weft {
namespace {

constexpr int failed = 1, usage = 2;

/// A parse error of CLI11 in one line, in the voice of the other messages.
int report(const CLI::ParseError& error, const CLI::App& app) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);  // --help, --version
  const auto used = app.get_subcommands();
  const std::string command = used.empty() ? "weft" : "weft " + used.front()->get_name();
  fmt::print(stderr, "weft: {}; see '{} --help'\n", error.what(), command);
  return usage;
}

/// `overview` is app.help() from before parsing: afterwards it would be that of the subcommand in use.
void add_help_command(CLI::App& app, const std::string& overview) {
  auto verb = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("help", "Show the subcommands, or the flags of one");
  command->add_option("verb", *verb, "A subcommand")->type_name("VERB");
  command->callback([&app, &overview, verb] {
    if (verb->empty()) {
      fmt::print("{}", overview);
      return;
    }
    for (const CLI::App* of : app.get_subcommands([&](const CLI::App* one) { return one->get_name() == *verb; })) {
      fmt::print("{}", of->help("weft"));
      return;
    }
    throw UsageError(fmt::format("'{}' is no subcommand; see 'weft help'", *verb));
  });
}

}  // namespace

int run_program(int argc, const char* const* argv, const RunFabric& run) {
  int exit_code = 0;
  CLI::App app{"weft emulates the data plane of a leaf/spine switch fabric.", "weft"};
  app.set_version_flag("--version", fmt::format("weft {}", version));
  app.require_subcommand(0, 1);
  add_run_command(app, exit_code, run);
  add_check_command(app, exit_code);
  add_compare_command(app, exit_code);
  add_sweep_command(app, exit_code);
  std::string overview;
  add_help_command(app, overview);
  overview = app.help();
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) {
      fmt::print(stderr, "{}", overview);
      return usage;
    }
  } catch (const CLI::ParseError& e) {
    return report(e, app);
  } catch (const ConfigError& e) {
    fmt::print(stderr, "weft: {}\n", e.what());
    return usage;
  } catch (const UsageError& e) {
    fmt::print(stderr, "weft: {}\n", e.what());
    return usage;
  } catch (const std::exception& e) {
    fmt::print(stderr, "weft: {}\n", e.what());
    return failed;
  }
  return exit_code;
}

}  // namespace weft
