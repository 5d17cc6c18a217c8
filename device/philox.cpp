#include "device/philox.hpp"

#include <cmath>
#include <numbers>

namespace sifr {
namespace {

using Words = std::array<std::uint32_t, 4>;

Words words_at(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept {
  const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  const auto high = [](std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); };
  return philox({low(index), high(index), low(stream), high(stream)}, {low(seed), high(seed)});
}

/// In (0, 1], 53 bits.
double to_unit(std::uint32_t high, std::uint32_t low) noexcept {
  const std::uint64_t bits = (std::uint64_t{high} << 32 | low) >> 11;
  return static_cast<double>(bits + 1) * 0x1p-53;
}

}  // namespace

Words philox(Words counter, std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t even = std::uint64_t{0xD2511F53U} * counter[0];
    const std::uint64_t odd = std::uint64_t{0xCD9E8D57U} * counter[2];
    counter = {static_cast<std::uint32_t>(odd >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(odd),
               static_cast<std::uint32_t>(even >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(even)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

float philox_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept {
  // Both values of a pair: even indices take the cosine, odd ones the sine.
  const Words words = words_at(seed, stream, index / 2);
  const double radius = std::sqrt(-2 * std::log(to_unit(words[0], words[1])));
  const double angle = 2 * std::numbers::pi * to_unit(words[2], words[3]);
  return static_cast<float>(radius * (index % 2 == 0 ? std::cos(angle) : std::sin(angle)));
}

float philox_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept {
  const Words words = words_at(seed, stream, index / 4);
  return static_cast<float>(words[index % 4] >> 8) * 0x1p-24F;
}

}  // namespace sifr
