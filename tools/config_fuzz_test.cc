// SPDX-License-Identifier: BSD-3-Clause
// Damaged configurations: each either loads or is a ConfigError of one line. Nothing else gets out, nothing crashes.
#include <gtest/gtest.h>

#include <random>

#include "tools/config.h"
#include "tools/config_sections.h"
#include "tools/testing/random_config.h"

namespace weft {
namespace {

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t end) { return end == 0 ? 0 : random() % end; }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines{""};
  for (const char c : text) {
    lines.back() += c;
    if (c == '\n') lines.emplace_back();
  }
  return lines;
}

/// One of: a byte changed, a span cut or doubled, a token put in, lines swapped, an indent changed.
std::string damaged(std::string text, Random& random) {
  static const std::vector<std::string> tokens = {"0",
                                                  "-1",
                                                  "1e400",
                                                  "nan",
                                                  "18446744073709551616",
                                                  "99999999999999999999999s",
                                                  "1/0",
                                                  "auto",
                                                  "none",
                                                  "null",
                                                  "~",
                                                  "{",
                                                  "}",
                                                  "[",
                                                  "]",
                                                  ": ",
                                                  "- ",
                                                  "\n",
                                                  "&a ",
                                                  "*a",
                                                  "!!binary ",
                                                  "<<: ",
                                                  "? ",
                                                  "|\n",
                                                  ">-\n",
                                                  "\"",
                                                  "'",
                                                  "%YAML 1.2\n",
                                                  "---\n",
                                                  "...\n",
                                                  "# ",
                                                  "\t",
                                                  "leaf9999999999:p0",
                                                  "leaf0-spine0.9",
                                                  "0.5KiB",
                                                  "1.5ps",
                                                  "\xff\xfe",
                                                  "\xc3",
                                                  "\x00",
                                                  "imix",
                                                  "all",
                                                  "never"};
  switch (below(random, 6)) {
    case 0:
      if (!text.empty()) text[below(random, text.size())] = static_cast<char>(random());
      break;
    case 1: {
      const std::size_t at = below(random, text.size());
      text.erase(at, below(random, 40));
      break;
    }
    case 2: {
      const std::size_t at = below(random, text.size());
      text.insert(below(random, text.size()), text.substr(at, below(random, 200)));
      break;
    }
    case 3:
      text.insert(below(random, text.size()), tokens[below(random, tokens.size())]);
      break;
    case 4: {
      auto lines = lines_of(text);
      std::swap(lines[below(random, lines.size())], lines[below(random, lines.size())]);
      text.clear();
      for (const std::string& line : lines) text += line;
      break;
    }
    default: {
      // A value replaced: what stands behind a colon, up to the end of the line.
      const std::size_t colon = text.find(": ", below(random, text.size()));
      if (colon == std::string::npos) break;
      text.replace(colon + 2, text.find_first_of(",}\n", colon + 2) - colon - 2, tokens[below(random, tokens.size())]);
    }
  }
  return text;
}

/// True if it loaded. Anything but a ConfigError of one line fails the test.
bool load(const std::string& text, const std::vector<std::string>& overrides) {
  try {
    const Config config = parse_config(text, "fuzz.yaml", overrides);
    EXPECT_EQ(parse_config(to_yaml(config), "fuzz.yaml"), config);
    return true;
  } catch (const ConfigError& error) {
    const std::string what = error.what();
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
    EXPECT_TRUE(what.starts_with("fuzz.yaml:") || what.starts_with("--set ")) << what;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "not a ConfigError: " << error.what() << "\n" << text;
  }
  return false;
}

TEST(ConfigFuzz, DamagedFilesLoadOrAreRefused) {
  Random random(20);
  std::size_t loaded = 0, refused = 0;
  for (std::uint64_t round = 0; round < 1500; ++round) {
    std::string text = round % 3 == 0 ? reference_yaml() : to_yaml(random_config(round));
    for (std::size_t i = 0; i <= below(random, 4); ++i) text = damaged(std::move(text), random);
    ++(load(text, {}) ? loaded : refused);
  }
  // Damage that never shows, or always does, would test one side only.
  EXPECT_GT(loaded, 100u);
  EXPECT_GT(refused, 500u);
}

TEST(ConfigFuzz, DamagedOverridesLoadOrAreRefused) {
  Random random(21);
  Config defaults = default_config();
  const auto keys = known_keys(config_section(defaults));
  static const std::vector<std::string> values = {"1",      "0",    "1us",  "100G",     "64KiB", "[3]", "{at: 1us}",
                                                  "{3: 4}", "auto", "true", "leaf0:p1", "",      "[",   "*a"};
  std::size_t loaded = 0;
  for (int round = 0; round < 1500; ++round) {
    std::vector<std::string> overrides;
    for (std::size_t i = 0; i <= below(random, 2); ++i) {
      std::string setting = keys[below(random, keys.size())] + "=" + values[below(random, values.size())];
      if (below(random, 4) == 0) setting = damaged(std::move(setting), random);
      overrides.push_back(std::move(setting));
    }
    loaded += load("traffic: [{constant: {}}]\n", overrides) ? 1 : 0;
  }
  EXPECT_GT(loaded, 10u);  // or it would test refusals only
}

}  // namespace
}  // namespace weft
