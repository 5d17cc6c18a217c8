#include "engine/program/rank_output.hpp"

#include <fmt/format.h>

namespace sifr::program {

RankOutput::RankOutput(int rank, std::FILE* target)
    : prefix_(fmt::format("[{}] ", rank)), target_(target) {}

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
  std::fflush(target_);
}

void RankOutput::finish() {
  if (!line_.empty()) add("\n");
}

void RankOutput::write(std::string_view line) {
  // One call, so that a line is one write. A reader that has gone is not the job's concern.
  const std::string whole = fmt::format("{}{}\n", prefix_, line);
  std::fwrite(whole.data(), 1, whole.size(), target_);
  last_lines_.emplace_back(line);
  if (last_lines_.size() > kKeptLines) last_lines_.pop_front();
}

}  // namespace sifr::program
