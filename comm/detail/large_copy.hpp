#pragma once

#include <cstddef>
#include <cstdint>

namespace sifr::detail {

/// From this size on a copy does not fit the caches that it would go through.
inline constexpr std::int64_t kLargeCopy = std::int64_t{16} << 20;  // bytes

/// memcpy for stretches of a large copy: writes past the caches, which saves reading what is
/// overwritten.
void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

}  // namespace sifr::detail
