#include "tests/matrix/carry_out.hpp"

#include "comm/meeting_point.hpp"
#include "tests/comm/spawned.hpp"
#include "tests/support/run_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace sifr::test {
namespace {

std::vector<Figures> train_in_threads(const Training& training) {
  auto contexts = Context::threads(
      training.ranks, {.log = [](Level, std::string_view) {}, .bind_cores = training.is_pinned});
  std::vector<Figures> figures(contexts.size());
  run_ranks(contexts, [&](Context& context) {
    figures[static_cast<std::size_t>(context.rank())] = train(training, context);
  });
  return figures;
}

// What to_text wrote.
Figures parse_figures(const std::string& text) {
  Figures figures;
  std::istringstream words(text);
  words >> figures.start >> figures.end;
  std::vector<double>* into = nullptr;
  for (std::string word; words >> word;) {
    if (word == "losses") into = &figures.losses;
    if (word == "norms") into = &figures.gradient_norms;
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    if (into != nullptr && *end == '\0') into->push_back(value);
  }
  return figures;
}

std::vector<Figures> train_in_processes(const Training& training, const std::string& text) {
  const MeetingPoint meeting_point(training.ranks);
  std::vector<Spawned> ranks;
  ranks.reserve(static_cast<std::size_t>(training.ranks));
  for (int r = 0; r < training.ranks; ++r) {
    ranks.emplace_back(std::vector<std::string>{program_folder() + "/matrix_rank", text},
                       meeting_point.environment(r));
  }
  std::vector<Figures> figures;
  std::string errors;
  for (Spawned& rank : ranks) {
    const Spawned::Ended ended = rank.wait();
    figures.push_back(parse_figures(ended.output));
    if (ended.code != 0) errors += fmt::format("exit code {}: {}\n", ended.code, ended.errors);
  }
  if (!errors.empty()) throw std::runtime_error(text + ":\n" + errors);
  return figures;
}

}  // namespace

Figures carry_out(const std::string& text) {
  const Training training = parse_training(text);
  const std::vector<Figures> figures =
      training.are_processes ? train_in_processes(training, text) : train_in_threads(training);
  const auto is_first = [&](const Figures& of_rank) { return of_rank == figures.front(); };
  if (!std::all_of(figures.begin(), figures.end(), is_first))
    throw std::runtime_error(text + ": the ranks report different figures");
  return figures.front();
}

}  // namespace sifr::test
