#pragma once

#include "engine/program/exit_status.hpp"
#include "engine/program/rank_output.hpp"
#include "engine/program/rank_process.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

namespace sifr::program {

/// A rank from its start to its end.
struct Rank {
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  RankProcess process;
  RankOutput output;
  RankOutput errors;
  std::int64_t silent_since = kNever;  // the launcher's look at which its errors had come to an end
  std::optional<ExitStatus> ended = {};
  bool ended_by_itself = false;
};

/// The rank whose failure made the others fail, among ranks that have all ended; null if none
/// failed. Which of them ends first says little: a rank tells the others of its failure before it
/// prints and ends itself. So this asks, in this order: whom the others blame in their last lines,
/// who was killed or crashed, whose streams closed first. A rank that was blamed is it as well if
/// it had to be stopped (`ended_by_itself` is false then), or ended with 0 amid the others' work.
[[nodiscard]] const Rank* find_first_failure(std::span<const Rank> ranks);

/// A line that tells how the rank, one of `ranks`, ended. Its errors stand above, behind its
/// prefix.
[[nodiscard]] std::string report_of(const Rank& rank, std::span<const Rank> ranks);

}  // namespace sifr::program
