#pragma once

#include "tests/matrix/training.hpp"

#include <cstddef>
#include <set>
#include <string>

namespace sifr::test {

/// What the numbers depend on: trainings that share it must agree to the bit, whatever their stage,
/// buckets, prefetch, chunks, window, overlap, placement.
struct NumberClass {
  std::string model = "odd";
  std::string dtype = "fp32";
  int ranks = 3;
  int accumulation = 3;
  std::string reduce_at = "micro_batch";
  [[nodiscard]] std::string text() const;
};

struct Coverage {
  std::size_t classes = 0;
  std::size_t runs = 0;
  std::size_t covered = 0;      // pairs of values that met in a run
  std::size_t pairs = 0;        // … that may meet
  std::set<int> unpinned = {};  // numbers of ranks for which this machine has too few cores to pin
  Coverage& operator+=(const Coverage& other);
  /// "4 classes: 56 runs cover 600 of 600 pairs", and what had no effect on this machine.
  [[nodiscard]] std::string text() const;
};

/// What the odd model must come to: the plain reference's, which shares no source with the engine.
[[nodiscard]] Figures reference_figures(const NumberClass& numbers);

/// Trains once for each run of a pairwise covering design over everything the numbers must not
/// depend on, and checks with Catch2 that all agree, and the odd model with the plain reference.
Coverage check_same_bits(const NumberClass& numbers);
/// The same for the stages alone, at stage 3 with the narrowest and the widest window.
Coverage check_stages(const NumberClass& numbers);

}  // namespace sifr::test
