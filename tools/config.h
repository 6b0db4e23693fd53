// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The whole configuration of a run, read from one YAML file. Errors name file, line, key and what would be right.
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cells/config.h"
#include "dataplane/config.h"
#include "ethernet/config.h"
#include "scheduler/config.h"
#include "voq/config.h"

namespace weft {

enum class FabricKind : std::uint8_t { voq, ethernet };

struct Config {
  std::string source;  // file it came from, for messages
  FabricKind fabric = FabricKind::voq;
  Topology topology;
  ClockConfig clock;
  RunConfig run;
  ForwardingConfig forwarding;
  ClassesConfig classes;
  voq::VoqConfig voq;
  scheduler::SchedulerConfig scheduler;
  cells::CellConfig cells;
  ethernet::EthernetConfig ethernet;
  std::vector<PortConfig> ports;
  std::vector<TrafficConfig> traffic;
  std::vector<FaultConfig> faults;
  CaptureConfig capture;
  bool operator==(const Config&) const = default;
};

/// A mistake in the configuration. what() is one line: `file:line: key: what is wrong; what would be accepted`.
struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Reads and validates. `overrides` are `key.path=value` pairs, as of `--set`, applied to the document before it is
/// read. A part of the path is a key, or an item's number in a list that the file has: `traffic.0.constant.load=0.5`.
/// Paths of captures are relative to the config's folder, and to the current one where an override says them; a Config
/// holds them absolute. Throws ConfigError.
Config load_config(const std::string& path, const std::vector<std::string>& overrides = {});
Config parse_config(const std::string& text, const std::string& name, const std::vector<std::string>& overrides = {});

/// The complete configuration, every default spelled out; load_config() of it gives the same Config.
std::string to_yaml(const Config& config);

}  // namespace weft
