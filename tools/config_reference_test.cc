// SPDX-License-Identifier: BSD-3-Clause
// configs/ against the code: the reference file is what the code says, and every config that weft comes with is valid.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/config_sections.h"

namespace weft {
namespace {

std::filesystem::path configs() {
  const char* source = std::getenv("WEFT_SOURCE");
  return std::filesystem::path(source == nullptr ? "." : source) / "configs";
}

std::string content(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The examples of lists, which are commented out, brought to life.
std::string uncommented(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string line = lines[i];
    const bool prose = line.starts_with("# ") && !line.starts_with("#  ");
    if (!prose) line.erase(0, line.find_first_not_of('#'));
    // The empty list gives way to the examples that follow it, past the rest of its own comment.
    const std::size_t depth = lines[i].find_first_not_of('#');
    const auto is_comment = [&](std::size_t at) {
      const std::size_t start = lines[at].find_first_not_of("# ");
      return start > 36 || lines[at].substr(0, start).find(" #") != std::string::npos;
    };
    std::size_t next = i + 1;
    while (next < lines.size() && is_comment(next)) ++next;
    const bool examples = next < lines.size() && lines[next].find_first_not_of('#') == depth + 1;
    if (const std::size_t empty = line.find(": []"); examples && empty != line.npos) line.replace(empty + 2, 2, "  ");
    out += line + "\n";
  }
  return out;
}

/// All paths in a document, list indices left out.
void collect(const YamlNode& node, const std::string& prefix, std::vector<std::string>& paths) {
  for (const YamlNode& item : node.items) collect(item, prefix, paths);
  for (const YamlEntry& entry : node.entries) {
    paths.push_back(prefix + entry.key);
    collect(entry.value, prefix + entry.key + ".", paths);
  }
}

TEST(Reference, IsWhatTheCodeSays) {
  EXPECT_TRUE(content(configs() / "reference.yaml") == reference_yaml())
      << "configs/reference.yaml is made from the tables of keys: weft check --reference > configs/reference.yaml";
}

TEST(Reference, GivesTheDefaults) { EXPECT_EQ(parse_config(reference_yaml(), "a.yaml"), parse_config("", "a.yaml")); }

TEST(Reference, HasEveryKeyAndItsExamplesAreValid) {
  const std::string text = uncommented(reference_yaml());
  std::vector<std::string> present;
  collect(parse_yaml(text, "reference.yaml", {}), "", present);
  Config config = default_config();
  const auto keys = known_keys(config_section(config));
  EXPECT_GT(keys.size(), 100u);
  for (const std::string& key : keys)
    EXPECT_NE(std::find(present.begin(), present.end(), key), present.end()) << key << " is not in the reference\n";
  // Routes and port maps exclude each other; the rest loads as it stands.
  const Config routed =
      parse_config(text, "a.yaml", {"clock.mode=wall", "forwarding.mode=route", "forwarding.static=[]"});
  const Config fixed =
      parse_config(text, "a.yaml", {"clock.mode=wall", "forwarding.mode=static", "forwarding.routes=[]"});
  EXPECT_EQ(routed.forwarding.routes.size(), 1u);
  EXPECT_EQ(fixed.forwarding.fixed.size(), 1u);
  EXPECT_EQ(fixed.traffic.size(), 2u);
  EXPECT_EQ(fixed.faults.size(), 5u);
  EXPECT_EQ(fixed.ports.size(), 1u);
}

TEST(Reference, EveryKeyIsExplained) {
  const std::function<void(const Section&)> check = [&](const Section& section) {
    for (const Field& field : section) {
      EXPECT_FALSE(field.help.empty()) << field.key;
      check(field.value.fields);
      for (const Section& example : field.value.examples) check(example);
    }
  };
  Config config = default_config();
  check(config_section(config));
}

TEST(Configs, AreValidAndSayWhatToLookAt) {
  std::size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(configs())) {
    if (entry.path().extension() != ".yaml") continue;
    ++seen;
    EXPECT_NO_THROW(load_config(entry.path())) << entry.path();
    if (entry.path().filename() == "reference.yaml") continue;
    EXPECT_NE(content(entry.path()).find("What to look at"), std::string::npos) << entry.path();
    for (const TrafficConfig& traffic : load_config(entry.path()).traffic) {
      const auto* replay = std::get_if<ReplayConfig>(&traffic);
      EXPECT_TRUE(replay == nullptr || std::filesystem::exists(replay->file)) << entry.path();
    }
  }
  EXPECT_GE(seen, 5u);
}

}  // namespace
}  // namespace weft
