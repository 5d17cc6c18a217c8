#pragma once

#include <cstddef>
#include <cstdint>

namespace sifr::detail {

/// From this many bytes on, what a collective gives a rank is written past the caches: a
/// reduce-scatter of 8 MiB then takes 0.7 of the time, larger ones and all-gathers 0.5 to 0.7.
/// Smaller results take as long or longer.
inline constexpr std::int64_t kLargeResult = std::int64_t{4} << 20;

/// memcpy for stretches of a large result: writes past the caches, which saves reading what is
/// overwritten.
void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

}  // namespace sifr::detail
