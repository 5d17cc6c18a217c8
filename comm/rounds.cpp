#include "comm/detail/rounds.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <exception>
#include <string>
#include <thread>
#include <utility>

namespace sifr::detail {
namespace {

bool has_zeros(const Descriptor& descriptor) noexcept {
  for (const Entry& entry : descriptor.round()) {
    if (entry.place.allocation == Place::kNothing) return true;
  }
  return false;
}

}  // namespace

Rounds::Rounds(ControlBlock control, int rank, const GroupOptions& options, bool quiet)
    : control_(std::move(control)), rank_(rank), quiet_(quiet), waiting_(control_, rank, options) {}

Descriptor& Rounds::draft() {
  check();
  return own().descriptor;
}

void Rounds::check() const {
  if (control_.abort_page().happened()) control_.abort_page().raise();
}

void Rounds::post(Call& call) {
  call.sequence = ++sequence_;
  RankBlock& block = own();
  block.descriptor.sequence = call.sequence;
  block.descriptor.operation = call.operation;
  block.descriptor.set_tag(call.tag);
  std::array<char, SharedText::kCapacity> text = {};
  const auto end = fmt::format_to_n(text.data(),
                                    text.size(),
                                    "{}{}{}",
                                    name_of(call.operation),
                                    call.tag.empty() ? "" : " ",
                                    call.tag);
  block.last_call.store({text.data(), end.out});
  block.ready.publish(call.sequence);
}

void Rounds::meet(const Call& call) const {
  waiting_.wait_for_all(&RankBlock::ready, call.sequence, call);
  compare(call);
}

void Rounds::compare(const Call& call) const {
  // Everybody compares all with rank 0, so all find the same difference. Zeros have no dtype: where
  // rank 0 offers zeros, the dtypes of the others are still to be compared.
  for (int left = 0; left < size(); ++left) {
    for (int right = left + 1; right < size(); ++right) {
      const std::string text =
          difference(left, block(left).descriptor, right, block(right).descriptor);
      if (text.empty()) continue;
      const std::string whole = fmt::format(
          "the ranks' calls differ at collective {}: {}; every rank must make the same calls in "
          "the same order (rank {} was at: {}; rank {} at: {})",
          call.sequence,
          text,
          left,
          phase_of(block(left)),
          right,
          phase_of(block(right)));
      control_.abort({FailureKind::kDiffers, -1, whole});
      check();
    }
    if (!has_zeros(block(left).descriptor)) return;
  }
}

void Rounds::begin_reading() const {
  // Sequentially consistent, as AbortPage::happened and wait_until_unread are: either this rank
  // sees that the group has failed, or the failing rank sees that it reads.
  own().is_reading.store(1, std::memory_order_seq_cst);
  check();
}

void Rounds::finish(const Call& call) const {
  own().is_reading.store(0, std::memory_order_seq_cst);
  own().done.publish(call.sequence);
  waiting_.wait_for_all(&RankBlock::done, call.sequence, call);
}

void Rounds::fail(std::string_view text) const noexcept {
  control_.fail(rank_, text);
}

void Rounds::give_up() const noexcept {
  own().is_reading.store(0, std::memory_order_seq_cst);
  if (!control_.abort_page().happened()) {
    try {
      throw;
    } catch (const std::exception& error) {
      fail(error.what());
    } catch (...) {
      fail("an exception without a text");
    }
  }
  if (quiet_) wait_until_unread();
}

void Rounds::wait_until_unread() const noexcept {
  // What the caller handed to this collective may be freed as soon as it throws.
  for (int r = 0; r < size(); ++r) {
    while (block(r).is_reading.load(std::memory_order_seq_cst) != 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

}  // namespace sifr::detail
