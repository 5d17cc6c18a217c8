#pragma once

#include <string>

namespace sifr::program {

/// How a process ended, from what waitpid tells.
class ExitStatus {
 public:
  explicit ExitStatus(int wait_status) noexcept : wait_status_(wait_status) {}

  [[nodiscard]] bool is_success() const noexcept;
  [[nodiscard]] bool is_signal() const noexcept;
  /// By a signal that no rank sends itself on hearing of another's failure, as abort() does.
  [[nodiscard]] bool is_crash() const noexcept;
  /// As a shell tells it: 128 plus the signal's number for signals.
  [[nodiscard]] int code() const noexcept;
  /// "ended with code 3", "was killed by signal 9 (Killed): likely out of memory …".
  [[nodiscard]] std::string describe() const;

 private:
  int wait_status_;
};

}  // namespace sifr::program
