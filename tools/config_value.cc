// SPDX-License-Identifier: BSD-3-Clause
#include "tools/config_value.h"

#include <fmt/format.h>

#include <limits>

namespace weft {
namespace {

/// "auto, or " in front of what a number may be.
std::string or_word(const std::string& word, const std::string& accepts) {
  return word.empty() ? accepts : word + ", or " + accepts;
}

/// A leaf that is one quantity: how to read, write and limit it, and the word that stands for one special value.
template <class T>
struct Quantity {
  std::string name;  // "time"
  std::string_view examples;
  T (*parse)(std::string_view);
  std::string (*format)(T);
  Limits<T> limits;
  std::string word;
  T special;

  [[nodiscard]] std::string range() const { return fmt::format("{} to {}", format(limits.least), format(limits.most)); }

  [[nodiscard]] T read(const YamlNode& node, const std::string& accepts) const {
    const std::string& text = scalar_of(node, accepts);
    if (!word.empty() && text == word) return special;
    T value{};
    try {
      value = parse(text);
    } catch (const UnitError& error) {
      refuse(node, error.what(), accepts);
    }
    if (value < limits.least) refuse(node, "is too small", accepts);
    if (value > limits.most) refuse(node, "is too large", accepts);
    return value;
  }

  [[nodiscard]] Value bind(std::function<T()> get, std::function<void(T)> put) const {
    Value value;
    value.accepts = or_word(word, fmt::format("{}, from {}", examples, range()));
    value.unit = fmt::format("{}{}, {}", word.empty() ? "" : word + " | ", name, range());
    value.read = [*this, put, accepts = value.accepts](const YamlNode& node) { put(read(node, accepts)); };
    value.write = [*this, get] {
      const T now = get();
      return !word.empty() && now == special ? word : format(now);
    };
    return value;
  }
};

template <class T>
Value bind_field(const Quantity<std::uint64_t>& quantity, T& target) {
  return quantity.bind([&target] { return std::uint64_t{target}; },
                       [&target](std::uint64_t value) { target = static_cast<T>(value); });
}

std::string format_integer(std::uint64_t value) { return std::to_string(value); }
std::uint64_t parse_rate_bits(std::string_view text) { return parse_rate(text).bits_per_s; }
std::string format_rate_bits(std::uint64_t bits) { return format_rate({bits}); }

using Integer = Quantity<std::uint64_t>;

Integer times(Limits<TimePs> limits, std::string word, TimePs special) {
  return {"time", time_examples, parse_time, format_time, limits, std::move(word), special};
}

/// A word stands for zero, and then zero itself is no longer a number of its own.
Limits<std::uint64_t> but_zero(Limits<std::uint64_t> limits, const std::string& word) {
  if (!word.empty() && limits.least == 0) limits.least = 1;
  return limits;
}

Integer sizes(Limits<std::uint64_t> limits, std::string word) {
  return {"size", size_examples, parse_size, format_size, but_zero(limits, word), std::move(word), 0};
}

Integer counts(Limits<std::uint64_t> limits, std::string word) {
  return {"count", "a whole number", parse_integer, format_integer, but_zero(limits, word), std::move(word), 0};
}

std::uint8_t class_of(const YamlNode& node) {
  static const std::string accepts = "a traffic class, 0 to 7";
  const std::string& text = scalar_of(node, accepts);
  if (text.size() != 1 || text[0] < '0' || text[0] >= '0' + static_cast<int>(traffic_classes))
    refuse(node, "is not a traffic class", accepts);
  return static_cast<std::uint8_t>(text[0] - '0');
}

}  // namespace

void refuse(const YamlNode& node, std::string_view problem, std::string_view accepts) {
  node.fail(fmt::format("\"{}\" {}; accepted: {}", node.scalar.substr(0, 60), problem, accepts));
}

const std::string& scalar_of(const YamlNode& node, const std::string& accepts) {
  static constexpr std::string_view kinds[] = {"no value", "", "a list", "a mapping"};
  if (node.kind != YamlNode::Kind::scalar)
    node.fail(
        fmt::format("{} where a single value belongs; accepted: {}", kinds[static_cast<int>(node.kind)], accepts));
  return node.scalar;
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) text += (i == 0 ? "" : ", ") + words[i];
  return text;
}

Value time(TimePs& target, Limits<TimePs> limits, std::string word) {
  return bind_field(times(but_zero(limits, word), word, 0), target);
}

Value time_or(TimePs& target, Limits<TimePs> limits, TimePs special, std::string word) {
  return bind_field(times(limits, std::move(word), special), target);
}

Value time_or(std::optional<TimePs>& target, Limits<TimePs> limits, std::string word) {
  return times(limits, std::move(word), never)
      .bind([&target] { return target.value_or(never); },
            [&target](TimePs value) { target = value == never ? std::nullopt : std::optional(value); });
}

Value rate(Rate& target, std::string word) {
  // Below 1 kb/s a frame lasts longer than runs do; above 8 Tb/s a byte is shorter than the clock's picosecond.
  const Integer quantity{
      "rate", rate_examples, parse_rate_bits, format_rate_bits, {1'000, 8'000'000'000'000}, std::move(word), 0};
  return quantity.bind([&target] { return target.bits_per_s; }, [&target](std::uint64_t bits) { target = {bits}; });
}

Value size(std::uint64_t& target, Limits<std::uint64_t> limits, std::string word) {
  return bind_field(sizes(limits, std::move(word)), target);
}
Value size(std::uint32_t& target, Limits<std::uint64_t> limits, std::string word) {
  return bind_field(sizes(limits, std::move(word)), target);
}
Value count(std::uint64_t& target, Limits<std::uint64_t> limits, std::string word) {
  return bind_field(counts(limits, std::move(word)), target);
}
Value count(std::uint32_t& target, Limits<std::uint64_t> limits, std::string word) {
  return bind_field(counts(limits, std::move(word)), target);
}
Value count(std::uint16_t& target, Limits<std::uint64_t> limits) { return bind_field(counts(limits, ""), target); }
Value count(std::uint8_t& target, Limits<std::uint64_t> limits) { return bind_field(counts(limits, ""), target); }

Value number(double& target, Limits<double> limits, bool zero) {
  const bool open = limits.least == 0 && !zero;
  const std::string range = open ? fmt::format("above 0, at most {}", format_number(limits.most))
                                 : fmt::format("{} to {}", format_number(limits.least), format_number(limits.most));
  // The least double is the open end: no number written in a config is smaller and not zero.
  const double least = open ? std::numeric_limits<double>::min() : limits.least;
  Quantity<double> quantity{"number", number_examples, parse_number, format_number, {least, limits.most}, "", 0};
  Value value = quantity.bind([&target] { return target; }, [&target](double v) { target = v; });
  value.accepts = fmt::format("{}, {}", number_examples, range);
  value.unit = "number, " + range;
  value.read = [&target, quantity, accepts = value.accepts](const YamlNode& node) {
    target = quantity.read(node, accepts) + 0.0;  // -0 becomes 0
  };
  return value;
}

Value flag(bool& target) { return choice<bool>(target, {{"false", false}, {"true", true}}); }

Value text(std::string& target, std::string accepts, std::function<std::string(const std::string&)> check) {
  Value value;
  value.accepts = accepts;
  value.unit = accepts;
  value.read = [&target, accepts, check](const YamlNode& node) {
    // An empty string may be allowed, but not a key with nothing behind it.
    const std::string& written = scalar_of(node, accepts);
    const std::string problem = check(written);
    if (!problem.empty()) refuse(node, problem, accepts);
    target = written;
  };
  value.write = [&target] { return yaml_scalar(target); };
  return value;
}

Value choice_by_index(std::vector<std::string> words, std::function<std::size_t()> get,
                      std::function<void(std::size_t)> put) {
  Value value;
  for (const std::string& word : words) value.accepts += (value.accepts.empty() ? "" : " | ") + word;
  value.unit = value.accepts;
  value.read = [words, put, accepts = value.accepts](const YamlNode& node) {
    const std::string& text = scalar_of(node, accepts);
    for (std::size_t i = 0; i < words.size(); ++i)
      if (text == words[i]) return put(i);
    refuse(node, "is not known here", accepts);
  };
  value.write = [words, get] { return words[get()]; };
  return value;
}

Value class_set(std::array<bool, traffic_classes>& target) {
  Value value;
  value.accepts = "a list of traffic classes such as [3, 4]";
  value.unit = "list of classes";
  value.read = [&target, accepts = value.accepts](const YamlNode& node) {
    if (node.kind != YamlNode::Kind::sequence) node.fail("not a list; accepted: " + accepts);
    target = {};
    for (const YamlNode& item : node.items) target[class_of(item)] = true;
  };
  value.write = [&target] {
    std::vector<std::string> classes;
    for (std::size_t i = 0; i < target.size(); ++i)
      if (target[i]) classes.push_back(std::to_string(i));
    return "[" + join(classes) + "]";
  };
  return value;
}

Value table_by_index(std::size_t entries, std::string index_name, std::string value_name, Limits<std::uint64_t> limits,
                     std::function<std::uint64_t(std::size_t)> get,
                     std::function<void(std::size_t, std::uint64_t)> put) {
  const std::string keys = fmt::format("{} 0 to {}", index_name, entries - 1);
  const std::string values = fmt::format("{} {} to {}", value_name, limits.least, limits.most);
  Value value;
  value.accepts = fmt::format("a mapping of {} to {}", keys, values);
  value.unit = fmt::format("{}: {}", keys, values);
  value.read = [=, accepts = value.accepts](const YamlNode& node) {
    if (node.kind == YamlNode::Kind::null) return;
    if (node.kind != YamlNode::Kind::mapping) node.fail("not a mapping; accepted: " + accepts);
    std::vector<bool> seen(entries);
    for (const YamlEntry& entry : node.entries) {
      YamlNode key;
      key.where = entry.where;
      key.path = entry.value.path;
      std::uint64_t index = entries;
      try {
        index = parse_integer(entry.key);
      } catch (const UnitError&) {  // stays out of range
      }
      if (index >= entries) key.fail(fmt::format("not one of {}; accepted: {}", keys, accepts));
      if (seen[index]) key.fail("given twice; accepted: once");
      seen[index] = true;
      put(index, counts(limits, "").read(entry.value, values));
    }
  };
  value.write = [entries, get] {
    std::vector<std::string> pairs;
    for (std::size_t i = 0; i < entries; ++i) pairs.push_back(fmt::format("{}: {}", i, get(i)));
    return "{" + join(pairs) + "}";
  };
  return value;
}

Value mapping(Section fields) {
  Value value;
  value.fields = fields;
  value.read = [fields = std::move(fields)](const YamlNode& node) { read_section(node, fields); };
  return value;
}

void read_items(const YamlNode& node, const std::function<void(const YamlNode&)>& read_item) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return;
    case YamlNode::Kind::scalar:
      refuse(node, "is not a list", "a list of mappings, or one mapping");
    case YamlNode::Kind::mapping:
      return read_item(node);
    case YamlNode::Kind::sequence:
      for (const YamlNode& item : node.items) read_item(item);
  }
}

}  // namespace weft
