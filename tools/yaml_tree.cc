// SPDX-License-Identifier: BSD-3-Clause
#include "tools/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include "tools/config.h"

namespace weft {
namespace {

constexpr std::size_t nodes_max = 200'000;  // aliases of aliases can name far more than any config holds
constexpr std::size_t path_parts_max = 16;

/// Names the place of a mark: file and line, or the override that the text came from.
struct Place {
  std::string name;
  bool overridden = false;
  [[nodiscard]] std::string at(const YAML::Mark& mark) const {
    return overridden ? name : fmt::format("{}:{}", name, mark.line + 1);
  }
};

class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const Place& place) : place_(place) {}

  YamlNode root;

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(leaf(YamlNode::Kind::null, mark), mark, anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode node = leaf(YamlNode::Kind::scalar, mark);
    node.scalar = value;
    add(std::move(node), mark, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      YamlNode node = leaf(YamlNode::Kind::null, mark);
      node.fail("an alias inside what it stands for; write the value out");
    }
    count(size_of(found->second), mark);
    YamlNode copy = found->second;
    add(std::move(copy), mark, 0);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open_.push_back({leaf(YamlNode::Kind::sequence, mark), mark, anchor, std::nullopt});
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open_.push_back({leaf(YamlNode::Kind::mapping, mark), mark, anchor, std::nullopt});
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    YamlNode node;
    YAML::Mark mark;
    YAML::anchor_t anchor;
    std::optional<YamlEntry> key;  // of a mapping, while its value is awaited
  };

  YamlNode leaf(YamlNode::Kind kind, const YAML::Mark& mark) {
    count(1, mark);
    YamlNode node;
    node.kind = kind;
    node.where = place_.at(mark);
    node.overridden = place_.overridden;
    return node;
  }

  void count(std::size_t nodes, const YAML::Mark& mark) {
    count_ += nodes;
    if (count_ > nodes_max)
      throw ConfigError(
          fmt::format("{}: more than {} values, aliases counted; a config has fewer", place_.at(mark), nodes_max));
  }

  static std::size_t size_of(const YamlNode& node) {
    std::size_t size = 1;
    for (const YamlNode& item : node.items) size += size_of(item);
    for (const YamlEntry& entry : node.entries) size += size_of(entry.value);
    return size;
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done.node), done.mark, done.anchor);
  }

  void add(YamlNode node, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_[anchor] = node;
    if (open_.empty()) {
      root = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == YamlNode::Kind::sequence) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.key) {
      if (node.kind != YamlNode::Kind::scalar)
        throw ConfigError(fmt::format("{}: a key must be a plain word", place_.at(mark)));
      parent.key = YamlEntry{node.scalar, node.where, {}};
    } else {
      // An empty value is marked where the next thing starts: its key's line is the one that people look for.
      if (node.kind != YamlNode::Kind::scalar && node.kind != YamlNode::Kind::sequence) node.where = parent.key->where;
      parent.key->value = std::move(node);
      parent.node.entries.push_back(std::move(*parent.key));
      parent.key.reset();
    }
  }

  const Place& place_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, YamlNode> anchors_;
  std::size_t count_ = 0;
};

YamlNode parse_document(const std::string& text, const Place& place) {
  TreeBuilder builder(place);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    if (parser.HandleNextDocument(builder)) {
      TreeBuilder second(place);
      if (parser.HandleNextDocument(second))
        throw ConfigError(fmt::format("{}: a second document; a config is one document", second.root.where));
    } else {
      builder.root.where = place.at(YAML::Mark());
      builder.root.overridden = place.overridden;
    }
  } catch (const YAML::Exception& error) {
    std::string what = error.msg;
    std::replace(what.begin(), what.end(), '\n', ' ');
    throw ConfigError(fmt::format("{}: not YAML: {}", place.at(error.mark), what));
  }
  return std::move(builder.root);
}

void name_paths(YamlNode& node, const std::string& path) {
  node.path = path;
  const std::string prefix = path.empty() ? "" : path + ".";
  for (std::size_t i = 0; i < node.items.size(); ++i) name_paths(node.items[i], prefix + std::to_string(i));
  for (YamlEntry& entry : node.entries) name_paths(entry.value, prefix + entry.key);
}

void apply(YamlNode& root, const std::string& override_text) {
  const Place place{"--set " + override_text, true};
  const auto refuse = [&](std::string_view problem) { throw ConfigError(fmt::format("{}: {}", place.name, problem)); };
  const std::size_t equals = override_text.find('=');
  if (equals == std::string::npos || equals == 0) refuse("not a setting; accepted: key.path=value");

  YamlNode* node = &root;
  std::string path;
  std::string_view rest = std::string_view(override_text).substr(0, equals);
  for (std::size_t parts = 0; !rest.empty(); ++parts) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    const std::string key(rest.substr(0, dot));
    if (key.empty() || rest.ends_with('.') || parts == path_parts_max) refuse("not a key; accepted: key.path=value");
    rest.remove_prefix(std::min(dot + 1, rest.size()));

    if (node->kind == YamlNode::Kind::sequence) {
      const bool number = key.size() < 9 && key.find_first_not_of("0123456789") == std::string::npos;
      const std::size_t index = number ? std::stoul(key) : node->items.size();
      if (index >= node->items.size())
        refuse(fmt::format("{}: no item {}; accepted: {}", path, key,
                           node->items.empty() ? "nothing, the list is empty: set it whole"
                                               : fmt::format("0 to {}", node->items.size() - 1)));
      node = &node->items[index];
    } else if (node->kind == YamlNode::Kind::scalar) {
      refuse(fmt::format("{}: has the value \"{}\" and no keys below", path, node->scalar));
    } else {
      if (node->kind == YamlNode::Kind::null) {
        node->kind = YamlNode::Kind::mapping;
        node->where = place.name;
        node->overridden = true;
      }
      auto entry =
          std::find_if(node->entries.begin(), node->entries.end(), [&](const auto& e) { return e.key == key; });
      if (entry == node->entries.end()) entry = node->entries.insert(entry, YamlEntry{key, place.name, {}});
      node = &entry->value;
    }
    path += (path.empty() ? "" : ".") + key;
  }
  *node = parse_document(override_text.substr(equals + 1), place);
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  for (const YamlEntry& entry : entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

const YamlNode& YamlNode::nearest(std::string_view dotted) const {
  const YamlNode* node = this;
  while (!dotted.empty()) {
    const std::size_t dot = std::min(dotted.find('.'), dotted.size());
    const std::string_view key = dotted.substr(0, dot);
    dotted.remove_prefix(std::min(dot + 1, dotted.size()));
    const YamlNode* next = node->find(key);
    for (std::size_t i = 0; next == nullptr && i < node->items.size(); ++i)
      if (std::to_string(i) == key) next = &node->items[i];
    if (next == nullptr) break;
    node = next;
  }
  return *node;
}

void YamlNode::fail(std::string_view problem) const {
  throw ConfigError(path.empty() ? fmt::format("{}: {}", where, problem)
                                 : fmt::format("{}: {}: {}", where, path, problem));
}

YamlNode parse_yaml(const std::string& text, const std::string& name, const std::vector<std::string>& overrides) {
  YamlNode root = parse_document(text, Place{name});
  for (const std::string& setting : overrides) apply(root, setting);
  name_paths(root, "");
  return root;
}

std::string yaml_scalar(const std::string& text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '/' || c == ':' || c == '-';
  };
  const bool word = !text.empty() && std::all_of(text.begin(), text.end(), plain) && text.front() != '-' &&
                    text.front() != ':' && text.back() != ':' && text != "null" && text != "Null" && text != "NULL" &&
                    text.find("...") == std::string::npos;
  if (word) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    else
      quoted += c;
  }
  return quoted + '"';
}

}  // namespace weft
