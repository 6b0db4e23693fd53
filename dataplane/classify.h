// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Traffic class of a frame, by tables (ClassesConfig). The rule, first match wins:
//   1. a VLAN tag with a PCP other than 0: pcp_to_class[PCP]. Somebody set it on purpose.
//   2. IP: dscp_to_class[DSCP]. So a tagged frame with PCP 0 (what operating systems send on a VLAN device unless told
//      otherwise) keeps the class that its DSCP asks for, and RoCE does not turn lossy by being put in a VLAN.
//   3. any other tagged frame: pcp_to_class[0]; any other untagged frame (ARP, LLDP, RoCEv1): class 0.
// Classifying never rewrites DSCP or PCP.
#include <cstdint>
#include <span>

#include "dataplane/config.h"
#include "dataplane/parse.h"

namespace weft {

inline std::uint8_t classify(const ParsedHeaders& headers, const ClassesConfig& classes) {
  if (headers.pcp != 0) return classes.pcp_to_class[headers.pcp];
  if (headers.ip_version != 0) return classes.dscp_to_class[headers.dscp];
  return headers.tags != 0 ? classes.pcp_to_class[0] : std::uint8_t{0};
}

/// Of a whole frame's bytes; class 0 for what is too short to say.
inline std::uint8_t classify_bytes(std::span<const std::uint8_t> frame, const ClassesConfig& classes) {
  return classify(parse(frame), classes);
}

/// A DSCP that the table maps to `traffic_class`, for frames that weft makes itself: the usual code
/// point (26 for class 3, 34 for class 4, else the class selector) where it maps there, else the lowest. Throws
/// std::invalid_argument that names the class if none does.
std::uint8_t dscp_of_class(const ClassesConfig& classes, std::uint8_t traffic_class);

}  // namespace weft
