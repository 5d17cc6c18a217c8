#pragma once

#include <cstddef>
#include <cstdint>

namespace llama {

/// The size of a micro-batch: `rows` sequences of `length` positions. Activations lie
/// [row][position][element].
struct Extent {
  std::int64_t rows = 0;
  std::int64_t length = 0;
  [[nodiscard]] std::int64_t tokens() const noexcept { return rows * length; }
  friend bool operator==(const Extent&, const Extent&) = default;
};

/// Cuts one block of memory into arrays that start on 512 bytes. Without a block it only counts:
/// cutting twice, first to measure, then for real, gives the same places.
class Carver {
 public:
  explicit Carver(std::byte* block = nullptr) noexcept : block_(block) {}
  template <class T>
  [[nodiscard]] T* take(std::int64_t count) noexcept {
    T* array = block_ == nullptr ? nullptr : reinterpret_cast<T*>(block_ + bytes_);
    bytes_ += (count * static_cast<std::int64_t>(sizeof(T)) + 511) / 512 * 512;
    return array;
  }
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }

 private:
  std::byte* block_;
  std::int64_t bytes_ = 0;
};

}  // namespace llama
