// SPDX-License-Identifier: BSD-3-Clause
#include "tools/fabric_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "tools/commands.h"

namespace weft {
namespace {

constexpr std::array<std::string_view, 4> load_balances{"ecmp", "flowlet", "adaptive", "spray"};
constexpr std::string_view accepted =
    "voq, ethernet, ethernet/ecmp, ethernet/flowlet, ethernet/adaptive, ethernet/spray";

FabricChoice choice_of(const std::string& name) {
  FabricChoice choice;
  choice.name = choice.folder = name;
  const std::size_t slash = name.find('/');
  const std::string fabric = name.substr(0, slash);
  if (fabric != "voq" && fabric != "ethernet")
    throw UsageError(fmt::format("--fabrics: '{}' is no fabric; accepted: {}", name, accepted));
  choice.overrides.push_back("fabric=" + fabric);
  if (slash == std::string::npos) return choice;
  const std::string balance = name.substr(slash + 1);
  if (fabric == "voq")
    throw UsageError(fmt::format("--fabrics: '{}': voq sprays cells and has no other choice; accepted: voq", name));
  if (std::ranges::find(load_balances, balance) == load_balances.end())
    throw UsageError(fmt::format("--fabrics: '{}' is no load balancing of ethernet; accepted: {}", name, accepted));
  choice.overrides.push_back("ethernet.load_balance=" + balance);
  choice.folder[slash] = '-';
  return choice;
}

std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

}  // namespace

std::vector<std::string> unmarked_voq(const std::string& config, const std::vector<std::string>& overrides) {
  const Config as_ethernet = load_config(config, joined(overrides, {"fabric=ethernet"}));
  const auto& marked = as_ethernet.classes.ecn;
  if (as_ethernet.voq.ecn.kmax_bytes != 0 || std::ranges::find(marked, true) == marked.end()) return {};
  return {"classes.ecn=[]"};
}

std::vector<FabricChoice> read_fabrics(const std::vector<std::string>& names) {
  std::vector<FabricChoice> choices;
  for (const std::string& name : names) {
    const bool twice = std::ranges::any_of(choices, [&](const FabricChoice& c) { return c.name == name; });
    if (twice) throw UsageError(fmt::format("--fabrics: '{}' stands there twice; each fabric once", name));
    choices.push_back(choice_of(name));
  }
  if (choices.empty()) throw UsageError(fmt::format("--fabrics: names none; accepted: {}", accepted));
  return choices;
}

std::vector<FabricChoice> choose_fabrics(const std::vector<std::string>& names, const std::string& config,
                                         const std::vector<std::string>& overrides) {
  std::vector<FabricChoice> choices = read_fabrics(names);
  for (FabricChoice& choice : choices) {
    if (choice.name == "voq") {
      const std::vector<std::string> unmarked = unmarked_voq(config, overrides);
      choice.overrides.insert(choice.overrides.end(), unmarked.begin(), unmarked.end());
      if (!unmarked.empty()) choice.notes.emplace_back("voq: marks no frame, since voq.ecn has no thresholds");
    }
    load_config(config, joined(overrides, choice.overrides));
  }
  return choices;
}

}  // namespace weft
