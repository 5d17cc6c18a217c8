#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace llama {

/// A whole regular file, mapped read only: pages are read when they are touched. Throws
/// sifr::IoError.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace llama
