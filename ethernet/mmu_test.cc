// SPDX-License-Identifier: BSD-3-Clause
#include "ethernet/mmu.h"

#include <gtest/gtest.h>

#include <deque>
#include <stdexcept>

#include "dataplane/rng.h"

namespace weft::ethernet {
namespace {

constexpr std::uint32_t frame = 1000, lossless_class = 3, lossy_class = 0;

MmuConfig config(std::uint64_t shared, std::uint32_t ports = 4) {
  MmuConfig mmu;
  mmu.name = "leaf0";
  mmu.alpha = 0.5;
  mmu.alpha_lossy = 1;
  mmu.guaranteed_bytes = 2000;
  mmu.xon_offset_bytes = 3000;
  mmu.longest_frame_bytes = frame;
  mmu.lossless[lossless_class] = true;
  mmu.headroom_bytes.assign(ports, 10'000);
  mmu.refresh_after.assign(ports, 40_us);
  mmu.buffer_bytes = ports * (8 * mmu.guaranteed_bytes + 10'000 + frame) + shared;
  return mmu;
}

TEST(Mmu, PoolIsWhatGuaranteesAndHeadroomLeave) { EXPECT_EQ(Mmu(config(123'456)).shared_bytes(), 123'456u); }

TEST(Mmu, OvercommittedBufferIsRefusedAndSaysHowMuchItTakes) {
  MmuConfig mmu = config(0);
  try {
    Mmu refused(mmu);
    FAIL() << "no pool at all was accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("ethernet.buffer"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(std::to_string(mmu.buffer_bytes + 4 * frame)), std::string::npos)
        << error.what();
  }
}

TEST(Mmu, OneClassPausesAtAlphaOfTheFreePool) {
  // Alone, a class with alpha 1/2 stops when what it has in the pool exceeds half of what is free before the frame:
  // s + f > (S - s) / 2, that is s > (S - 2f) / 3.
  Mmu mmu(config(300'000));
  std::uint32_t admitted = 0;
  while (mmu.admit(0, 1, lossless_class, frame, 0) == Mmu::Admit::ok) ++admitted;
  const std::uint64_t in_pool = std::uint64_t{admitted} * frame - 2000;
  EXPECT_GE(in_pool + frame, (300'000 - 2 * frame) / 3);
  EXPECT_LE(in_pool, (300'000 + frame) / 3);
  EXPECT_TRUE(mmu.paused(0, lossless_class));
  EXPECT_FALSE(mmu.paused(1, lossless_class));
}

TEST(Mmu, HeadroomTakesExactlyItsSizeAndNoByteMore) {
  Mmu mmu(config(300'000));
  while (mmu.admit(0, 1, lossless_class, frame, 0) == Mmu::Admit::ok) {
  }
  for (int i = 0; i < 10; ++i) EXPECT_EQ(mmu.admit(0, 1, lossless_class, frame, 0), Mmu::Admit::ok) << i;
  EXPECT_EQ(mmu.headroom_max_bytes(), 10'000u);
  EXPECT_EQ(mmu.admit(0, 1, lossless_class, 64, 0), Mmu::Admit::headroom_exceeded);
  EXPECT_EQ(mmu.admit(1, 1, lossless_class, frame, 0), Mmu::Admit::ok) << "another port has its own";
}

TEST(Mmu, ResumesBelowThresholdLessOffset) {
  Mmu mmu(config(300'000));
  std::uint32_t held = 1;
  while (mmu.admit(0, 1, lossless_class, frame, 0) == Mmu::Admit::ok) ++held;
  std::uint32_t released = 1;
  while (!mmu.release(0, 1, lossless_class, frame)) ++released;
  // It drains from about 100,000 and the threshold rises by half of what it gives back: 1.5 r >= offset + what the
  // crossing frame was over, so r is 2 or 3 frames.
  EXPECT_GE(released, 2u);
  EXPECT_LE(released, 4u);
  EXPECT_FALSE(mmu.paused(0, lossless_class));
  for (std::uint32_t i = released; i < held; ++i)
    EXPECT_FALSE(mmu.release(0, 1, lossless_class, frame)) << "XON is said once";
  EXPECT_EQ(mmu.used_bytes(), 0u);
}

TEST(Mmu, LossyIsDroppedAndNeverPauses) {
  Mmu mmu(config(300'000));
  std::uint32_t admitted = 0;
  Mmu::Admit last;
  while ((last = mmu.admit(0, 1, lossy_class, frame, 0)) == Mmu::Admit::ok) ++admitted;
  EXPECT_EQ(last, Mmu::Admit::class_limit);
  EXPECT_NEAR(admitted * double{frame} - 2000, 150'000, 2 * frame);  // alpha 1: half the pool
  EXPECT_EQ(mmu.next_refresh(), never);
  EXPECT_EQ(mmu.admit(2, 1, lossy_class, frame, 0), Mmu::Admit::class_limit)
      << "counted where it waits, whoever sent it";
  EXPECT_EQ(mmu.admit(0, 2, lossy_class, frame, 0), Mmu::Admit::ok);
}

TEST(Mmu, LossyCannotTakeWhatIsSetAsideForLossless) {
  MmuConfig greedy = config(50'000);
  greedy.alpha_lossy = 1000;
  Mmu mmu(greedy);
  while (mmu.admit(0, 1, lossy_class, frame, 0) == Mmu::Admit::ok) {
  }
  EXPECT_EQ(mmu.admit(0, 1, lossy_class, frame, 0), Mmu::Admit::buffer_full);
  EXPECT_EQ(mmu.admit(2, 1, lossless_class, frame, 0), Mmu::Admit::ok);  // its guarantee
  EXPECT_EQ(mmu.admit(2, 1, lossless_class, frame, 0), Mmu::Admit::ok);
  EXPECT_EQ(mmu.admit(2, 1, lossless_class, frame, 0), Mmu::Admit::send_xoff);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(mmu.admit(2, 1, lossless_class, frame, 0), Mmu::Admit::ok);
}

TEST(Mmu, PauseIsSaidAgainWhileItLasts) {
  Mmu mmu(config(300'000));
  while (mmu.admit(2, 1, lossless_class, frame, 5_us) == Mmu::Admit::ok) {
  }
  EXPECT_EQ(mmu.next_refresh(), 45_us);
  std::uint32_t said = 0;
  mmu.refresh(45_us, [&](std::uint32_t port, std::uint8_t classes) {
    ++said;
    EXPECT_EQ(port, 2u);
    EXPECT_EQ(classes, 1u << lossless_class);
  });
  EXPECT_EQ(said, 1u);
  EXPECT_EQ(mmu.next_refresh(), 85_us);
}

// Whatever comes, in any order: no more than the buffer is ever held, a class that obeys within its headroom loses
// nothing, and what went in comes out.
TEST(Mmu, RandomTrafficNeverOverrunsTheBuffer) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng random(seed);
    MmuConfig c = config(random.below(400'000) + 6 * frame, 6);
    c.alpha = 1.0 / static_cast<double>(1 + random.below(16)) * static_cast<double>(1 + random.below(32));
    Mmu mmu(c);
    struct Held {
      std::uint32_t in, out, traffic_class, bytes;
    };
    std::deque<Held> held;
    std::uint64_t sum = 0, after_pause[6] = {};
    for (int step = 0; step < 20'000; ++step) {
      if (held.empty() || random.below(100) < 55) {
        const Held f{static_cast<std::uint32_t>(random.below(6)), static_cast<std::uint32_t>(random.below(6)),
                     random.below(3) == 0 ? lossy_class : lossless_class,
                     static_cast<std::uint32_t>(60 + random.below(frame - 59))};
        const bool lossless = f.traffic_class == lossless_class;
        if (lossless && mmu.paused(f.in, f.traffic_class) && (after_pause[f.in] += f.bytes) > 10'000)
          continue;  // it obeys
        const Mmu::Admit admit = mmu.admit(f.in, f.out, f.traffic_class, f.bytes, 0);
        if (admit == Mmu::Admit::send_xoff) after_pause[f.in] = 0;
        const bool kept = admit == Mmu::Admit::ok || admit == Mmu::Admit::send_xoff;
        ASSERT_TRUE(kept || !lossless) << "seed " << seed;
        if (kept) {
          held.push_back(f);
          sum += f.bytes;
        }
      } else {
        const std::size_t i = random.below(held.size());
        std::swap(held[i], held.front());
        const Held f = held.front();
        held.pop_front();
        mmu.release(f.in, f.out, f.traffic_class, f.bytes);
        sum -= f.bytes;
      }
      ASSERT_EQ(mmu.used_bytes(), sum);
      ASSERT_LE(sum, c.buffer_bytes) << "seed " << seed;
    }
    for (const Held& f : held) mmu.release(f.in, f.out, f.traffic_class, f.bytes);
    EXPECT_EQ(mmu.used_bytes(), 0u);
    EXPECT_EQ(mmu.paused_ports(), 0u) << "an empty class is never paused";
  }
}

}  // namespace
}  // namespace weft::ethernet
