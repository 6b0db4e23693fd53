// SPDX-License-Identifier: BSD-3-Clause
#include "cells/spray.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace weft::cells {

namespace {
constexpr std::uint64_t most_places_a_link = 64;  // finer differences of rate than 1/64 of the fastest are rounded
}

void Spray::set_links(std::span<const std::uint64_t> rates) {
  std::uint64_t divisor = 0, fastest = 0;
  for (const std::uint64_t rate : rates) {
    divisor = std::gcd(divisor, rate);
    fastest = std::max(fastest, rate);
  }
  places_.clear();
  for (std::size_t link = 0; link < rates.size(); ++link) {
    if (rates[link] == 0) continue;
    std::uint64_t count = rates[link] / divisor;
    if (fastest / divisor > most_places_a_link)
      count = std::max<std::uint64_t>(1, (rates[link] * most_places_a_link + fastest / 2) / fastest);
    places_.insert(places_.end(), count, static_cast<std::uint16_t>(link));
  }
  position_ = 0;
  rounds_ = 0;
  shuffle();
}

void Spray::next_round() {
  position_ = 0;
  if (++rounds_ == rounds_per_shuffle) {
    rounds_ = 0;
    shuffle();
  }
}

void Spray::shuffle() {
  for (std::size_t i = places_.size(); i > 1; --i)
    std::swap(places_[i - 1], places_[random_.below(static_cast<std::uint32_t>(i))]);
}

}  // namespace weft::cells
