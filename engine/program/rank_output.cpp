#include "engine/program/rank_output.hpp"

#include <fmt/format.h>

#include <array>
#include <unistd.h>
#include <utility>

namespace sifr::program {
namespace {

// More than a pipe holds, yet a bound: a rank that prints without end has the launcher look at
// signals and at the other ranks, too.
constexpr int kMostPieces = 16;

}  // namespace

RankOutput::RankOutput(int rank, LauncherOutput& target)
    : prefix_(fmt::format("[{}] ", rank)), target_(&target) {}

void RankOutput::read_from(int& descriptor) {
  for (int i = 0; i < kMostPieces && has_room(); ++i) {
    if (!read_piece(descriptor)) return;
  }
}

void RankOutput::read_rest(int& descriptor) {
  for (int i = 0; i < kMostPieces && read_piece(descriptor); ++i)
    continue;
}

/// True if there may be more.
bool RankOutput::read_piece(int& descriptor) {
  if (descriptor < 0) return false;
  std::array<char, 65536> bytes = {};
  const ssize_t count = read(descriptor, bytes.data(), bytes.size());
  if (count > 0) add({bytes.data(), static_cast<std::size_t>(count)});
  if (count == 0) close(std::exchange(descriptor, -1));  // poll passes over it from now on
  return count > 0;
}

void RankOutput::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    line_ += bytes.substr(0, end);
    if (end != std::string_view::npos || line_.size() >= kLongestLine) {
      write(line_);
      line_.clear();
    }
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  }
}

void RankOutput::finish() {
  if (!line_.empty()) add("\n");
}

void RankOutput::write(std::string_view line) {
  target_->add(fmt::format("{}{}\n", prefix_, line));
  last_lines_.emplace_back(line);
  if (last_lines_.size() > kKeptLines) last_lines_.pop_front();
}

}  // namespace sifr::program
