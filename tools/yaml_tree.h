// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A YAML document as a tree whose every node knows where it was written and what path leads to it, so that a mistake
// can be reported by line and key. Aliases are copied in; --set is applied here, before anything is read.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct YamlEntry;

struct YamlNode {
  enum class Kind : std::uint8_t { null, scalar, sequence, mapping };

  Kind kind = Kind::null;
  std::string scalar;
  std::vector<YamlNode> items;     // sequence
  std::vector<YamlEntry> entries;  // mapping, in the order written; the same key may be there twice
  std::string where;               // "run.yaml:12", or "--set voq.sram=1MiB"
  std::string path;                // "voq.ecn.kmin", "traffic.0.constant"; empty at the root
  bool overridden = false;         // comes from --set

  /// The first entry of that key, or nullptr.
  [[nodiscard]] const YamlNode* find(std::string_view key) const;
  /// The node at a dotted path from here, or the nearest one above it that exists.
  [[nodiscard]] const YamlNode& nearest(std::string_view dotted) const;

  /// Throws ConfigError: `where: path: problem`. At the root the path is left out.
  [[noreturn]] void fail(std::string_view problem) const;
};

struct YamlEntry {
  std::string key;
  std::string where;  // of the key
  YamlNode value;
};

/// `name` stands for the file in messages. Each override is `dotted.path=value`, the value in YAML. Throws ConfigError.
YamlNode parse_yaml(const std::string& text, const std::string& name, const std::vector<std::string>& overrides);

/// A scalar as it can stand anywhere in a document, quoted where it has to be.
std::string yaml_scalar(const std::string& text);

}  // namespace weft
