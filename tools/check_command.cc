// SPDX-License-Identifier: BSD-3-Clause
// `weft check CONFIG`: reads and validates, and says in a few lines what a run would be.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tools/commands.h"
#include "tools/config.h"
#include "tools/config_sections.h"
#include "tools/describe.h"

namespace weft {
namespace {

struct CheckArguments {
  std::string config;
  std::vector<std::string> overrides;
  bool yaml = false, reference = false;
};

void print_out(const std::string& text) {
  const bool printed = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!printed) throw std::runtime_error(fmt::format("standard output: cannot write: {}", std::strerror(errno)));
}

int check(const CheckArguments& arguments) {
  if (arguments.reference) {
    print_out(reference_yaml());
    return 0;
  }
  if (arguments.config.empty()) throw UsageError("check: no CONFIG; give a YAML file, or --reference");
  const Config config = load_config(arguments.config, arguments.overrides);
  for (const TrafficConfig& traffic : config.traffic) {
    const auto* replay = std::get_if<ReplayConfig>(&traffic);
    if (replay == nullptr) continue;
    errno = 0;
    if (!std::ifstream(replay->file))
      throw std::runtime_error(fmt::format("{}: cannot be opened: {}", replay->file, std::strerror(errno)));
  }
  print_out(arguments.yaml ? to_yaml(config) : describe(config));
  return 0;
}

}  // namespace

void add_check_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<CheckArguments>();
  CLI::App* command = app.add_subcommand("check", "Validate a configuration and describe it");
  command->add_option("config", arguments->config, "Configuration, a YAML file")->type_name("CONFIG");
  command->add_option("--set", arguments->overrides, "Change a key of the config: voq.sram=16MiB; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  command->add_flag("--yaml", arguments->yaml, "Print the complete configuration, every default spelled out");
  command->add_flag("--reference", arguments->reference, "Print every key with its default, unit and meaning");
  command->callback([arguments, &exit_code] { exit_code = check(*arguments); });
}

}  // namespace weft
