// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "tools/commands.h"
#include "tools/comparison.h"
#include "tools/config.h"
#include "tools/fabric_choice.h"
#include "tools/result_folder.h"
#include "tools/version.h"

namespace weft {
namespace {

constexpr std::size_t runs_max = 100'000, slug_max = 80, digest_digits = 16;

/// Columns of figures: their name, and where metrics_of() has them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 25> columns{{
    {"offered", "/frames/offered"},
    {"delivered", "/frames/delivered"},
    {"dropped", "/frames/dropped"},
    {"in_flight", "/frames/in_flight"},
    {"out_of_order", "/out_of_order"},
    {"offered_gbps", "/throughput/offered_gbps"},
    {"goodput_gbps", "/throughput/goodput_gbps"},
    {"latency_min_ns", "/latency_ns/min"},
    {"latency_p50_ns", "/latency_ns/p50"},
    {"latency_p99_ns", "/latency_ns/p99"},
    {"latency_p999_ns", "/latency_ns/p999"},
    {"latency_max_ns", "/latency_ns/max"},
    {"latency_mean_ns", "/latency_ns/mean"},
    {"last_delivered_ns", "/completion/last_delivered_ns"},
    {"flow_p50_ns", "/completion/flow_p50_ns"},
    {"flow_max_ns", "/completion/flow_max_ns"},
    {"buffer_needed_bytes", "/buffer_needed_bytes"},
    {"switch_mean_bytes", "/queues/switch_mean_bytes"},
    {"all_mean_bytes", "/queues/all_mean_bytes"},
    {"xoff_sent", "/pfc/xoff_sent"},
    {"hosts_paused_ns", "/pfc/hosts_paused_ns"},
    {"fabric_links_paused_ns", "/pfc/fabric_links_paused_ns"},
    {"spread_hops", "/pfc/spread_hops"},
    {"hold_backs", "/hold_backs"},
    {"ecn_marked", "/ecn_marked"},
}};

/// As RFC 4180 wants it.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

/// FNV-1a, 64 bits.
std::uint64_t digest(const std::string& text) {
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325;
  for (const char c : text) hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100'0000'01b3;
  return hash;
}

/// What may stand in a folder's name.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) out += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' ? c : '_';
  return out;
}

void name_folder(SweepRun& run, const std::vector<SweepKey>& keys, const Config& config, const std::string& more) {
  std::string slug = plain(run.fabric);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].values.size() == 1) continue;  // the same in every run
    const std::string& key = keys[i].key;
    slug += fmt::format("-{}_{}", plain(key.substr(key.rfind('.') + 1)), plain(run.values[i]));
  }
  Config same = config;  // workers change nothing
  same.run.workers = 1;
  run.folder =
      fmt::format("{}-{:016x}", slug.substr(0, slug_max), digest(to_yaml(same) + '\n' + more + '\n' + version));
}

/// Counts up the last key first; false: that was the last combination.
bool next(std::vector<std::size_t>& at, const std::vector<SweepKey>& keys) {
  for (std::size_t i = keys.size(); i-- > 0;) {
    if (++at[i] < keys[i].values.size()) return true;
    at[i] = 0;
  }
  return false;
}

std::vector<FabricChoice> fabrics_of(const std::vector<std::string>& names) {
  return names.empty() ? std::vector<FabricChoice>(1) : read_fabrics(names);
}

}  // namespace

SweepKey parse_sweep_key(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos)
    throw UsageError(
        fmt::format("--set {}: no key and value; accepted: a key and its values, such as seed=1,2,3", text));
  SweepKey key{text.substr(0, equals), {}};
  std::string value;
  int depth = 0;
  char quote = 0;
  const auto end_value = [&] {
    if (value.empty())
      throw UsageError(fmt::format("--set {}: an empty value; accepted: values with single commas between", text));
    if (std::ranges::find(key.values, value) != key.values.end())
      throw UsageError(fmt::format("--set {}: '{}' stands there twice; each value once", text, value));
    key.values.push_back(std::exchange(value, {}));
  };
  for (const char c : text.substr(equals + 1)) {
    if (c == ',' && depth == 0 && quote == 0) {
      end_value();
      continue;
    }
    if (quote != 0)
      quote = c == quote ? 0 : quote;
    else if (c == '"' || c == '\'')
      quote = c;
    else if (c == '[' || c == '{')
      ++depth;
    else if ((c == ']' || c == '}') && depth > 0)
      --depth;
    value += c;
  }
  end_value();
  return key;
}

std::vector<SweepRun> plan_sweep(const std::string& config, const std::vector<SweepKey>& keys,
                                 const std::vector<std::string>& fabrics, const std::string& more) {
  std::size_t count = 1;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k)
      if (keys[k].key == keys[i].key)
        throw UsageError(fmt::format("--set {}: given twice; all its values behind one --set", keys[i].key));
    if (keys[i].key == "fabric" && !fabrics.empty())
      throw UsageError("--set fabric: --fabrics says it already; give one of them");
    count *= keys[i].values.size();
    if (count > runs_max)
      throw UsageError(fmt::format("more than {} runs; give fewer values, or several sweeps", runs_max));
  }
  std::vector<SweepRun> runs;
  std::unordered_set<std::string> digests;
  for (const FabricChoice& fabric : fabrics_of(fabrics)) {
    std::vector<std::size_t> at(keys.size(), 0);
    do {
      SweepRun& run = runs.emplace_back();
      for (std::size_t i = 0; i < keys.size(); ++i) {
        run.values.push_back(keys[i].values[at[i]]);
        run.overrides.push_back(keys[i].key + '=' + run.values.back());
      }
      run.overrides.insert(run.overrides.end(), fabric.overrides.begin(), fabric.overrides.end());
      if (fabric.name == "voq") {
        const std::vector<std::string> unmarked = unmarked_voq(config, run.overrides);
        run.overrides.insert(run.overrides.end(), unmarked.begin(), unmarked.end());
      }
      const Config loaded = load_config(config, run.overrides);
      run.fabric = !fabric.name.empty() ? fabric.name : loaded.fabric == FabricKind::voq ? "voq" : "ethernet";
      name_folder(run, keys, loaded, more);
      if (!digests.insert(run.folder.substr(run.folder.size() - digest_digits)).second)
        throw UsageError(
            fmt::format("{} is the same run as one before it; values must differ", fmt::join(run.overrides, " ")));
    } while (next(at, keys));
  }
  return runs;
}

Json finished_results(const std::filesystem::path& folder) {
  for (const std::string_view name : ResultFolder::file_names)
    if (name != "capture.pcapng" && !std::filesystem::exists(folder / name)) return nullptr;
  Json results = read_results(folder);
  if (results.is_null() || results.value("interrupted", true) || !results["frames"].value("balanced", false) ||
      results["frames"].value("no_frame_memory", 1) != 0)
    return nullptr;
  return results;
}

std::string sweep_header(const std::vector<SweepKey>& keys) {
  std::string line = "fabric";
  for (const SweepKey& key : keys) line += ',' + cell(key.key);
  line += ",folder,message";
  for (const auto& [name, pointer] : columns) line += fmt::format(",{}", name);
  return line;
}

std::string sweep_row(const SweepRun& run, const Json& results, const std::string& message) {
  std::string line = cell(run.fabric);
  for (const std::string& value : run.values) line += ',' + cell(value);
  line += ',' + run.folder + ',' + cell(message);
  if (results.is_null()) return line + std::string(columns.size(), ',');
  const Json metrics = Json::parse(json_text(metrics_of(results)));
  for (const auto& [name, pointer] : columns) {
    const Json& value = metrics.at(Json::json_pointer(std::string(pointer)));
    line += ',' + (value.is_null() ? std::string() : value.dump());
  }
  return line;
}

}  // namespace weft
