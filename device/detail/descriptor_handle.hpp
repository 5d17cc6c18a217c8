#pragma once

#include <unistd.h>
#include <utility>

namespace sifr::detail {

/// Owns a file descriptor of the process; -1 is none.
class DescriptorHandle {
 public:
  DescriptorHandle() = default;
  explicit DescriptorHandle(int descriptor) noexcept : descriptor_(descriptor) {}
  DescriptorHandle(DescriptorHandle&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  DescriptorHandle& operator=(DescriptorHandle&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  DescriptorHandle(const DescriptorHandle&) = delete;
  DescriptorHandle& operator=(const DescriptorHandle&) = delete;
  ~DescriptorHandle() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  [[nodiscard]] int get() const noexcept { return descriptor_; }

 private:
  int descriptor_ = -1;
};

}  // namespace sifr::detail
