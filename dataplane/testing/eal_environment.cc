// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/testing/eal_environment.h"

namespace weft::testing {

Eal& test_eal() {
  static Eal eal({.workers = 4, .memory = EalOptions::Memory::ordinary});
  return eal;
}

}  // namespace weft::testing
