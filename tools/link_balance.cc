// SPDX-License-Identifier: BSD-3-Clause
#include "tools/link_balance.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace weft {
namespace {

/// "leaf0" for leaf0>spine1 (up) and spine1>leaf0.2 (down); empty: no link of that direction.
std::string_view leaf_of_link(std::string_view name, Direction direction) {
  const std::size_t arrow = name.find('>');
  if (arrow == std::string_view::npos) return {};
  const std::string_view from = name.substr(0, arrow), to = name.substr(arrow + 1);
  if (direction == Direction::up) return from.starts_with("leaf") ? from : std::string_view{};
  return to.starts_with("leaf") ? to.substr(0, to.find('.')) : std::string_view{};
}

struct Group {
  double sum = 0, squares = 0, most = 0, links = 0;
  const LinkResult* busiest = nullptr;
};

}  // namespace

std::optional<LinkBalance> link_balance(const std::vector<LinkResult>& links, Direction direction) {
  std::map<std::string_view, Group> groups;
  for (const LinkResult& link : links) {
    const std::string_view leaf = leaf_of_link(link.name, direction);
    if (leaf.empty()) continue;
    Group& group = groups[leaf];
    group.sum += link.load;
    group.squares += link.load * link.load;
    group.links += 1;
    if (group.busiest != nullptr && link.load <= group.most) continue;
    group.most = link.load;
    group.busiest = &link;
  }
  LinkBalance balance;
  double carried = 0;
  for (const auto& [leaf, group] : groups) {
    if (group.sum <= 0) continue;
    const double over_mean = group.most * group.links / group.sum;
    carried += group.sum;
    balance.max_over_mean += group.sum * over_mean;
    balance.jain += group.sum * group.sum * group.sum / (group.links * group.squares);
    if (group.most <= balance.busiest_load) continue;
    balance.busiest = group.busiest->name;
    balance.busiest_load = group.most;
    balance.busiest_over_mean = over_mean;
  }
  if (carried <= 0) return std::nullopt;
  balance.max_over_mean /= carried;
  balance.jain /= carried;
  return balance;
}

}  // namespace weft
