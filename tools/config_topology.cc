// SPDX-License-Identifier: BSD-3-Clause
#include "tools/config_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace weft {
namespace {

// Far beyond what fits one machine, and small enough for every index and size to fit its type.
constexpr std::uint64_t switches_max = 4096, hosts_per_leaf_max = 4096, parallel_links_max = 64;
constexpr std::uint64_t host_ports_max = 131'070, fabric_links_max = 1u << 20;
constexpr Limits<TimePs> host_delay{0, 1_s};
// Windows are as long as the shortest fabric link: no delay would mean no window.
constexpr Limits<TimePs> fabric_delay{1_ns, 1_s};

/// A number behind a word, "leaf12": its value if it is below `end`, moving `text` behind it.
std::optional<std::uint32_t> take_index(std::string_view& text, std::string_view word, std::uint64_t end) {
  if (!text.starts_with(word)) return std::nullopt;
  text.remove_prefix(word.size());
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  if (digits == 0 || digits > 9 || (digits > 1 && text[0] == '0')) return std::nullopt;
  const std::uint64_t value = parse_integer(text.substr(0, digits));
  text.remove_prefix(digits);
  if (value >= end) return std::nullopt;
  return static_cast<std::uint32_t>(value);
}

std::optional<std::uint32_t> find_port(const Topology& topology, std::string_view text) {
  std::string_view rest = text;
  if (const auto number = take_index(rest, "", topology.host_ports()); number && rest.empty()) return number;
  const auto leaf = take_index(text, "leaf", topology.leaves);
  if (!leaf) return std::nullopt;
  const auto local = take_index(text, ":p", topology.hosts_per_leaf);
  if (!local || !text.empty()) return std::nullopt;
  return *leaf * topology.hosts_per_leaf + *local;
}

/// All links of that name; none: there is no such link.
std::vector<std::uint32_t> find_links(const Topology& topology, std::string_view text) {
  std::vector<std::uint32_t> links;
  const auto leaf = take_index(text, "leaf", topology.leaves);
  if (!leaf) return links;
  const auto spine = take_index(text, "-spine", topology.spines);
  if (!spine) return links;
  if (text.empty()) {
    for (std::uint32_t k = 0; k < topology.parallel_links; ++k) links.push_back(topology.link_index(*leaf, *spine, k));
  } else if (const auto parallel = take_index(text, ".", topology.parallel_links); parallel && text.empty()) {
    links.push_back(topology.link_index(*leaf, *spine, *parallel));
  }
  return links;
}

std::string port_accepts(const Topology& topology) {
  return fmt::format("a host port, leaf0:p0 to {} or 0 to {}", port_name(topology, topology.host_ports() - 1),
                     topology.host_ports() - 1);
}

std::string link_accepts(const Topology& topology) {
  if (topology.fabric_links.empty()) return "nothing, this topology has no fabric links";
  return fmt::format("a fabric link, leaf0-spine0 to leaf{}-spine{}{}", topology.leaves - 1, topology.spines - 1,
                     topology.parallel_links > 1
                         ? fmt::format(", or one of its parallel links, .0 to .{}", topology.parallel_links - 1)
                         : "");
}

std::uint32_t read_port(const YamlNode& node, const Topology& topology) {
  const std::string accepts = port_accepts(topology);
  const auto port = find_port(topology, scalar_of(node, accepts));
  if (!port) refuse(node, "is no host port", accepts);
  return *port;
}

std::vector<std::uint32_t> read_links(const YamlNode& node, const Topology& topology) {
  const std::string accepts = link_accepts(topology);
  auto links = find_links(topology, scalar_of(node, accepts));
  if (links.empty()) refuse(node, "is no fabric link", accepts);
  return links;
}

/// A list of names or a single one, or the word for the empty list.
Value name_list(std::vector<std::uint32_t>& target, std::string word, std::string unit,
                std::function<std::string()> accepts,
                std::function<std::vector<std::uint32_t>(const YamlNode&)> read_one,
                std::function<std::string(std::uint32_t)> name) {
  Value value;
  value.accepts = unit;
  value.unit = word.empty() ? unit : word + " | " + unit;
  value.read = [=, &target](const YamlNode& node) {
    std::vector<std::uint32_t> found;
    const auto take = [&](const YamlNode& item) {
      for (const std::uint32_t index : read_one(item)) {
        if (std::find(found.begin(), found.end(), index) != found.end()) refuse(item, "is given twice", "each once");
        found.push_back(index);
      }
    };
    if (node.kind == YamlNode::Kind::sequence) {
      for (const YamlNode& item : node.items) take(item);
      if (found.empty())
        node.fail(fmt::format("an empty list; accepted: {}{}", word.empty() ? "" : word + ", or ", accepts()));
    } else if (word.empty() || node.scalar != word) {
      take(node);
    }
    target = std::move(found);
  };
  value.write = [&target, word, name]() -> std::string {
    if (target.empty()) return word;
    std::vector<std::string> names;
    for (const std::uint32_t index : target) names.push_back(name(index));
    return names.size() == 1 ? names.front() : "[" + join(names) + "]";
  };
  return value;
}

/// One entry of `links:`: a host link or a fabric link that differs.
struct LinkKeys {
  std::string at;
  LinkParams params{Rate{}, never};  // no rate, never: as the others
};

/// The cables that a name stands for, host links and fabric links alike.
std::vector<LinkParams*> find_cables(Topology& topology, std::string_view name) {
  std::vector<LinkParams*> cables;
  if (const auto port = find_port(topology, name); port && name.find(':') != name.npos)
    cables.push_back(&topology.host_links[*port]);
  for (const std::uint32_t link : find_links(topology, name)) cables.push_back(&topology.fabric_links[link].params);
  return cables;
}

/// What most of them have, so that few are left to be listed one by one.
LinkParams most_common(const std::vector<LinkParams>& links, const LinkParams& otherwise) {
  std::map<std::pair<std::uint64_t, TimePs>, std::size_t> counts;
  for (const LinkParams& link : links) ++counts[{link.rate.bits_per_s, link.delay}];
  LinkParams best = otherwise;
  std::size_t most = 0;
  for (const auto& [params, count] : counts)
    if (count > most) best = {Rate{params.first}, params.second}, most = count;
  return best;
}

/// The keys that would give this topology, but for the links that differ.
TopologyKeys keys_of(const Topology& topology) {
  TopologyKeys keys;
  if (topology.leaves == 0) return keys;
  keys.leaves = topology.leaves;
  keys.spines = topology.spines;
  keys.hosts_per_leaf = topology.hosts_per_leaf;
  keys.count = topology.parallel_links;
  keys.host_link = most_common(topology.host_links, keys.host_link);
  std::vector<LinkParams> fabric;
  for (const FabricLink& link : topology.fabric_links) fabric.push_back(link.params);
  keys.fabric_link = most_common(fabric, keys.fabric_link);
  return keys;
}

std::vector<LinkKeys> differing_links(const Topology& topology) {
  const TopologyKeys keys = keys_of(topology);
  std::vector<LinkKeys> links;
  for (std::uint32_t port = 0; port < topology.host_links.size(); ++port)
    if (topology.host_links[port] != keys.host_link)
      links.push_back({port_name(topology, port), topology.host_links[port]});
  for (std::uint32_t link = 0; link < topology.fabric_links.size(); ++link)
    if (topology.fabric_links[link].params != keys.fabric_link)
      links.push_back({link_name(topology, link), topology.fabric_links[link].params});
  return links;
}

Section shape_section(TopologyKeys& keys) {
  return {
      {"leaves", count(keys.leaves, {1, switches_max}), "leaf switches"},
      {"spines", count(keys.spines, {0, switches_max}), "spine switches; 0 only with a single leaf"},
      {"hosts_per_leaf", count(keys.hosts_per_leaf, {1, hosts_per_leaf_max}), "host ports of each leaf"},
      {"host_link",
       mapping({{"rate", rate(keys.host_link.rate), "of the link between a host and its leaf"},
                {"delay", time(keys.host_link.delay, host_delay), "propagation, one way"}}),
       "every host link, unless `links` says otherwise"},
      {"fabric_link",
       mapping({{"rate", rate(keys.fabric_link.rate), "of one link between a leaf and a spine"},
                {"delay", time(keys.fabric_link.delay, fabric_delay),
                 "propagation, one way; the least of them sets the window"},
                {"count", count(keys.count, {1, parallel_links_max}), "parallel links of each leaf/spine pair"}}),
       "every fabric link, unless `links` says otherwise"},
  };
}

Section link_section(LinkKeys& keys) {
  return {
      {"at",
       text(keys.at, "a link: leaf0-spine1, leaf0-spine1.0 (of several in parallel) or leaf0:p3",
            [](const std::string&) { return ""; }),
       "the link that differs", true},
      {"rate", rate(keys.params.rate, "same"), "its rate; same: as the others'"},
      {"delay", time_or(keys.params.delay, host_delay, never, "same"), "its delay; same: as the others'"},
  };
}

/// Applies one entry of `links:`.
void set_link(Topology& topology, std::set<LinkParams*>& set, const LinkKeys& keys, const YamlNode& node) {
  const YamlNode& at = *node.find("at");
  const auto cables = find_cables(topology, keys.at);
  if (cables.empty())
    refuse(at, "is no link", fmt::format("{}, or {}", link_accepts(topology), port_accepts(topology)));
  for (LinkParams* cable : cables) {
    if (!set.insert(cable).second) refuse(at, "is given twice", "each link once");
    if (keys.params.rate.bits_per_s != 0) cable->rate = keys.params.rate;
    if (keys.params.delay != never) cable->delay = keys.params.delay;
  }
  const bool fabric = keys.at.find(':') == std::string::npos;
  if (fabric && keys.params.delay < fabric_delay.least)
    node.nearest("delay").fail(
        fmt::format("too short for a fabric link; accepted: {} or more", format_time(fabric_delay.least)));
}

void check_shape(const TopologyKeys& keys, const YamlNode& node) {
  if (keys.spines == 0 && keys.leaves > 1)
    node.nearest("spines").fail(
        fmt::format("0 spines cannot join {} leaves; accepted: 1 or more, or a single leaf", keys.leaves));
  if (std::uint64_t{keys.leaves} * keys.hosts_per_leaf > host_ports_max)
    node.nearest("hosts_per_leaf")
        .fail(fmt::format("{} host ports in all; accepted: up to {}", std::uint64_t{keys.leaves} * keys.hosts_per_leaf,
                          host_ports_max));
  const std::uint64_t links = std::uint64_t{keys.leaves} * keys.spines * keys.count;
  if (links > fabric_links_max)
    node.nearest("fabric_link.count")
        .fail(fmt::format("{} fabric links in all; accepted: up to {}", links, fabric_links_max));
}

}  // namespace

Topology make_topology(const TopologyKeys& keys) {
  Topology topology;
  topology.leaves = keys.leaves;
  topology.spines = keys.spines;
  topology.hosts_per_leaf = keys.hosts_per_leaf;
  topology.parallel_links = keys.count;
  topology.host_links.assign(std::size_t{keys.leaves} * keys.hosts_per_leaf, keys.host_link);
  topology.fabric_links.reserve(std::size_t{keys.leaves} * keys.spines * keys.count);
  for (std::uint32_t leaf = 0; leaf < keys.leaves; ++leaf)
    for (std::uint32_t spine = 0; spine < keys.spines; ++spine)
      for (std::uint32_t k = 0; k < keys.count; ++k)
        topology.fabric_links.push_back({leaf, spine, k, keys.fabric_link});
  return topology;
}

Value topology_value(Topology& topology) {
  auto keys = std::make_shared<TopologyKeys>(keys_of(topology));
  auto set = std::make_shared<std::set<LinkParams*>>();
  Section section = shape_section(*keys);
  // The shape is read first and built; then each link that differs finds its place.
  Field links{
      "links",
      list_of<LinkKeys>(
          link_section, [&topology] { return differing_links(topology); },
          [&topology, set](const LinkKeys& link, const YamlNode& node) { set_link(topology, *set, link, node); },
          {{"leaf0-spine1", {Rate{100'000'000'000}, 500_ns}}}),
      "links that differ from the others"};
  const auto read_links_of = links.value.read;
  links.value.read = [&topology, keys, set, read_links_of](const YamlNode& node) {
    set->clear();
    read_links_of(node);
  };
  section.push_back(links);

  Value value;
  value.fields = section;
  value.keep = keys;
  value.read = [&topology, keys, section, links](const YamlNode& node) {
    Section shape = section;
    shape.back().value.read = [](const YamlNode&) {};
    read_section(node, shape);
    check_shape(*keys, node);
    topology = make_topology(*keys);
    if (const YamlNode* list = node.find("links"); list != nullptr) links.value.read(*list);
  };
  return value;
}

Value port(std::uint32_t& target, const Topology& topology) {
  Value value;
  value.accepts = value.unit = "host port, leaf0:p1 or its number";
  value.read = [&target, &topology](const YamlNode& node) { target = read_port(node, topology); };
  value.write = [&target, &topology] { return port_name(topology, target); };
  return value;
}

Value port_list(std::vector<std::uint32_t>& target, const Topology& topology, std::string word) {
  return name_list(
      target, std::move(word), "list of host ports", [&topology] { return port_accepts(topology); },
      [&topology](const YamlNode& node) { return std::vector{read_port(node, topology)}; },
      [&topology](std::uint32_t port) { return port_name(topology, port); });
}

Value link_list(std::vector<std::uint32_t>& target, const Topology& topology, std::string word) {
  return name_list(
      target, std::move(word), "list of fabric links, leaf0-spine1", [&topology] { return link_accepts(topology); },
      [&topology](const YamlNode& node) { return read_links(node, topology); },
      [&topology](std::uint32_t link) { return link_name(topology, link); });
}

}  // namespace weft
