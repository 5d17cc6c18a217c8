#pragma once

#include <cstdio>
#include <deque>
#include <string>
#include <string_view>

namespace sifr::program {

/// One stream of a rank's output: writes whole lines with a prefix, so that ranks do not mix within
/// a line, and remembers the last ones.
class RankOutput {
 public:
  static constexpr std::size_t kKeptLines = 20;
  static constexpr std::size_t kLongestLine = 1 << 16;  // bytes; a longer one is cut into several

  /// `target` is stdout or stderr.
  RankOutput(int rank, std::FILE* target);

  void add(std::string_view bytes);
  /// Writes an unfinished last line.
  void finish();
  [[nodiscard]] const std::deque<std::string>& last_lines() const noexcept { return last_lines_; }

 private:
  void write(std::string_view line);

  std::string prefix_;
  std::FILE* target_;
  std::string line_;
  std::deque<std::string> last_lines_;
};

}  // namespace sifr::program
