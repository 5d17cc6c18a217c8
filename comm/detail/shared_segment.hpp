#pragma once

#include "device/detail/descriptor_handle.hpp"

#include <cstddef>
#include <cstdint>

namespace sifr::detail {

/// A mapping of a stretch of memory without a name, that exists as long as a process maps it or
/// holds its descriptor: a killed job leaves nothing behind. Move-only.
class SharedSegment {
 public:
  enum class Access : std::uint8_t { kReadOnly, kReadWrite };

  SharedSegment() = default;
  /// Maps `bytes` bytes of `descriptor`. Throws std::system_error.
  SharedSegment(int descriptor, std::int64_t bytes, Access access);
  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;
  ~SharedSegment();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

/// Memory to be mapped: zeroed, reserved to the last byte, of a size that nobody can change any
/// more. `name` shows in /proc. Throws std::system_error, with ENOSPC or ENOMEM where the machine
/// has not enough, EFBIG where the process may not have as much.
[[nodiscard]] DescriptorHandle make_shared_memory(const char* name, std::int64_t bytes);

/// The size of such memory that a peer made; throws std::system_error if it could shrink while it
/// is mapped.
[[nodiscard]] std::int64_t sealed_size(int descriptor);

}  // namespace sifr::detail
