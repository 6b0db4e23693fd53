// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// DPDK for tests that need frame pools: started when the first test of a binary asks, without huge pages, and kept.
#include "dataplane/eal.h"

namespace weft::testing {

/// The EAL of this test binary: 1 GiB, four lcores, which share the CPUs there are.
Eal& test_eal();

}  // namespace weft::testing
