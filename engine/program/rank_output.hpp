#pragma once

#include "engine/program/launcher_output.hpp"

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

  RankOutput(int rank, LauncherOutput& target);

  /// Takes over what has arrived at `descriptor` (not blocking) as long as the target is not full;
  /// at the stream's end closes it and makes it -1.
  void read_from(int& descriptor);
  /// The rank has ended: reads the rest, whether or not the target is full.
  void read_rest(int& descriptor);
  [[nodiscard]] bool has_room() const noexcept { return !target_->is_full(); }
  /// Writes an unfinished last line.
  void finish();
  [[nodiscard]] const std::deque<std::string>& last_lines() const noexcept { return last_lines_; }

 private:
  bool read_piece(int& descriptor);
  void add(std::string_view bytes);
  void write(std::string_view line);

  std::string prefix_;
  LauncherOutput* target_;
  std::string line_;
  std::deque<std::string> last_lines_;
};

}  // namespace sifr::program
