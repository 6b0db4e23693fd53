// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The tables of keys, one a section. Each binds to the struct that it fills; what the struct holds is the default.
#include <string>
#include <vector>

#include "tools/config.h"
#include "tools/config_value.h"

namespace weft {

/// A Config with every default, topology built: what an empty file gives.
Config default_config();

/// The whole configuration. `config` must outlive the section and have its topology built before it is written;
/// config.source says which folder relative paths are meant from.
Section config_section(Config& config);

Section forwarding_section(ForwardingConfig& forwarding, const Topology& topology);
Section classes_section(ClassesConfig& classes);
Section voq_section(voq::VoqConfig& voq);
Section scheduler_section(scheduler::SchedulerConfig& scheduler);
Section cells_section(cells::CellConfig& cells);
Section ethernet_section(ethernet::EthernetConfig& ethernet);
Value ports_value(std::vector<PortConfig>& ports, const Topology& topology);
Value traffic_value(std::vector<TrafficConfig>& traffic, const Topology& topology, const std::string& source);
Value faults_value(std::vector<FaultConfig>& faults, const Topology& topology);
Section capture_section(CaptureConfig& capture, const Topology& topology);

/// Values that make sense one by one and not together. Throws ConfigError.
void check_together(const Config& config, const YamlNode& root);

/// Every key with its default, unit and meaning: the text of configs/reference.yaml.
std::string reference_yaml();

}  // namespace weft
