#pragma once

#include "../sifr_error.hpp"

#include <cstddef>

namespace sifr {

/// memcpy for stretches of a result that the caches would not keep: writes past them, which saves
/// reading what is overwritten.
SIFR_API void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

}  // namespace sifr
