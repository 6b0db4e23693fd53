// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/prefix_table.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "dataplane/rng.h"

namespace weft {
namespace {

TEST(PrefixTable, AgreesWithTryingEveryPrefix) {
  // Few distinct leading bits and many lengths, so that prefixes nest, touch and repeat.
  Rng random = stream(11, 0, 0);
  for (int round = 0; round < 200; ++round) {
    std::vector<PrefixTable<Ipv4Address>::Prefix> prefixes;
    const std::uint64_t count = random.below(40);
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto length = static_cast<unsigned>(random.below(33));
      const auto bits = random.next32() & 0xc000'00c3;
      prefixes.push_back({length == 0 ? 0 : bits & ~Ipv4Address{0} << (32 - length), length, i});
    }
    PrefixTable<Ipv4Address> table;
    table.build(prefixes);
    for (int probe = 0; probe < 500; ++probe) {
      Ipv4Address address = random.next32() & 0xc000'00ff;
      if (!prefixes.empty() && random.below(2) == 0)  // around the edges
        address = prefixes[random.below(prefixes.size())].address + static_cast<Ipv4Address>(random.below(3)) - 1;
      std::uint32_t best = no_entry;
      int longest = -1;
      for (const auto& p : prefixes) {
        const Ipv4Address mask = p.length == 0 ? 0 : ~Ipv4Address{0} << (32 - p.length);
        if ((address & mask) == p.address && static_cast<int>(p.length) > longest)
          longest = static_cast<int>(p.length), best = p.entry;
      }
      ASSERT_EQ(table.find(address), best) << round << ' ' << std::hex << address;
    }
  }
}

TEST(PrefixTable, Ipv6) {
  PrefixTable<Ipv6Address> table;
  const auto add = [](const char* text, std::uint32_t entry) {
    const ParsedPrefix p = parse_prefix(text);
    EXPECT_TRUE(p.six);
    return PrefixTable<Ipv6Address>::Prefix{p.address, p.length, entry};
  };
  table.build({add("2001:db8::/32", 1), add("2001:db8:1::/48", 2), add("2001:db8::7/128", 3)});
  const Ipv6Address base = parse_prefix("2001:db8::/32").address;
  EXPECT_EQ(table.find(base), 1u);
  EXPECT_EQ(table.find(base + 7), 3u);
  EXPECT_EQ(table.find(base + 8), 1u);
  EXPECT_EQ(table.find(parse_prefix("2001:db8:1::/48").address + 5), 2u);
  EXPECT_EQ(table.find(parse_prefix("2001:db9::/32").address), no_entry);
  table.build({add("::/0", 9)});
  EXPECT_EQ(table.find(0), 9u);
  EXPECT_EQ(table.find(~Ipv6Address{0}), 9u);
}

TEST(PrefixTable, TextThatIsNoPrefix) {
  EXPECT_EQ(parse_prefix("198.18.1.0/24").address, Ipv6Address{0xc612'0100});
  for (const char* text : {"", "1.2.3.4", "1.2.3.4/", "1.2.3.4/33", "1.2.3/8", "1.2.3.4/24", "::1/64", "::/129",
                           "1.2.3.0/24x", "1.2.3.0/-1"})
    EXPECT_THROW(parse_prefix(text), std::invalid_argument) << text;
}

}  // namespace
}  // namespace weft
