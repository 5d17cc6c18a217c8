// What the engine costs around a model's own mathematics.
//
//   training_bench [--shape S] [--tokens N] [--rounds N]
//
// 1. Start: config, plan, arenas and initial values.
// 2. One rank, stage 0, against the same model in a plain loop with the same kernels: target 1.03.
// 3. Two ranks (threads), stages 1 to 3 against stage 0: target 1.10 for stage 3.
//
// All runs of a row are interleaved; figures are medians of rounds, ratios medians of per-round
// ratios.
#include "device/device.hpp"
#include "device/kernels.hpp"
#include "examples/llama/llama_model.hpp"
#include "examples/llama/plain_source.hpp"
#include "examples/llama/transformer.hpp"
#include "sifr.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using sifr::bfloat16;
using sifr::ConstView;
using sifr::DType;
using sifr::View;

struct Options {
  std::string shape = "hidden=320,layers=8,heads=5,kv_heads=5,intermediate=864,vocab=256,tied=1";
  std::int64_t rows = 2;
  std::int64_t length = 256;
  int rounds = 7;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::vector<std::int32_t> random_tokens(const Options& options, int rank) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(options.rows * (options.length + 1)));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<std::int32_t>(
        255 * sifr::philox_uniform(3, static_cast<std::uint64_t>(rank), i));
  }
  return tokens;
}

// The same step without an engine: forward, backward, fp32 sums, exact norm, clip, AdamW.
class PlainLoop {
 public:
  explicit PlainLoop(const Options& options)
      : shape_(llama::parse_shape(options.shape)),
        model_(shape_),
        device_(sifr::make_host_device({})),
        activations_(device_->allocate(bytes(options), sifr::Purpose::kActivation)),
        transformer_(shape_, {options.rows, options.length}, {}, activations_.data()),
        tokens_(random_tokens(options, 0)),
        extent_{options.rows, options.length} {
    std::int64_t count = 0;
    for (std::size_t p = 0; p < model_.parameters().size(); ++p)
      count += static_cast<std::int64_t>(model_.weights(p).size());
    for (sifr::Buffer& buffer : state_)
      buffer = device_->allocate(count * 4, sifr::Purpose::kOptimizer);
    for (std::size_t p = 0; p < model_.parameters().size(); ++p) {
      const bool is_norm = model_.parameters()[p].is_norm;
      for (std::size_t i = 0; i < model_.weights(p).size(); ++i) {
        model_.weights(p)[i] =
            sifr::to_bfloat16(is_norm ? 1.0F : 0.02F * sifr::philox_normal(1, p, i));
      }
    }
  }

  double step() {
    auto source = model_.source();
    model_.zero_gradients();
    const double loss = transformer_.forward(source, {tokens_, extent_});
    transformer_.backward(source, 1.0F);
    update();
    return loss;
  }

 private:
  std::int64_t bytes(const Options& options) const {
    return llama::Transformer<bfloat16>::memory_bytes(shape_, {options.rows, options.length}, {});
  }
  void update() {
    sifr::Stream& stream = device_->compute();
    sifr::kernels::SquareSum squares;
    for_each([&](std::size_t p, std::int64_t first, std::int64_t count) {
      const ConstView gradient{
          reinterpret_cast<const std::byte*>(model_.gradients(p).data()), count, DType::kBFloat16};
      sifr::kernels::sum_in_order(
          std::span(&gradient, 1), state(0, first, count), sifr::kernels::Into::kWrite, stream);
      sifr::kernels::square_sum(state(0, first, count), squares, stream);
    });
    const double norm = std::sqrt(squares.sum.value());
    sifr::kernels::AdamScalars scalars;
    scalars.factor = static_cast<float>(std::min(1.0, 1.0 / (norm + 1e-6)));
    scalars.one_minus_beta1 = 0.1F;
    scalars.one_minus_beta2 = 0.001F;
    scalars.step_size = 1e-4F;
    for_each([&](std::size_t p, std::int64_t first, std::int64_t count) {
      const View weights{
          reinterpret_cast<std::byte*>(model_.weights(p).data()), count, DType::kBFloat16};
      sifr::kernels::adam({state(0, first, count),
                           state(1, first, count),
                           state(2, first, count),
                           state(3, first, count),
                           weights},
                          scalars,
                          stream);
    });
  }
  [[nodiscard]] View state(std::size_t which, std::int64_t first, std::int64_t count) const {
    return {state_[which].data() + first * 4, count, DType::kFloat32};
  }
  template <class F>
  void for_each(const F& f) {
    std::int64_t first = 0;
    for (std::size_t p = 0; p < model_.parameters().size(); ++p) {
      const auto count = static_cast<std::int64_t>(model_.weights(p).size());
      f(p, first, count);
      first += count;
    }
  }

  llama::LlamaShape shape_;
  llama::PlainModel<bfloat16> model_;
  std::unique_ptr<sifr::Device> device_;
  sifr::Buffer activations_;
  llama::Transformer<bfloat16> transformer_;
  std::vector<std::int32_t> tokens_;
  llama::Extent extent_;
  sifr::Buffer state_[4];  // sums, masters, m, v
};

sifr::Config make_config(int stage) {
  return sifr::parse_config(
      fmt::format(
          R"({{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "bf16": {{"enabled": true}},
    "optimizer": {{"type": "AdamW", "params": {{"lr": 1e-4}}}}, "zero_optimization": {{"stage": {}}}}})",
          stage),
      "bench");
}

// A rank that trains, one step at a time, on the thread that calls.
class Trainer {
 public:
  Trainer(const Options& options, sifr::Context& context, int stage)
      : model_({.shape = llama::parse_shape(options.shape), .seed = 1}),
        engine_(sifr::Engine::initialize(model_, make_config(stage), {.context = &context})),
        tokens_(random_tokens(options, context.rank())),
        batch_{tokens_, {options.rows, options.length}} {}
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

const sifr::ContextOptions kQuiet{.log = [](sifr::Level, std::string_view) {}};

// Seconds of `steps` steps of a fresh group of ranks at one stage, the first two left out.
class Group {
 public:
  Group(const Options& options, int ranks, int stage)
      : contexts_(sifr::Context::threads(ranks, kQuiet)) {
    trainers_.resize(contexts_.size());
    each([&](std::size_t r) {
      trainers_[r] = std::make_unique<Trainer>(options, contexts_[r], stage);
    });
    step();
    step();
  }
  ~Group() {
    each([&](std::size_t r) { trainers_[r].reset(); });
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  double step() {
    const double start = now();
    each([&](std::size_t r) { trainers_[r]->step(); });
    return now() - start;
  }

 private:
  template <class F>
  void each(const F& f) {
    std::vector<std::thread> threads;
    for (std::size_t r = 1; r < contexts_.size(); ++r)
      threads.emplace_back([&f, r] { f(r); });
    f(0);
    for (std::thread& thread : threads)
      thread.join();
  }
  std::vector<sifr::Context> contexts_;
  std::vector<std::unique_ptr<Trainer>> trainers_;
};

void measure_start(const Options& options) {
  auto contexts = sifr::Context::threads(1, kQuiet);
  const double start = now();
  const Trainer trainer(options, contexts.front(), 3);
  fmt::print("start at stage 3, 1 rank: {:.3f} s (target < 1 s)\n", now() - start);
}

void measure_plain(const Options& options) {
  PlainLoop plain(options);
  Group engine(options, 1, 0);
  plain.step();
  std::vector<double> plains;
  std::vector<double> engines;
  std::vector<double> ratios;
  for (int round = 0; round < options.rounds; ++round) {
    const double start = now();
    plain.step();
    plains.push_back(now() - start);
    engines.push_back(engine.step());
    ratios.push_back(engines.back() / plains.back());
  }
  fmt::print(
      "1 rank: plain loop {:.4f} s/step, stage 0 {:.4f} s/step, ratio {:.3f} (target 1.03; min "
      "{:.3f}, max {:.3f})\n",
      median(plains),
      median(engines),
      median(ratios),
      *std::min_element(ratios.begin(), ratios.end()),
      *std::max_element(ratios.begin(), ratios.end()));
}

void measure_stages(const Options& options) {
  std::vector<std::unique_ptr<Group>> groups;
  for (int stage = 0; stage <= 3; ++stage)
    groups.push_back(std::make_unique<Group>(options, 2, stage));
  std::vector<std::vector<double>> times(groups.size());
  std::vector<std::vector<double>> ratios(groups.size());
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t s = 0; s < groups.size(); ++s)
      times[s].push_back(groups[s]->step());
    for (std::size_t s = 0; s < groups.size(); ++s)
      ratios[s].push_back(times[s].back() / times[0].back());
  }
  for (std::size_t s = 0; s < groups.size(); ++s) {
    fmt::print("2 ranks, stage {}: {:.4f} s/step, ratio to stage 0 {:.3f}{}\n",
               s,
               median(times[s]),
               median(ratios[s]),
               s == 3 ? " (target 1.10)" : "");
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--shape") options.shape = argv[i + 1];
    if (name == "--tokens") options.length = std::atoll(argv[i + 1]) / options.rows;
    if (name == "--rounds") options.rounds = std::atoi(argv[i + 1]);
  }
  if (argc % 2 == 0) {
    fmt::print("usage: training_bench [--shape SHAPE] [--tokens PER_RANK] [--rounds N]\n");
    return 2;
  }
  fmt::print("shape {}, {} x {} tokens a rank, bf16, one thread a rank, {} rounds\n",
             options.shape,
             options.rows,
             options.length,
             options.rounds);
  measure_start(options);
  measure_plain(options);
  measure_stages(options);
  return 0;
}
