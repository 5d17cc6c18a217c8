#include "engine/program/first_failure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <tuple>

namespace sifr::program {
namespace {

/// What ranks of the library say when another is at fault, whether it threw, died or left. They may
/// say and end so before that one has said a word itself.
std::array<std::string, 6> words_about(std::ptrdiff_t rank, pid_t process) {
  return {fmt::format("rank {} failed", rank),
          fmt::format("rank {} died", rank),
          fmt::format("rank {} left the group", rank),
          fmt::format("rank {} has: see its error", rank),
          fmt::format("the sink on rank {} threw", rank),
          fmt::format("(process {}) ended", process)};  // while the ranks meet
}

/// The ranks' standard output counts too: not every program prints its errors elsewhere.
bool says_one_of(const Rank& rank, std::span<const std::string> words) {
  const auto is_said = [words](const std::string& line) {
    return std::any_of(words.begin(), words.end(), [&line](const std::string& one) {
      return line.find(one) != std::string::npos;
    });
  };
  return std::any_of(rank.errors.last_lines().begin(), rank.errors.last_lines().end(), is_said) ||
         std::any_of(rank.output.last_lines().begin(), rank.output.last_lines().end(), is_said);
}

/// By ranks that failed themselves: others may print what they like.
bool is_blamed(const Rank& rank, std::span<const Rank> by) {
  const auto words = words_about(&rank - by.data(), rank.process.id);
  return std::any_of(by.begin(), by.end(), [&](const Rank& peer) {
    return &peer != &rank && !peer.ended->is_success() && says_one_of(peer, words);
  });
}

}  // namespace

const Rank* find_first_failure(std::span<const Rank> ranks) {
  const Rank* first = nullptr;
  std::tuple<bool, bool, std::int64_t> order_of_first;
  for (const Rank& rank : ranks) {
    const bool has_blame = is_blamed(rank, ranks);
    const bool has_failed = rank.ended_by_itself && !rank.ended->is_success();
    if (!has_blame && !has_failed) continue;
    const std::tuple order(!has_blame, !rank.ended->is_crash(), rank.silent_since);
    if (first != nullptr && order >= order_of_first) continue;
    first = &rank;
    order_of_first = order;
  }
  return first;
}

std::string report_of(const Rank& rank, std::span<const Rank> ranks) {
  std::string end = "is named as the cause and did not end until it was stopped";
  if (rank.ended_by_itself) end = rank.ended->describe();
  if (rank.ended_by_itself && rank.ended->is_success()) end += " while its group was still at work";
  const char* rest = ranks.size() > 1 ? "; the others were stopped" : "";
  return fmt::format("sifr run: rank {} {}{}.\n", &rank - ranks.data(), end, rest);
}

}  // namespace sifr::program
