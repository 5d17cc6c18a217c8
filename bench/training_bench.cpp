// What the engine costs around a model's own mathematics.
//
//   training_bench                                        two ranks as threads
//   sifr run --ranks 2 --bind-cores -- training_bench     two ranks as processes: 1. and 3.
//
// 1. Start of two ranks with the quickstart's model: config, plan, arenas and initial values.
// 2. One rank, stage 0, against the same model in a plain loop with the same kernels: target 1.03.
// 3. Two ranks, stages 1 to 3 against stage 0: target 1.10 for stage 3.
//
// All runs of a row are interleaved; figures are medians of rounds, ratios medians of per-round
// ratios.
#include "bench/measure.hpp"
#include "bench/plain_loop.hpp"
#include "bench/ranks.hpp"
#include "examples/llama/llama_model.hpp"
#include "sifr.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

namespace {

using bench::TrainingOptions;

sifr::Config make_config(int stage) {
  return sifr::parse_config(
      fmt::format(
          R"({{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "bf16": {{"enabled": true}},
    "optimizer": {{"type": "AdamW", "params": {{"lr": 1e-4}}}}, "zero_optimization": {{"stage": {}}}}})",
          stage),
      "bench");
}

/// A rank that trains, one step at a time.
class Trainer {
 public:
  Trainer(const TrainingOptions& options, sifr::Context& context, int stage)
      : model_({.shape = llama::parse_shape(options.shape), .seed = 1}),
        engine_(sifr::Engine::initialize(model_, make_config(stage), {.context = &context})),
        tokens_(bench::random_tokens(options, context.rank())),
        batch_{tokens_, options.extent()} {}
  void step() {
    engine_.forward(batch_);
    engine_.backward();
    engine_.step();
  }

 private:
  llama::Llama model_;
  sifr::Engine engine_;
  std::vector<std::int32_t> tokens_;
  llama::TokenBatch batch_;
};

/// Rank 0 prints.
void measure_start(TrainingOptions options, sifr::Context& context) {
  constexpr int kStarts = 5;
  options.shape = "hidden=384,layers=6,heads=6,kv_heads=2,intermediate=1024,vocab=256,tied=0";
  std::vector<double> seconds;
  for (int start = 0; start < kStarts; ++start) {
    context.barrier();
    seconds.push_back(bench::seconds_of([&] { const Trainer trainer(options, context, 3); }));
  }
  if (context.rank() != 0) return;
  fmt::print("start of the quickstart's model at stage 3, {} ranks: {:.3f} s (target < 1 s)\n",
             context.size(),
             bench::median(seconds));
}

void measure_plain(const TrainingOptions& options, sifr::Context& context) {
  bench::PlainLoop plain(options);
  Trainer engine(options, context, 0);
  std::vector<double> plains;
  std::vector<double> engines;
  for (int round = -2; round < options.rounds; ++round) {  // two rounds warm up
    const double of_plain = bench::seconds_of([&] { plain.step(); });
    const double of_engine = bench::seconds_of([&] { engine.step(); });
    if (round < 0) continue;
    plains.push_back(of_plain);
    engines.push_back(of_engine);
  }
  const std::vector<double> ratios = bench::ratios(engines, plains);
  fmt::print(
      "1 rank: plain loop {:.4f} s/step, stage 0 {:.4f} s/step, ratio {:.3f} (target 1.03; min "
      "{:.3f}, max {:.3f})\n",
      bench::median(plains),
      bench::median(engines),
      bench::median(ratios),
      *std::min_element(ratios.begin(), ratios.end()),
      *std::max_element(ratios.begin(), ratios.end()));
}

/// Rank 0 prints. A step ends for all ranks at the barrier before the next.
void measure_stages(const TrainingOptions& options, sifr::Context& context) {
  constexpr int kStages = 4;
  std::vector<std::unique_ptr<Trainer>> trainers;
  trainers.reserve(kStages);
  for (int stage = 0; stage < kStages; ++stage)
    trainers.push_back(std::make_unique<Trainer>(options, context, stage));
  std::array<std::vector<double>, kStages> times;
  for (int round = -2; round < options.rounds; ++round) {  // two rounds warm up
    for (std::size_t stage = 0; stage < kStages; ++stage) {
      context.barrier();
      const double seconds = bench::seconds_of([&] {
        trainers[stage]->step();
        context.barrier();
      });
      if (round >= 0) times[stage].push_back(seconds);
    }
  }
  if (context.rank() != 0) return;
  for (std::size_t stage = 0; stage < kStages; ++stage) {
    fmt::print("{} {}, stage {}: {:.4f} s/step, ratio to stage 0 {:.3f}{}\n",
               context.size(),
               bench::is_launched() ? "processes" : "threads",
               stage,
               bench::median(times[stage]),
               bench::median(bench::ratios(times[stage], times[0])),
               stage == 3 ? " (target 1.10)" : "");
  }
}

void run(const TrainingOptions& options) {
  if (!bench::is_launched()) {
    fmt::print("shape {}, {} tokens a rank, bf16, one thread a rank, {} rounds\n",
               options.shape,
               options.tokens,
               options.rounds);
    bench::run_ranks(1, 1, [&](sifr::Context& context) { measure_plain(options, context); });
  }
  bench::run_ranks(2, 1, [&](sifr::Context& context) {
    measure_start(options, context);
    measure_stages(options, context);
  });
}

void add_options(CLI::App& app, TrainingOptions& options) {
  app.add_option("--shape", options.shape, "of the Llama");
  app.add_option("--tokens", options.tokens, "of a rank in each step, in two rows")
      ->check(CLI::Range(2, 1 << 20));
  app.add_option("--rounds", options.rounds, "rounds that count")
      ->check(CLI::Range(1, bench::kMostRounds));
}

}  // namespace

int main(int count, char** arguments) {
  TrainingOptions options;
  return bench::run_program({.name = "training_bench",
                             .about = "Cost of the engine around a model's own mathematics",
                             .add_options = [&](CLI::App& app) { add_options(app, options); },
                             .run = [&] { run(options); }},
                            count,
                            arguments);
}
