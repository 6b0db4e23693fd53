// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/link_ring.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "dataplane/rng.h"

namespace weft {
namespace {

struct Item {
  std::uint64_t number;
  std::uint64_t check;
};
using Ring = LinkRing<Item>;

/// Appends numbered items, and remembers in which memory they lay.
class Producer {
 public:
  explicit Producer(Ring& ring) : ring_(ring) {}
  void append(std::uint64_t count) {
    for (; count > 0; --count, ++appended_) {
      Item& item = ring_.append();
      item = {appended_, ~appended_};
      places_.insert(&item);
    }
  }
  void commit(std::uint64_t count) {
    for (; count > 0; --count, ++committed_) {
      ASSERT_EQ(ring_.front().number, committed_);
      ring_.commit();
    }
  }
  void send(std::uint64_t count) {
    append(count);
    commit(count);
    ring_.publish();
  }
  [[nodiscard]] std::size_t chunks() const { return (places_.size() + Ring::chunk_items - 1) / Ring::chunk_items; }

 private:
  Ring& ring_;
  std::uint64_t appended_ = 0, committed_ = 0;
  std::set<const Item*> places_;
};

class Consumer {
 public:
  explicit Consumer(Ring& ring) : ring_(ring) {}
  std::uint64_t take(std::uint64_t most = ~std::uint64_t{0}) {
    ring_.refresh();
    std::uint64_t count = 0;
    for (; count < most && !ring_.empty(); ++count, ++taken_) {
      EXPECT_EQ(ring_.peek().number, taken_);
      EXPECT_EQ(ring_.peek().check, ~taken_);
      ring_.take();
    }
    ring_.retire();
    return count;
  }
  [[nodiscard]] std::uint64_t taken() const { return taken_; }

 private:
  Ring& ring_;
  std::uint64_t taken_ = 0;
};

TEST(LinkRing, NothingIsSeenBeforeItIsCommittedAndPublished) {
  Ring ring;
  Producer producer(ring);
  ring.refresh();
  EXPECT_TRUE(ring.empty());
  producer.append(3);
  EXPECT_EQ(ring.queued(), 3u);
  ring.publish();
  ring.refresh();
  EXPECT_TRUE(ring.empty()) << "queued is not sent";
  producer.commit(2);
  ring.refresh();
  EXPECT_TRUE(ring.empty()) << "committed in a window that is not over";
  ring.publish();
  EXPECT_TRUE(ring.empty()) << "the consumer has not looked";
  Consumer consumer(ring);
  EXPECT_EQ(consumer.take(), 2u);
  EXPECT_EQ(ring.queued(), 1u);
  EXPECT_EQ(ring.committed(), 2u);
}

TEST(LinkRing, KeepsOrderWhateverTheRhythm) {
  Ring ring;
  Producer producer(ring);
  Consumer consumer(ring);
  Rng random = stream(1, 0, 0);
  std::uint64_t appended = 0, committed = 0;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t more = random.below(100), send = random.below(appended + more - committed + 1);
    producer.append(more);
    producer.commit(send);
    appended += more;
    committed += send;
    if (random.below(3) != 0) ring.publish();
    consumer.take(random.below(150));
  }
  producer.commit(appended - committed);
  ring.publish();
  consumer.take();
  EXPECT_EQ(consumer.taken(), appended);
}

TEST(LinkRing, AnItemStaysWhereItIsUntilRetired) {
  Ring ring;
  Producer producer(ring);
  producer.send(3 * Ring::chunk_items);
  ring.refresh();
  std::vector<const Item*> taken;
  for (; !ring.empty(); ring.take()) taken.push_back(&ring.peek());
  producer.send(5 * Ring::chunk_items);  // must not be put where those lie
  for (std::size_t i = 0; i < taken.size(); ++i) ASSERT_EQ(taken[i]->number, i);
}

TEST(LinkRing, SteadyTrafficGoesRoundInAFewChunks) {
  Ring ring;
  Producer producer(ring);
  Consumer consumer(ring);
  for (int window = 0; window < 5'000; ++window) {
    producer.send(40);
    if (window > 0) consumer.take(40);  // one window in flight
  }
  EXPECT_LE(producer.chunks(), 4u);  // 80 items in flight touch two chunks; one being emptied, one on its way back
}

TEST(LinkRing, AQueueThatComesAndGoesTakesNoMoreMemoryThanItsPeak) {
  Ring ring;
  Producer producer(ring);
  Consumer consumer(ring);
  constexpr std::uint64_t peak_chunks = 100;
  for (int burst = 0; burst < 30; ++burst) {
    producer.append(peak_chunks * Ring::chunk_items);  // a congested link's queue
    while (ring.queued() != 0) {
      producer.commit(std::min(ring.queued(), 60u));
      ring.publish();
      consumer.take();
    }
  }
  EXPECT_LE(producer.chunks(), peak_chunks + 3);  // the peak, and what its two ends have begun
}

TEST(LinkRing, VisitSeesWhatIsInFlightAndWhatIsQueued) {
  Ring ring;
  Producer producer(ring);
  Consumer consumer(ring);
  const auto visited = [&] {
    std::vector<std::uint64_t> numbers;
    ring.visit([&](const Item& item) { numbers.push_back(item.number); });
    return numbers;
  };
  EXPECT_TRUE(visited().empty());
  producer.send(Ring::chunk_items);  // ends on a chunk's edge
  EXPECT_EQ(visited().size(), Ring::chunk_items);
  consumer.take();
  EXPECT_TRUE(visited().empty());
  producer.send(Ring::chunk_items + 5);
  producer.append(2 * Ring::chunk_items);
  consumer.take(3);
  const std::vector<std::uint64_t> numbers = visited();
  ASSERT_EQ(numbers.size(), 3 * Ring::chunk_items + 2);
  for (std::size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], Ring::chunk_items + 3 + i);
}

TEST(LinkRing, CommitsAndTakesInRuns) {
  Ring ring;
  Producer producer(ring);
  Rng random = stream(2, 0, 0);
  std::uint64_t committed = 0, taken = 0;
  for (int step = 0; step < 3'000; ++step) {
    producer.append(random.below(2 * Ring::chunk_items));
    const std::uint64_t until = committed + random.below(3 * Ring::chunk_items);  // often more than there is
    ring.commit_while([&](const Item& item) {
      EXPECT_EQ(item.number, committed);
      return item.number < until && (++committed, true);
    });
    ASSERT_EQ(ring.committed(), committed);
    ring.publish();
    ring.refresh();
    const std::uint64_t goal = taken + random.below(3 * Ring::chunk_items);
    ring.take_while([&](const Item& item) {
      EXPECT_EQ(item.number, taken);
      return item.number < goal && (++taken, true);
    });
    ASSERT_EQ(ring.empty(), taken == committed);
    if (!ring.empty()) {
      ASSERT_EQ(ring.peek().number, taken);
    }
    ring.retire();
  }
  EXPECT_GT(taken, 100 * Ring::chunk_items);
}

TEST(LinkRing, TwoThreads) {  // under ThreadSanitizer this is the proof of its memory order
  constexpr std::uint64_t total = 200'000;
  Ring ring;
  std::atomic<std::uint64_t> taken{0};
  std::thread far_end([&] {
    Consumer consumer(ring);
    while (consumer.taken() < total) {
      if (consumer.take() == 0) std::this_thread::yield();
      taken.store(consumer.taken(), std::memory_order_relaxed);
    }
  });
  Producer producer(ring);
  for (std::uint64_t sent = 0; sent < total; sent += 50) {
    producer.send(50);
    // Never more than 4000 in flight, as windows see to in a run: then memory is bounded, too.
    while (sent > taken.load(std::memory_order_relaxed) + 4'000) std::this_thread::yield();
  }
  far_end.join();
  EXPECT_EQ(taken.load(), total);
  EXPECT_LE(producer.chunks(),
            4'100 / Ring::chunk_items + 4);  // in flight, begun at either end, and a chunk on its way back
}

}  // namespace
}  // namespace weft
