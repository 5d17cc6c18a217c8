#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace sifr::detail {

/// Longer keys are like no other.
inline constexpr std::size_t kLongestKey = 64;

/// The candidate that `key` was probably meant to be; empty if none is near.
[[nodiscard]] std::string_view nearest_key(std::string_view key,
                                           std::span<const std::string_view> candidates);

}  // namespace sifr::detail
