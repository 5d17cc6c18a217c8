#include "comm/detail/abort_page.hpp"

#include "comm/communicator.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

namespace sifr::detail {
namespace {

/// Copies what fits, and ends it with a zero.
template <std::size_t N>
void copy_text(std::string_view from, std::array<char, N>& to) noexcept {
  const std::size_t length = std::min(from.size(), N - 1);
  std::copy_n(from.data(), length, to.data());
  to[length] = '\0';
}

}  // namespace

bool AbortPage::record(const Failure& failure) noexcept {
  std::uint32_t none = kNone;
  if (!state_.compare_exchange_strong(none, kBeingWritten, std::memory_order_seq_cst)) return false;
  kind_ = failure.kind;
  rank_ = failure.rank;
  copy_text(failure.text, text_);
  state_.store(kWritten, std::memory_order_release);
  return true;
}

void AbortPage::raise() const {
  // The writer needs less than a microsecond, unless it is killed in between.
  const auto patience_ends = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (state_.load(std::memory_order_acquire) != kWritten) {
    if (std::chrono::steady_clock::now() > patience_ends) {
      throw CommError(
          "the group has failed, and the rank that found out died while it wrote down why", -1);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  const std::string text = text_.data();
  if (kind_ == FailureKind::kTimeout) throw CommTimeout(text, rank_);
  if (kind_ == FailureKind::kDiffers) throw CallsDiffer(text, rank_);
  throw CommError(text, rank_);
}

}  // namespace sifr::detail
