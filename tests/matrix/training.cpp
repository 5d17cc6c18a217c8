#include "tests/matrix/training.hpp"

#include "device/philox.hpp"
#include "examples/llama/llama_model.hpp"
#include "sifr.hpp"
#include "tests/engine/odd_model.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>

namespace sifr::test {
namespace {

/// A model with its data.
class Trainee {
 public:
  Trainee() = default;
  Trainee(const Trainee&) = delete;
  Trainee& operator=(const Trainee&) = delete;
  virtual ~Trainee() = default;
  [[nodiscard]] virtual Model& model() = 0;
  /// Forward and backward of one micro-batch; the loss.
  virtual double run(Engine& engine, const OddPlace& place) = 0;
};

class OddTrainee final : public Trainee {
 public:
  Model& model() override { return model_; }
  double run(Engine& engine, const OddPlace& place) override {
    model_.run(engine, place);
    return 1.0 / static_cast<double>(3 + place.rank + 5 * place.step + 7 * place.micro);
  }

 private:
  OddModel model_;
};

class LlamaTrainee final : public Trainee {
 public:
  LlamaTrainee(bool is_tied, bool recompute) : model_(options(is_tied, recompute)) {}
  Model& model() override { return model_; }
  double run(Engine& engine, const OddPlace& place) override {
    std::vector<std::int32_t> tokens;
    const auto stream =
        static_cast<std::uint64_t>((place.step * 31 + place.micro) * 31 + place.rank);
    for (std::uint64_t i = 0; i < kRows * (kLength + 1); ++i)
      tokens.push_back(static_cast<std::int32_t>(philox_uniform(5, stream, i) * kVocab));
    const llama::TokenBatch batch{tokens, {kRows, kLength}};
    const Loss loss = engine.forward(batch);
    model_.backward(engine, place.step % 2 == 0 ? 1.0F : 0.01F);  // clipped in some steps only
    return loss.sum;
  }

 private:
  static constexpr std::int64_t kRows = 2;
  static constexpr std::int64_t kLength = 7;
  static constexpr float kVocab = 37;
  static llama::LlamaOptions options(bool is_tied, bool recompute) {
    llama::LlamaOptions options;
    options.shape =
        llama::parse_shape("hidden=24,layers=2,heads=3,kv_heads=1,intermediate=40,vocab=37,tied=0");
    options.shape.tied = is_tied;
    options.recompute = recompute;
    return options;
  }
  llama::Llama model_;
};

std::unique_ptr<Trainee> make_trainee(const Training& training) {
  if (training.model == "odd") return std::make_unique<OddTrainee>();
  return std::make_unique<LlamaTrainee>(training.model == "tied", training.recompute);
}

Config make_config(const Training& training) {
  const std::map<std::string, std::int64_t> buckets = {
      {"tiny", 300}, {"odd", 1777}, {"huge", 500'000'000}};
  const std::map<std::string, std::int64_t> prefetches = {
      {"none", 0}, {"some", 1500}, {"huge", 50'000'000}};
  const std::map<std::string, std::int64_t> chunks = {
      {"tiny", 1}, {"odd", 1009}, {"huge", 1'000'000'000}};
  const std::map<std::string, std::string> windows = {
      {"none",
       R"("stage3_param_persistence_threshold": 0, "stage3_max_live_parameters": 0, "stage3_max_reuse_distance": 0)"},
      {"some", R"("stage3_param_persistence_threshold": 300, "stage3_max_live_parameters": 6000)"},
      {"all", R"("stage3_max_reuse_distance": 1000000000)"}};
  return parse_config(
      fmt::format(
          R"({{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": {}, "gradient_clipping": {},
    "optimizer": {{"type": "AdamW", "params": {{"lr": {}, "betas": [0.9, 0.95], "weight_decay": 0.1}}}},
    "bf16": {{"enabled": {}}}, "sifr": {{"reduce_at": "{}", "comm_timeout": 60}},
    "zero_optimization": {{"stage": {}, "overlap_comm": {}, "reduce_bucket_size": {}, "allgather_bucket_size": {},
      "stage3_prefetch_bucket_size": {}, "sub_group_size": {}, {}}}}})",
          training.accumulation,
          kTrainingClip,
          kTrainingLr,
          training.is_bf16,
          training.reduces_at_boundary ? "boundary" : "micro_batch",
          training.stage,
          training.overlap,
          buckets.at(training.bucket),
          buckets.at(training.bucket),
          prefetches.at(training.prefetch),
          chunks.at(training.chunk),
          windows.at(training.window)),
      "matrix.json");
}

}  // namespace

Training parse_training(std::string_view text) {
  Training training;
  const std::map<std::string, std::function<void(const std::string&)>> setters = {
      {"model", [&](const std::string& value) { training.model = value; }},
      {"dtype", [&](const std::string& value) { training.is_bf16 = value == "bf16"; }},
      {"ranks", [&](const std::string& value) { training.ranks = std::stoi(value); }},
      {"accumulation", [&](const std::string& value) { training.accumulation = std::stoi(value); }},
      {"reduce_at",
       [&](const std::string& value) { training.reduces_at_boundary = value == "boundary"; }},
      {"stage", [&](const std::string& value) { training.stage = std::stoi(value); }},
      {"bucket", [&](const std::string& value) { training.bucket = value; }},
      {"prefetch", [&](const std::string& value) { training.prefetch = value; }},
      {"chunk", [&](const std::string& value) { training.chunk = value; }},
      {"window", [&](const std::string& value) { training.window = value; }},
      {"overlap", [&](const std::string& value) { training.overlap = value == "on"; }},
      {"recompute", [&](const std::string& value) { training.recompute = value == "yes"; }},
      {"pinned", [&](const std::string& value) { training.is_pinned = value == "yes"; }},
      {"ranks_are",
       [&](const std::string& value) { training.are_processes = value == "processes"; }}};
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const auto setter = setters.find(word.substr(0, equals));
    if (equals == std::string::npos || setter == setters.end())
      throw std::invalid_argument("a training has no '" + word + "'");
    setter->second(word.substr(equals + 1));
  }
  return training;
}

Figures train(const Training& training, Context& context) {
  const std::unique_ptr<Trainee> trainee = make_trainee(training);
  auto engine = Engine::initialize(trainee->model(), make_config(training), {.context = &context});
  Figures figures;
  figures.start = engine.weights_hash();
  for (std::int64_t step = 0; step < kTrainingSteps; ++step) {
    StepReport report;
    for (std::int64_t micro = 0; micro < training.accumulation; ++micro) {
      const double loss = trainee->run(engine, {context.rank(), step, micro});
      report = engine.step({.loss = loss});
    }
    figures.losses.push_back(report.loss);
    figures.gradient_norms.push_back(report.gradient_norm);
  }
  figures.end = engine.weights_hash();
  return figures;
}

std::string to_text(const Figures& figures) {
  return fmt::format("{} {}\n  losses {:a}\n  gradient norms {:a}\n",
                     figures.start,
                     figures.end,
                     fmt::join(figures.losses, " "),
                     fmt::join(figures.gradient_norms, " "));
}

}  // namespace sifr::test
