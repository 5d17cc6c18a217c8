#pragma once

#include "./dtype.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace sifr {

/// `count` elements of one dtype, one after another, owned by somebody else. Passed by value.
template <class Byte>
struct BasicView {
  Byte* data = nullptr;
  std::int64_t count = 0;  // elements
  DType dtype = DType::kFloat32;

  [[nodiscard]] std::int64_t bytes() const noexcept { return count * size_of(dtype); }
  /// Elements [first, first + length).
  [[nodiscard]] BasicView slice(std::int64_t first, std::int64_t length) const noexcept {
    return {data + first * size_of(dtype), length, dtype};
  }
  /// The elements as T; the caller knows that T is the view's dtype.
  template <class T>
  [[nodiscard]] auto as() const noexcept {
    using Element = std::conditional_t<std::is_const_v<Byte>, const T, T>;
    return reinterpret_cast<Element*>(data);
  }
  operator BasicView<const std::byte>() const noexcept  // NOLINT(google-explicit-constructor)
      requires(!std::is_const_v<Byte>) {
    return {data, count, dtype};
  }
};

using View = BasicView<std::byte>;
using ConstView = BasicView<const std::byte>;

}  // namespace sifr
