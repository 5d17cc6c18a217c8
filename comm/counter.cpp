#include "comm/detail/counter.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <climits>
#include <ctime>
#include <unistd.h>

namespace sifr::detail {

void Counter::publish(std::uint32_t value) noexcept {
  // Both this store and the load, and both operations of sleep_until, are sequentially consistent:
  // either the sleeper sees the value or the publisher sees the sleeper.
  value_.store(value, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0) wake();
}

void Counter::sleep_until(std::uint32_t target, std::chrono::nanoseconds longest) noexcept {
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  const std::uint32_t seen = value_.load(std::memory_order_seq_cst);
  if (static_cast<std::int32_t>(seen - target) < 0 && longest.count() > 0) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(longest);
    const timespec limit = {seconds.count(), (longest - seconds).count()};
    // The kernel compares the word with `seen` once more; every way to return early is a reason to
    // look again.
    syscall(SYS_futex, &value_, FUTEX_WAIT, seen, &limit, nullptr, 0);
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void Counter::wake() noexcept {
  syscall(SYS_futex, &value_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace sifr::detail
