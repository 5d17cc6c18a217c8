#pragma once

#include "comm/detail/counter.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace sifr::detail {

/// Why a group ended.
enum class FailureKind : std::uint32_t {
  kFailed,   // a rank announced a failure of its own
  kDiffers,  // two ranks made different calls
  kTimeout,  // a rank stayed silent up to the deadline
  kLeft,     // a rank left while others waited for it
  kDied,     // a rank's process ended without leaving
};

struct Failure {
  FailureKind kind = FailureKind::kFailed;
  int rank = -1;               // the cause, or -1
  std::string_view text = {};  // one line; the rank at fault has the rest
};

/// The first failure of a group. It may lie in memory that several processes map.
class alignas(kWriterLine) AbortPage {
 public:
  /// Records the failure unless one is recorded already; true if this one is it.
  bool record(const Failure& failure) noexcept;
  [[nodiscard]] bool happened() const noexcept {
    return state_.load(std::memory_order_seq_cst) != kNone;
  }
  /// Throws what was recorded: CommTimeout for kTimeout, else CommError.
  [[noreturn]] void raise() const;

 private:
  enum State : std::uint32_t { kNone, kBeingWritten, kWritten };

  std::atomic<std::uint32_t> state_{kNone};
  FailureKind kind_ = FailureKind::kFailed;
  std::int32_t rank_ = -1;
  std::array<char, 2048> text_ = {};
};

}  // namespace sifr::detail
