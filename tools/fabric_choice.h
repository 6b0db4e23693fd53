// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The fabrics that one configuration is run through, as `--fabrics voq,ethernet,ethernet/spray` names them: a fabric,
// and behind the slash how ethernet balances load.
#include <string>
#include <vector>

#include "tools/config.h"

namespace weft {

struct FabricChoice {
  std::string name;                    // "ethernet/spray"
  std::string folder;                  // "ethernet-spray"
  std::vector<std::string> overrides;  // as of --set, behind the user's own
  std::vector<std::string> notes;      // for people: what is different from the config, beside the fabric
};

/// Reads the list. Throws UsageError for a name that is none or stands there twice.
std::vector<FabricChoice> read_fabrics(const std::vector<std::string>& names);

/// What more has to be overridden for voq: ethernet marks by default and voq does not, so that classes to mark are a
/// mistake in a config for voq alone, but none in one that is written for ethernet.
std::vector<std::string> unmarked_voq(const std::string& config, const std::vector<std::string>& overrides);

/// Reads the list and checks the configuration with each. Throws UsageError for a name that is none or stands there
/// twice, ConfigError where the configuration does not hold for one of them.
std::vector<FabricChoice> choose_fabrics(const std::vector<std::string>& names, const std::string& config,
                                         const std::vector<std::string>& overrides);

}  // namespace weft
