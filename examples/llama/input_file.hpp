#pragma once

#include "examples/llama/file_descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace llama {

/// A regular file that is read, from several threads too. Not mapped: touching pages that a file no
/// longer has, since somebody cut it short, would end the process. Throws sifr::IoError.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  /// At opening.
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }
  void read(std::int64_t from, std::span<std::byte> bytes) const;

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
  std::int64_t bytes_ = 0;
};

/// All that a file holds. Throws sifr::IoError.
[[nodiscard]] std::string text_of(const std::filesystem::path& path);

}  // namespace llama
