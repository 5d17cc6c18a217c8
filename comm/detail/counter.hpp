#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sifr::detail {

/// What two ranks must not write in the same line of.
inline constexpr std::size_t kWriterLine = 64;

/// A number that one rank raises and the others wait for; it may lie in memory that several
/// processes map. It wraps around: two values that are compared lie less than 2^31 apart.
class alignas(kWriterLine) Counter {
 public:
  /// Makes all that this thread wrote before visible to those who see `value`, and wakes them if
  /// they sleep.
  void publish(std::uint32_t value) noexcept;
  [[nodiscard]] std::uint32_t value() const noexcept {
    return value_.load(std::memory_order_acquire);
  }
  [[nodiscard]] bool has_reached(std::uint32_t target) const noexcept {
    return static_cast<std::int32_t>(value() - target) >= 0;
  }
  /// Sleeps until woken or for `longest`; returns at once if the target is reached. May return
  /// early.
  void sleep_until(std::uint32_t target, std::chrono::nanoseconds longest) noexcept;
  /// Ends everybody's sleep.
  void wake() noexcept;

 private:
  std::atomic<std::uint32_t> value_{0};
  // How many are asleep or about to be. A process that is killed in its sleep leaves it too high:
  // that costs a system call at each publish and nothing else.
  std::atomic<std::uint32_t> sleepers_{0};
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free,
              "counters lie in memory shared by processes");

}  // namespace sifr::detail
