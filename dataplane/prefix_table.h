// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Longest prefix match for the tables of a run's config, IPv4 or IPv6: prefixes are flattened once into disjoint
// ranges, and a look-up is a binary search for the range. A table of a thousand prefixes is 12 KB, where the 24-bit
// direct tables of rte_fib and rte_lpm take 16 MB or more a leaf whatever they hold; a fabric of many leaves fits a
// laptop, and needs no EAL memory.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/time.h"

namespace weft {

inline constexpr std::uint32_t no_entry = ~std::uint32_t{0};

/// `Address` is an unsigned integer as wide as the address, most significant bit first on the wire.
template <typename Address>
class PrefixTable {
 public:
  static constexpr unsigned address_bits = sizeof(Address) * 8;
  struct Prefix {
    Address address;  // no bit set beyond `length`
    unsigned length;
    std::uint32_t entry;
  };

  /// A prefix given twice keeps its first entry.
  void build(std::vector<Prefix> prefixes) {
    starts_.clear(), entries_.clear();
    if (prefixes.empty()) return;
    // Outer before inner, first given before later: a stack of the prefixes that are open says which covers a point.
    std::stable_sort(prefixes.begin(), prefixes.end(), [](const Prefix& a, const Prefix& b) {
      return a.address != b.address ? a.address < b.address : a.length < b.length;
    });
    std::vector<Prefix> open;
    add_range(0, no_entry);
    const auto close_before = [&](Address address, bool all) {
      while (!open.empty() && (all || last_of(open.back()) < address)) {
        const Address last = last_of(open.back());
        open.pop_back();
        if (last != static_cast<Address>(~Address{0}))
          add_range(static_cast<Address>(last + 1), open.empty() ? no_entry : open.back().entry);
      }
    };
    for (const Prefix& prefix : prefixes) {
      close_before(prefix.address, false);
      if (!open.empty() && open.back().address == prefix.address && open.back().length == prefix.length) continue;
      add_range(prefix.address, prefix.entry);
      open.push_back(prefix);
    }
    close_before(0, true);
  }

  /// Entry of the longest prefix that holds `address`, or no_entry.
  [[nodiscard]] std::uint32_t find(Address address) const {
    if (starts_.empty()) return no_entry;
    std::size_t base = 0;
    for (std::size_t n = starts_.size(); n > 1;) {  // without branches on what is found
      const std::size_t half = n / 2;
      base += starts_[base + half] <= address ? half : 0;
      n -= half;
    }
    return entries_[base];
  }

  [[nodiscard]] std::size_t ranges() const { return starts_.size(); }

 private:
  static Address last_of(const Prefix& prefix) {
    if (prefix.length == 0) return static_cast<Address>(~Address{0});
    return static_cast<Address>(
        prefix.address |
        (prefix.length == address_bits ? Address{0} : static_cast<Address>(~Address{0}) >> prefix.length));
  }
  void add_range(Address start, std::uint32_t entry) {
    if (!starts_.empty() && starts_.back() == start) {
      entries_.back() = entry;
    } else {
      starts_.push_back(start);
      entries_.push_back(entry);
    }
  }

  std::vector<Address> starts_;  // ascending; a range ends where the next starts
  std::vector<std::uint32_t> entries_;
};

using Ipv4Address = std::uint32_t;
using Ipv6Address = Uint128;

/// A prefix as text, "198.18.1.0/24" or "2001:db8::/64".
struct ParsedPrefix {
  bool six = false;
  Ipv6Address address = 0;  // of IPv4: in the low 32 bits
  unsigned length = 0;
};
/// Throws std::invalid_argument, saying what would be right.
ParsedPrefix parse_prefix(const std::string& text);

}  // namespace weft
