// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// How a key of the configuration is declared: its name, the field it fills, its unit and limits, and what it does, said
// once. A Section is a table of such keys; the same table reads YAML, writes it, lists the known keys and makes the
// reference file.
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/config.h"
#include "tools/units.h"
#include "tools/yaml_tree.h"

namespace weft {

struct Field;
using Section = std::vector<Field>;

/// What stands behind a key. One of three: a leaf (write), a mapping (fields) or a list of mappings (items).
struct Value {
  std::string accepts;                                // for messages: "a time such as 500ns, from 1ns to 1s"
  std::string unit;                                   // for the reference: "time, 1ns to 1s"
  std::function<void(const YamlNode&)> read;          // throws ConfigError
  std::function<std::optional<std::string>()> write;  // leaf: YAML that fits on one line; none: the key is left out
  Section fields;                                     // mapping
  std::function<std::vector<Section>()> items;        // list
  std::vector<Section> examples;                      // list: for the reference, and what its known keys come from
  std::shared_ptr<const void> keep;                   // what examples are bound to
};

struct Field {
  std::string key;
  Value value;
  std::string help;
  bool required = false;
};

/// 115 days: sums of a few stay inside 64 bits of picoseconds.
inline constexpr TimePs time_max = 10'000'000_s;

template <class T>
struct Limits {
  T least, most;
};

// Leaves. A `word` stands for zero ("auto", "none", ...): the number itself is then refused.
Value time(TimePs& target, Limits<TimePs> limits, std::string word = "");
/// The same with a word for another value than zero: `never`, or none at all.
Value time_or(TimePs& target, Limits<TimePs> limits, TimePs special, std::string word);
Value time_or(std::optional<TimePs>& target, Limits<TimePs> limits, std::string word);
Value rate(Rate& target, std::string word = "");
Value size(std::uint64_t& target, Limits<std::uint64_t> limits, std::string word = "");
Value size(std::uint32_t& target, Limits<std::uint64_t> limits, std::string word = "");
Value count(std::uint64_t& target, Limits<std::uint64_t> limits, std::string word = "");
Value count(std::uint32_t& target, Limits<std::uint64_t> limits, std::string word = "");
Value count(std::uint16_t& target, Limits<std::uint64_t> limits);
Value count(std::uint8_t& target, Limits<std::uint64_t> limits);
/// Limits are included, but a `least` of zero only with `zero`.
Value number(double& target, Limits<double> limits, bool zero = false);
Value flag(bool& target);
/// Free text that `check` accepts; `check` returns what is wrong, or nothing.
Value text(std::string& target, std::string accepts, std::function<std::string(const std::string&)> check);

template <class T>
Value choice(T& target, std::vector<std::pair<std::string, T>> words);

/// A list of traffic classes, `[3, 4]`.
Value class_set(std::array<bool, traffic_classes>& target);
/// `{26: 3, 48: 6}`: entries that are given change the default, the others stay.
template <class T, std::size_t n>
Value table(std::array<T, n>& target, std::string index_name, std::string value_name, Limits<std::uint64_t> limits);

Value mapping(Section fields);
/// `make` binds a section to an item; an item that has been read goes to `put`.
template <class Item>
Value list_of(std::function<Section(Item&)> make, std::function<std::vector<Item>()> get,
              std::function<void(Item, const YamlNode&)> put, std::vector<Item> examples);

// Reading and writing.

/// Fills what the section is bound to. Throws ConfigError for keys that are unknown, double or missing, too.
void read_section(const YamlNode& node, const Section& section);
/// The section in block style, `indent` spaces in. `explain`: with help, limits and examples as comments.
std::string write_section(const Section& section, std::size_t indent, bool explain);
/// Dotted paths of all keys, list indices left out: `traffic.constant.load`.
std::vector<std::string> known_keys(const Section& section, const std::string& prefix = "");

/// The scalar behind a key, or a ConfigError that says what would be accepted.
const std::string& scalar_of(const YamlNode& node, const std::string& accepts);
/// Fails with `"what was written" problem; accepted: …`.
[[noreturn]] void refuse(const YamlNode& node, std::string_view problem, std::string_view accepts);
std::string join(const std::vector<std::string>& words);

// Below: the templates.

Value choice_by_index(std::vector<std::string> words, std::function<std::size_t()> get,
                      std::function<void(std::size_t)> put);
Value table_by_index(std::size_t entries, std::string index_name, std::string value_name, Limits<std::uint64_t> limits,
                     std::function<std::uint64_t(std::size_t)> get,
                     std::function<void(std::size_t, std::uint64_t)> put);
void read_items(const YamlNode& node, const std::function<void(const YamlNode&)>& read_item);

template <class T>
Value choice(T& target, std::vector<std::pair<std::string, T>> words) {
  std::vector<std::string> names;
  std::vector<T> values;
  for (auto& [name, value] : words) names.push_back(name), values.push_back(value);
  return choice_by_index(
      names,
      [&target, values] {
        std::size_t i = 0;
        while (i + 1 < values.size() && values[i] != target) ++i;
        return i;
      },
      [&target, values](std::size_t i) { target = values[i]; });
}

template <class T, std::size_t n>
Value table(std::array<T, n>& target, std::string index_name, std::string value_name, Limits<std::uint64_t> limits) {
  return table_by_index(
      n, std::move(index_name), std::move(value_name), limits, [&target](std::size_t i) { return target[i]; },
      [&target](std::size_t i, std::uint64_t value) { target[i] = static_cast<T>(value); });
}

template <class Item>
Value list_of(std::function<Section(Item&)> make, std::function<std::vector<Item>()> get,
              std::function<void(Item, const YamlNode&)> put, std::vector<Item> examples) {
  // Items live on the heap: sections are bound to them by address.
  using Items = std::vector<Item>;
  Value value;
  value.read = [make, put](const YamlNode& node) {
    read_items(node, [&](const YamlNode& item_node) {
      Item item{};
      read_section(item_node, make(item));
      put(std::move(item), item_node);
    });
  };
  const auto bind = [make](Items& items) {
    std::vector<Section> sections;
    for (Item& item : items) sections.push_back(make(item));
    return sections;
  };
  auto shown = std::make_shared<Items>();
  value.items = [bind, get, shown] {
    *shown = get();
    return bind(*shown);
  };
  auto kept = std::make_shared<Items>(std::move(examples));
  value.examples = bind(*kept);
  value.keep = kept;
  return value;
}

}  // namespace weft
