#pragma once

#include <sys/poll.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace sifr::program {

/// The launcher's own stdout or stderr, which may go to a reader that stalls: whoever writes here
/// never waits for it, so signals are served meanwhile. What it does not take yet is kept.
class LauncherOutput {
 public:
  /// So much is kept before is_full() asks for a pause, in bytes.
  static constexpr std::size_t kFull = std::size_t{1} << 20;

  /// `stream` is STDOUT_FILENO or STDERR_FILENO.
  explicit LauncherOutput(int stream);
  LauncherOutput(const LauncherOutput&) = delete;
  LauncherOutput& operator=(const LauncherOutput&) = delete;
  ~LauncherOutput();

  /// `lines` end with a line feed.
  void add(std::string_view lines) { kept_ += lines; }
  /// Writes what the reader takes now; forgets all if there is no reader or no room any more.
  void write();
  [[nodiscard]] bool is_empty() const noexcept { return kept_.empty(); }
  [[nodiscard]] bool is_full() const noexcept { return kept_.size() >= kFull; }
  /// What poll() tells of the reader; ignored while there is nothing to write.
  [[nodiscard]] pollfd readiness() const noexcept;

 private:
  [[nodiscard]] std::size_t next_piece(std::size_t from) const noexcept;

  int stream_;
  int own_ = -1;  // the same pipe or terminal, opened anew so as not to block; -1: neither
  std::string kept_;
};

/// True if both go to the same file, pipe or terminal.
[[nodiscard]] bool is_same_output(int stream, int other) noexcept;

}  // namespace sifr::program
