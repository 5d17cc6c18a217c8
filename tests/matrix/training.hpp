#pragma once

// One training of the matrix: told by a text, so that it can be handed to another program, and
// carried out by ranks that are threads or processes.
#include "engine/context.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sifr::test {

inline constexpr int kTrainingSteps = 6;
inline constexpr double kTrainingLr = 0.01;
inline constexpr double kTrainingClip = 0.3;

struct Training {
  // What the numbers depend on.
  std::string model = "odd";  // or the Llama, "tied" or "untied"
  bool is_bf16 = false;
  int ranks = 3;
  int accumulation = 3;
  bool reduces_at_boundary = false;
  // What they must not depend on.
  int stage = 0;
  std::string bucket = "huge";    // elements reduced or gathered together: tiny, odd, huge
  std::string prefetch = "huge";  // elements gathered ahead: none, some, huge
  std::string chunk = "huge";     // elements updated at a time: tiny, odd, huge
  std::string window = "all";     // what stays gathered at stage 3: none, some, all
  bool overlap = false;
  bool recompute = false;
  bool is_pinned = false;
  bool are_processes = false;  // the ranks, instead of threads
};

/// Reads "model=odd dtype=bf16 ranks=3 accumulation=3 reduce_at=boundary stage=1 bucket=tiny
/// prefetch=some chunk=tiny window=none overlap=on recompute=no pinned=yes ranks_are=processes";
/// what is left out keeps its default. Throws std::invalid_argument for an unknown key.
[[nodiscard]] Training parse_training(std::string_view text);

/// What must agree to the bit between trainings whose numbers depend on the same.
struct Figures {
  std::string start;  // weights hash
  std::string end;
  std::vector<double> losses = {};          // [step]
  std::vector<double> gradient_norms = {};  // [step]
  friend bool operator==(const Figures&, const Figures&) = default;
};

[[nodiscard]] std::string to_text(const Figures& figures);

/// One rank's part of the training. Collective.
[[nodiscard]] Figures train(const Training& training, Context& context);

}  // namespace sifr::test
