#pragma once

#include "device/detail/descriptor_handle.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace sifr::detail {

/// A whole regular file, mapped read only. Throws IoError.
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

/// A file that comes into being under its name as a whole or not at all. All members throw IoError.
///
///   create + reserve --append…--> temporary file --commit--> fsync, rename, fsync of the folder
///                                      └──────── destructor without commit: unlinked
class NewFile {
 public:
  NewFile(std::filesystem::path path, std::int64_t bytes);
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();
  void append(std::span<const std::byte> bytes);
  void commit();
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  void require_replaceable() const;
  void require_limit(std::int64_t bytes) const;
  void create();
  void reserve(std::int64_t bytes);
  [[noreturn]] void fail_for_space(std::int64_t bytes) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty once it has its name
  DescriptorHandle file_;
};

}  // namespace sifr::detail
