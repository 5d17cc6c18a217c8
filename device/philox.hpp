#pragma once

#include "../sifr_error.hpp"

#include <array>
#include <cstdint>

namespace sifr {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): four random
/// words from a counter and a key. No state: the same counter gives the same words on every rank,
/// in any order.
[[nodiscard]] SIFR_API std::array<std::uint32_t, 4> philox(
    std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) noexcept;

/// Standard normal value number `index` of the stream (seed, stream): Box and Muller in double,
/// rounded once.
[[nodiscard]] SIFR_API float philox_normal(std::uint64_t seed,
                                           std::uint64_t stream,
                                           std::uint64_t index) noexcept;

/// Uniform value in [0, 1) number `index` of the stream (seed, stream): a multiple of 2^-24.
[[nodiscard]] SIFR_API float philox_uniform(std::uint64_t seed,
                                            std::uint64_t stream,
                                            std::uint64_t index) noexcept;

}  // namespace sifr
