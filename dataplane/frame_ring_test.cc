// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/frame_ring.h"

#include <gtest/gtest.h>

#include <deque>

#include "dataplane/rng.h"

namespace weft {
namespace {

TEST(Ring, AgreesWithADequeWhileItGrowsAndWraps) {
  Ring<std::uint32_t> ring;
  std::deque<std::uint32_t> reference;
  Rng random = stream(1, 0, 0);
  for (std::uint32_t step = 0; step < 200'000; ++step) {
    // Long spells of growth and of shrinking, so that it is empty, full and in between at every place of the memory.
    const bool grow = random.below(100) < ((step / 500) % 2 == 0 ? 70u : 30u);
    if (grow) {
      ring.push(step);
      reference.push_back(step);
    } else if (!reference.empty()) {
      ASSERT_EQ(ring.front(), reference.front());
      ring.pop();
      reference.pop_front();
    }
    ASSERT_EQ(ring.size(), reference.size());
    ASSERT_EQ(ring.empty(), reference.empty());
    if (!reference.empty()) {
      const auto n = static_cast<std::uint32_t>(random.below(reference.size()));
      ASSERT_EQ(ring[n], reference[n]);
    }
  }
}

}  // namespace
}  // namespace weft
