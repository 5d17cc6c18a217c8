#pragma once

#include "../sifr_error.hpp"

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace sifr {

/// The configuration is wrong: fix the file. Carries every problem that was found, in the order of
/// the file; what() has one line for each: `file:line:column: /json/pointer: text`.
class SIFR_API ConfigError : public std::runtime_error, public Error {
 public:
  /// `line` and `column` count from 1, columns in characters; 0 where the file has no such place (a
  /// missing key, a missing file). `pointer` is empty for the whole document.
  struct Problem {
    std::string pointer;
    std::int64_t line = 0;
    std::int64_t column = 0;
    std::string text;
    std::string hint = {};  ///< not empty: an "auto" that the hint of this name would resolve
  };

  ConfigError(const std::string& file_name, std::vector<Problem> problems);

  [[nodiscard]] const std::vector<Problem>& problems() const noexcept { return *problems_; }
  [[nodiscard]] const char* message() const noexcept override { return what(); }

 private:
  std::shared_ptr<const std::vector<Problem>>
      problems_;  // shared: copying an exception never throws
};

}  // namespace sifr
