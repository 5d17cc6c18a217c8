// How near does a step of the engine come to the memory's own speed?
//
//   step_bench                                        one rank with a thread for each core
//   step_bench --ranks 2                              two ranks as threads
//   sifr run --ranks 2 --bind-cores -- step_bench     two ranks as processes
//
// The parts of step() run as step() calls them, on real arenas: the reducer's sums (of the step's
// first micro-batch, and of a later one), the norm, the update with its chunks, segments, clip
// factor and weights out; and step() as a whole, at a boundary, with nothing left out. Bytes are
// what a rank reads and writes for an element that it owns, w and g bytes of a weight and a
// gradient, W ranks: sum W·g + 4, accumulated W·g + 8, norm 4, update 28 (sum, master, m, v read,
// the last three written) and, unless the weight is the master, w. The roof is as in
// optimizer_bench; every round runs all rows.
#include "bench/ranks.hpp"
#include "bench/step_rows.hpp"
#include "device/device.hpp"

#include <fmt/format.h>

#include <memory>
#include <vector>

namespace {

using sifr::DType;

/// One rank's part; rank 0 prints.
class Rank {
 public:
  Rank(const bench::StepOptions& options, sifr::Context& context)
      : options_(options), context_(context) {
    for (sifr::Buffer& buffer : probed_)
      buffer = context.device().allocate(4 * kProbed, sifr::Purpose::kBucket);
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      parts_.push_back(std::make_unique<bench::StepParts>(options, dtype, context.communicator()));
      wholes_.push_back(std::make_unique<bench::WholeStep>(options, dtype, context));
    }
  }

  void run() {
    std::vector<bench::Row> roofs = probes(bench::roof_probes());
    std::vector<bench::Row> limits = probes(bench::limit_probes());
    std::vector<bench::Row> rows;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      for (bench::Row& row : parts_[i]->rows())
        rows.push_back(std::move(row));
      rows.push_back(wholes_[i]->row());
    }
    for (int round = -1; round < options_.rounds; ++round) {  // round -1 warms up
      for (std::vector<bench::Row>* all : {&roofs, &limits, &rows}) {
        for (bench::Row& row : *all) {
          context_.barrier();
          row.measure(round >= 0);
        }
      }
    }
    if (context_.rank() == 0) bench::print_table(roofs, {&limits, &rows});
  }

 private:
  static constexpr std::int64_t kProbed = 32 << 20;  // elements of each array

  std::vector<bench::Row> probes(std::span<const bench::Probe> all) {
    bench::Arrays arrays = {};
    for (std::size_t i = 0; i < arrays.size(); ++i)
      arrays[i] = reinterpret_cast<float*>(probed_[i].data());
    return bench::probe_rows(all, arrays, kProbed, context_.device().pool());
  }

  const bench::StepOptions& options_;
  sifr::Context& context_;
  std::array<sifr::Buffer, 4> probed_;
  std::vector<std::unique_ptr<bench::StepParts>> parts_;
  std::vector<std::unique_ptr<bench::WholeStep>> wholes_;
};

void run_rank(const bench::StepOptions& options, sifr::Context& context) {
  if (context.rank() == 0) {
    fmt::print("{}\nstage {}, {} units of {} elements, {} rounds\n",
               context.description(),
               options.stage,
               options.units(),
               options.unit_elements,
               options.rounds);
  }
  Rank(options, context).run();
}

void run(const bench::StepOptions& options) {
  bench::run_ranks(
      options.ranks, options.threads, [&](sifr::Context& context) { run_rank(options, context); });
}

void add_options(CLI::App& app, bench::StepOptions& options) {
  app.add_option("--ranks", options.ranks, "ranks, where no launcher started any")
      ->check(CLI::Range(1, bench::kMostThreads));
  app.add_option("--threads", options.threads, "of each rank; 0: cores / ranks")
      ->check(CLI::Range(0, bench::kMostThreads));
  app.add_option("--stage", options.stage, "ZeRO stage")->check(CLI::Range(1, 3));
  app.add_option("--rounds", options.rounds, "rounds that count")
      ->check(CLI::Range(1, bench::kMostRounds));
  app.add_option("--elements", options.elements, "elements of the model")
      ->check(CLI::Range(std::int64_t{1}, bench::kMostElements));
  app.add_option("--unit-elements", options.unit_elements, "elements of a unit, over 1000")
      ->check(CLI::Range(std::int64_t{1001}, std::int64_t{1} << 40));
}

}  // namespace

int main(int count, char** arguments) {
  bench::StepOptions options;
  return bench::run_program({.name = "step_bench",
                             .about = "Speed of the engine's step against the speed of memory",
                             .add_options = [&](CLI::App& app) { add_options(app, options); },
                             .run = [&] { run(options); }},
                            count,
                            arguments);
}
