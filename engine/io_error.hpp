#pragma once

#include "../sifr_error.hpp"

#include <filesystem>
#include <stdexcept>
#include <string>

namespace sifr {

/// A file cannot be read or written, or does not hold what its format demands. Files of an earlier
/// save are untouched: mend the path, the rights, the space or the file, and call again.
class SIFR_API IoError : public std::runtime_error, public Error {
 public:
  /// `error_number`: errno of the failed call, whose text is appended; 0: the file's contents are
  /// at fault.
  IoError(std::filesystem::path path, const std::string& text, int error_number = 0);
  [[nodiscard]] const char* message() const noexcept override { return what(); }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] int error_number() const noexcept { return error_number_; }

 private:
  std::filesystem::path path_;
  int error_number_;
};

}  // namespace sifr
