#pragma once

#include "config_schema/detail/field_info.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace sifr::detail {

// A member's value as JSON text; doubles in their shortest form that reads back the same.
[[nodiscard]] std::string value_text(bool value);
[[nodiscard]] std::string value_text(std::int64_t value);
[[nodiscard]] std::string value_text(double value);
[[nodiscard]] std::string value_text(const std::array<double, 2>& value);

template <class E>
requires(!kNames<E>.empty()) [[nodiscard]] std::string value_text(E value) {
  return '"' + std::string(name_of(value)) + '"';
}

template <class T>
[[nodiscard]] std::string value_text(const std::optional<T>& value) {
  return value ? value_text(*value) : "null";
}

}  // namespace sifr::detail
