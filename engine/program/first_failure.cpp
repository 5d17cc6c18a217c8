#include "engine/program/first_failure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>

namespace sifr::program {
namespace {

/// What a rank of the library says when a peer's process ends: "rank 1 died: process 4711 ended …".
bool is_called_dead(const Rank& rank, std::span<const Rank> by) {
  const std::string words = fmt::format("died: process {} ended", rank.process.id);
  return std::any_of(by.begin(), by.end(), [&words](const Rank& peer) {
    const auto& lines = peer.errors.last_lines();
    return std::any_of(lines.begin(), lines.end(), [&words](const std::string& line) {
      return line.find(words) != std::string::npos;
    });
  });
}

}  // namespace

const Rank* find_first_failure(std::span<const Rank> ranks) {
  const auto order = [ranks](const Rank& rank) {
    return std::tuple(!is_called_dead(rank, ranks), !rank.ended->is_crash(), rank.silent_since);
  };
  const Rank* first = nullptr;
  for (const Rank& rank : ranks) {
    if (rank.ended->is_success() || !rank.ended_by_itself) continue;
    if (first == nullptr || order(rank) < order(*first)) first = &rank;
  }
  return first;
}

}  // namespace sifr::program
