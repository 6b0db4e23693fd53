// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/classify.h"

#include <stdexcept>
#include <string>

namespace weft {

std::uint8_t dscp_of_class(const ClassesConfig& classes, std::uint8_t traffic_class) {
  if (traffic_class >= traffic_classes)
    throw std::invalid_argument("class " + std::to_string(traffic_class) + ": classes are 0 to 7");
  const std::uint8_t selector = static_cast<std::uint8_t>(traffic_class * 8);
  const std::uint8_t usual = traffic_class == 3 || traffic_class == 4 ? selector + 2 : selector;
  for (const std::uint8_t dscp : {usual, selector})
    if (classes.dscp_to_class[dscp] == traffic_class) return dscp;
  for (std::uint8_t dscp = 0; dscp < 64; ++dscp)
    if (classes.dscp_to_class[dscp] == traffic_class) return dscp;
  throw std::invalid_argument("class " + std::to_string(traffic_class) +
                              ": no DSCP is mapped to it; classes.dscp would need an entry for it");
}

}  // namespace weft
