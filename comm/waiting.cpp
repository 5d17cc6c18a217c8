#include "comm/detail/waiting.hpp"

#include "device/detail/log.hpp"

#include <fmt/chrono.h>

#include <algorithm>
#include <string>
#include <utility>

namespace sifr::detail {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr auto kSpin = std::chrono::microseconds(2);
constexpr auto kLongestSleep = milliseconds(50);

}  // namespace

/// When a wait began, and what it does next if nothing happens.
struct Waiting::Clock {
  steady_clock::time_point start = steady_clock::now();
  steady_clock::time_point next_report;
  milliseconds report_interval;

  explicit Clock(milliseconds report_after)
      : next_report(start + report_after), report_interval(report_after) {}
  [[nodiscard]] milliseconds waited(steady_clock::time_point now) const {
    return std::chrono::duration_cast<milliseconds>(now - start);
  }
};

Waiting::Waiting(ControlBlock control, int rank, const GroupOptions& options)
    : control_(std::move(control)),
      rank_(rank),
      report_after_(
          std::clamp(options.report_after, milliseconds(1), milliseconds(kLongestTimeout))),
      log_(options.log),
      may_spin_(options.has_own_core) {}

void Waiting::wait_for(int peer, Which which, std::uint32_t target, const Call& call) const {
  const Counter& counter = control_.rank(peer).*which;
  if (counter.has_reached(target) || spin(counter, target)) return;
  Clock clock(report_after_);
  wait_until(peer, which, target, call, clock);
}

void Waiting::wait_for_all(Which which, std::uint32_t target, const Call& call) const {
  int peer = 0;
  const auto has_come = [&](int r) {
    const Counter& counter = control_.rank(r).*which;
    return r == rank_ || counter.has_reached(target) || spin(counter, target);
  };
  while (peer < control_.size() && has_come(peer))
    ++peer;
  if (peer == control_.size()) return;
  Clock clock(report_after_);
  for (; peer < control_.size(); ++peer) {
    if (peer != rank_) wait_until(peer, which, target, call, clock);
  }
}

bool Waiting::spin(const Counter& counter, std::uint32_t target) const noexcept {
  if (!may_spin_) return false;
  const auto end = steady_clock::now() + kSpin;
  do {
    if (counter.has_reached(target)) return true;
  } while (steady_clock::now() < end);
  return false;
}

void Waiting::wait_until(
    int peer, Which which, std::uint32_t target, const Call& call, Clock& clock) const {
  RankBlock& block = control_.rank(peer);
  Counter& counter = block.*which;
  while (!counter.has_reached(target)) {
    // Whoever fails or leaves after its part has raised its counters before it says so: look again.
    if (control_.abort_page().happened() && !counter.has_reached(target))
      control_.abort_page().raise();
    if (block.has_left.load(std::memory_order_acquire) != 0 && !counter.has_reached(target)) {
      fail_because_left(peer, call);
    }
    const auto now = steady_clock::now();
    const auto deadline = clock.start + call.timeout;
    if (now >= deadline) give_up(which, target, call);
    if (now >= clock.next_report) {
      report(which, target, call, clock.waited(now));
      clock.report_interval *= 2;
      clock.next_report = now + clock.report_interval;
    }
    counter.sleep_until(target, std::min<std::chrono::nanoseconds>(kLongestSleep, deadline - now));
  }
}

std::string Waiting::missing(Which which, std::uint32_t target) const {
  std::string text;
  for (int r = 0; r < control_.size(); ++r) {
    const RankBlock& block = control_.rank(r);
    if (r == rank_ || (block.*which).has_reached(target)) continue;
    text += fmt::format("{}rank {} ({})", text.empty() ? "" : ", ", r, whereabouts(block));
  }
  return text;
}

void Waiting::report(Which which,
                     std::uint32_t target,
                     const Call& call,
                     milliseconds waited) const {
  log(log_,
      rank_,
      "comm",
      Level::kWarning,
      "waiting for {:.1f} s in {} (collective {}; phase: {}) for {}; gives up after {:.1f} s",
      static_cast<double>(waited.count()) / 1e3,
      describe(call.operation, call.tag),
      call.sequence,
      phase_of(control_.rank(rank_)),
      missing(which, target),
      static_cast<double>(call.timeout.count()) / 1e3);
}

void Waiting::give_up(Which which, std::uint32_t target, const Call& call) const {
  int silent = -1;
  for (int r = control_.size() - 1; r >= 0; --r) {
    if (r != rank_ && !(control_.rank(r).*which).has_reached(target)) silent = r;
  }
  const std::string text = fmt::format(
      "rank {} waited {:.1f} s in {} (collective {}) for {}; if it only needs longer, as for a "
      "large save, raise comm_timeout in the config's \"sifr\"",
      rank_,
      static_cast<double>(call.timeout.count()) / 1e3,
      describe(call.operation, call.tag),
      call.sequence,
      missing(which, target));
  control_.abort({FailureKind::kTimeout, silent, text});
  control_.abort_page().raise();
}

void Waiting::fail_because_left(int peer, const Call& call) const {
  const std::string phase = control_.rank(peer).phase.load();
  const std::string text =
      fmt::format("rank {} left the group{}, while rank {} waits for it in {} (collective {})",
                  peer,
                  phase.empty() ? "" : fmt::format(" (its phase: {})", phase),
                  rank_,
                  describe(call.operation, call.tag),
                  call.sequence);
  control_.abort({FailureKind::kLeft, peer, text});
  control_.abort_page().raise();
}

}  // namespace sifr::detail
