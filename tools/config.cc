// SPDX-License-Identifier: BSD-3-Clause
#include "tools/config.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tools/config_sections.h"
#include "tools/yaml_tree.h"

namespace weft {
namespace {

constexpr std::size_t file_bytes_max = 16u << 20;

std::string read_file(const std::string& path) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none))
    throw ConfigError(fmt::format("{}: a folder; accepted: a YAML file", path));
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char block[65536];
  while (file.read(block, sizeof block), file.gcount() > 0) {
    text.append(block, static_cast<std::size_t>(file.gcount()));
    if (text.size() > file_bytes_max)
      throw ConfigError(fmt::format("{}: more than {} bytes; a config is smaller", path, file_bytes_max));
  }
  if (!file.eof()) throw ConfigError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  return text;
}

/// What a file or a command line says may hold line breaks and control characters; a message is one line.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return text;
}

}  // namespace

Config load_config(const std::string& path, const std::vector<std::string>& overrides) {
  return parse_config(read_file(path), path, overrides);
}

Config parse_config(const std::string& text, const std::string& name, const std::vector<std::string>& overrides) {
  try {
    const YamlNode root = parse_yaml(text, name, overrides);
    Config config = default_config();
    config.source = name;
    read_section(root, config_section(config));
    check_together(config, root);
    return config;
  } catch (const ConfigError& error) {
    throw ConfigError(one_line(error.what()));
  }
}

std::string to_yaml(const Config& config) {
  Config copy = config;  // sections bind to what they can change
  return write_section(config_section(copy), 0, false);
}

std::string reference_yaml() {
  Config config = default_config();
  return "# SPDX-License-Identifier: BSD-3-Clause\n"
         "# Every key of a weft config: its default, [what may stand there], and what it does. A config needs none of "
         "them.\n"
         "# Lists are shown with examples behind a '#' in the first column.\n"
         "# Times are written 500ns, 1.5us, 100ms or 2s; rates, in decimal bits a second, 400G, 2.5Gb/s or 100Mbps; "
         "sizes\n"
         "# 256, 2KiB or 64MiB (binary), 100KB or 1MB (decimal); numbers 0.125, 1/8 or 1e-4. Host ports are leaf0:p1, "
         "or\n"
         "# numbered from 0 leaf by leaf; fabric links leaf0-spine1, or leaf0-spine1.0 where several run in "
         "parallel.\n" +
         write_section(config_section(config), 0, true);
}

}  // namespace weft
