// SPDX-License-Identifier: BSD-3-Clause
// A table of keys at work: reading with its errors, writing, and the reference file.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tools/config_value.h"

namespace weft {
namespace {

constexpr std::size_t width = 120;
constexpr std::size_t comment_column = 36;

/// Letters to insert, drop or replace to come from one word to the other (Levenshtein).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

/// "did you mean sram? accepted: sram, deep, ..."
std::string suggestion(const std::string& key, const Section& section) {
  std::vector<std::string> known;
  for (const Field& field : section) known.push_back(field.key);
  const auto nearest = std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
    return distance(key.substr(0, 64), a) < distance(key.substr(0, 64), b);
  });
  const bool near = distance(key.substr(0, 64), *nearest) <= std::max<std::size_t>(2, nearest->size() / 3);
  return fmt::format("{}accepted: {}", near ? fmt::format("did you mean {}? ", *nearest) : "", join(known));
}

/// Text that wrapped() keeps on one line.
std::string unbroken(std::string text) {
  std::replace(text.begin(), text.end(), ' ', '\x01');
  return text;
}

/// Words of `text` from column `column` on, broken before `width`; further lines begin with `lead`.
std::string wrapped(const std::string& text, std::size_t column, const std::string& lead) {
  std::string out;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    if (!out.empty()) {
      if (column + 1 + end - start > width) {
        out += "\n" + lead;
        column = lead.size();
      } else {
        out += ' ';
        ++column;
      }
    }
    out += text.substr(start, end - start);
    column += end - start;
    start = end + 1;
  }
  std::replace(out.begin(), out.end(), '\x01', ' ');
  return out;
}

/// `{26: 3, 48: 6}` may be broken behind its commas only.
std::string pairs_unbroken(std::string flow) {
  for (std::size_t at = flow.find(": "); at != std::string::npos; at = flow.find(": ", at)) flow[at + 1] = '\x01';
  return flow;
}

/// One key's first line, with its comment behind it where that is wanted.
std::string key_line(const Field& field, const std::string& rest, std::size_t indent, bool explain) {
  std::string line = std::string(indent, ' ') + field.key + ":" + (rest.empty() ? "" : " " + rest);
  if (!explain) return line + "\n";
  const std::string unit = field.value.unit.empty() ? "" : " " + unbroken(fmt::format("[{}]", field.value.unit));
  if (line.size() + 2 <= comment_column) line.resize(comment_column - 2, ' ');
  line += "  # ";
  return line + wrapped(field.help + unit, line.size(), std::string(comment_column, ' ') + "# ") + "\n";
}

/// A block whose first line becomes a list item.
std::string list_item(std::string block, std::size_t indent) {
  block[indent] = '-';
  return block;
}

std::string commented(const std::string& block) {
  std::string out = "#";
  for (std::size_t i = 0; i < block.size(); ++i) {
    out += block[i];
    if (block[i] == '\n' && i + 1 < block.size()) out += '#';
  }
  return out;
}

std::string write_list(const Field& field, std::size_t indent, bool explain) {
  const std::vector<Section> items = field.value.items();
  std::string out = key_line(field, items.empty() ? "[]" : "", indent, explain);
  for (const Section& item : items) out += list_item(write_section(item, indent + 4, explain), indent + 2);
  if (!explain || !items.empty()) return out;
  for (const Section& example : field.value.examples)
    out += commented(list_item(write_section(example, indent + 4, true), indent + 2));
  return out;
}

}  // namespace

void read_section(const YamlNode& node, const Section& section) {
  if (node.kind == YamlNode::Kind::scalar || node.kind == YamlNode::Kind::sequence) {
    std::vector<std::string> known;
    for (const Field& field : section) known.push_back(field.key);
    node.fail("not a mapping; accepted: a mapping with the keys " + join(known));
  }
  for (std::size_t i = 0; i < node.entries.size(); ++i) {
    const YamlEntry& entry = node.entries[i];
    YamlNode at;  // the key's line, not its value's
    at.where = entry.where;
    at.path = entry.value.path;
    const bool known = std::any_of(section.begin(), section.end(), [&](const Field& f) { return f.key == entry.key; });
    if (!known) at.fail("unknown key; " + suggestion(entry.key, section));
    for (std::size_t j = 0; j < i; ++j)
      if (node.entries[j].key == entry.key)
        at.fail(fmt::format("given twice, first at {}; accepted: once", node.entries[j].where));
  }
  for (const Field& field : section) {
    if (const YamlNode* value = node.find(field.key); value != nullptr) {
      field.value.read(*value);
    } else if (field.required) {
      node.fail(fmt::format("{} is missing; accepted: {}", field.key, field.value.accepts));
    }
  }
}

std::string write_section(const Section& section, std::size_t indent, bool explain) {
  std::string out;
  for (const Field& field : section) {
    const Value& value = field.value;
    if (value.items) {
      out += write_list(field, indent, explain);
    } else if (!value.fields.empty()) {
      const std::string block = write_section(value.fields, indent + 2, explain);
      if (!block.empty()) out += key_line(field, "", indent, explain) + block;
    } else if (const auto text = value.write(); text) {
      // A long list goes below its key, broken between its items; scalars that are long stay in one piece.
      const bool flow = text->front() == '[' || text->front() == '{';
      if (flow && indent + field.key.size() + 2 + text->size() > (explain ? 100 : width)) {
        const std::string lead(indent + 2, ' ');
        out += key_line(field, "", indent, explain) + lead + wrapped(pairs_unbroken(*text), lead.size(), lead + " ") +
               "\n";
      } else {
        out += key_line(field, *text, indent, explain);
      }
    }
  }
  return out;
}

std::vector<std::string> known_keys(const Section& section, const std::string& prefix) {
  std::vector<std::string> keys;
  const auto add = [&](const std::string& key) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  };
  for (const Field& field : section) {
    const std::string path = prefix + field.key;
    add(path);
    for (const std::string& key : known_keys(field.value.fields, path + ".")) add(key);
    for (const Section& example : field.value.examples)
      for (const std::string& key : known_keys(example, path + ".")) add(key);
  }
  return keys;
}

}  // namespace weft
