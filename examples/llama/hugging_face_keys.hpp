#pragma once

#include <cstdint>
#include <string_view>

namespace llama {

/// What a key of a config.json does to a Llama's forward pass, beyond its shape.
enum class KeyEffect : std::uint8_t { kNone, kChangesNumbers, kUnknown };

/// `json`: the key's value, numbers as fractions (1.0). Keys of the shape, and those that only
/// other programs read, have none.
[[nodiscard]] KeyEffect effect_of(std::string_view key, std::string_view json) noexcept;

}  // namespace llama
