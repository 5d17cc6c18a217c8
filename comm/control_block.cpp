#include "comm/detail/control_block.hpp"

#include <fmt/format.h>

#include <array>
#include <new>

namespace sifr::detail {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

std::size_t ControlBlock::bytes_for(int ranks) noexcept {
  const std::size_t bytes = sizeof(AbortPage) + static_cast<std::size_t>(ranks) * sizeof(RankBlock);
  return (bytes + kPage - 1) / kPage * kPage;
}

ControlBlock::ControlBlock(std::byte* memory, int ranks, std::shared_ptr<void> keep) noexcept
    : keep_(std::move(keep)), abort_page_(new (memory) AbortPage) {
  std::byte* blocks = memory + sizeof(AbortPage);
  for (int r = 0; r < ranks; ++r)
    new (blocks + static_cast<std::size_t>(r) * sizeof(RankBlock)) RankBlock;
  ranks_ = {std::launder(reinterpret_cast<RankBlock*>(blocks)), static_cast<std::size_t>(ranks)};
}

ControlBlock ControlBlock::attach(std::byte* memory,
                                  int ranks,
                                  std::shared_ptr<void> keep) noexcept {
  ControlBlock block;
  block.keep_ = std::move(keep);
  block.abort_page_ = reinterpret_cast<AbortPage*>(memory);
  block.ranks_ = {reinterpret_cast<RankBlock*>(memory + sizeof(AbortPage)),
                  static_cast<std::size_t>(ranks)};
  return block;
}

void ControlBlock::abort(const Failure& failure) const noexcept {
  abort_page_->record(failure);
  wake_all();
}

// The others need to know who failed, and of what. Further lines, such as a table of memory, are
// told where they belong: by the rank itself.
void ControlBlock::fail(int rank, std::string_view text) const noexcept {
  text = text.substr(0, text.find('\n'));
  std::array<char, 1024> line = {};
  std::string_view whole = text;
  try {
    const auto end = fmt::format_to_n(line.data(), line.size(), "rank {} failed: {}", rank, text);
    whole = {line.data(), end.out};
  } catch (...) {  // then without the rank in the text: a failure is announced in any case
    whole = text;
  }
  abort({FailureKind::kFailed, rank, whole});
}

void ControlBlock::wake_all() const noexcept {
  for (RankBlock& block : ranks_) {
    for (Counter* counter : {&block.ready, &block.done, &block.filled, &block.drained})
      counter->wake();
  }
}

std::string phase_of(const RankBlock& block) {
  const std::string phase = block.phase.load();
  return phase.empty() ? "not told" : phase;
}

std::string whereabouts(const RankBlock& block) {
  const std::string call = block.last_call.load();
  return fmt::format(
      "last collective: {}; phase: {}",
      call.empty() ? "none yet" : fmt::format("number {}, {}", block.ready.value(), call),
      phase_of(block));
}

ControlBlock make_thread_control_block(int ranks) {
  auto deleter = [](std::byte* memory) { ::operator delete (memory, std::align_val_t{kPage}); };
  const std::shared_ptr<std::byte> memory(
      static_cast<std::byte*>(
          ::operator new (ControlBlock::bytes_for(ranks), std::align_val_t{kPage})),
      deleter);
  return {memory.get(), ranks, memory};
}

}  // namespace sifr::detail
