// The Llama on the engine's leases against the same mathematics on plain memory.
#include "examples/llama/llama_model.hpp"

#include "examples/llama/decoder.hpp"
#include "tests/llama/numbers.hpp"
#include "tests/llama/plain_training.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <string>

using Catch::Matchers::Contains;

namespace llama::test {
namespace {

const Extent kExtent = {2, 12};

LlamaShape small_shape(bool tied) {
  return {.hidden = 32,
          .layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .head_size = 8,
          .intermediate = 48,
          .vocab = 60,
          .tied = tied};
}

sifr::Config config(int stage, bool bf16) {
  const std::string json =
      R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2,
    "gradient_clipping": 1.0,
    "optimizer": {"type": "AdamW",
                  "params": {"lr": 1e-3, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}},
    "bf16": {"enabled": )" +
      std::string(bf16 ? "true" : "false") + R"(}, "zero_optimization": {"stage": )" +
      std::to_string(stage) + "}}";
  return sifr::parse_config(json, "the test's config");
}

/// A rank alone that logs nothing.
class QuietRank {
 public:
  [[nodiscard]] sifr::Engine engine(Llama& model, const sifr::Config& config) {
    return sifr::Engine::initialize(model, config, {.context = &contexts_.front()});
  }

 private:
  std::vector<sifr::Context> contexts_ =
      sifr::Context::threads(1, {.log = [](sifr::Level, std::string_view) {}});
};

/// The same values for a parameter wherever they are asked for.
std::map<std::string, std::vector<float>> values_by_name(const LlamaShape& shape) {
  std::map<std::string, std::vector<float>> values;
  unsigned seed = 0;
  for (const NamedUnit& unit : units_of(shape)) {
    for (const NamedParameter& parameter : unit.parameters) {
      std::int64_t count = 1;
      for (const std::int64_t size : parameter.shape)
        count *= size;
      std::vector<float>& all = values[parameter.name];
      for (const auto value : random_values<sifr::bfloat16>(count, ++seed, 0.2))
        all.push_back(widen(value));
    }
  }
  return values;
}

LlamaOptions options_of(const LlamaShape& shape,
                        const std::map<std::string, std::vector<float>>& values) {
  LlamaOptions options;
  options.shape = shape;
  options.fill = [&values](std::string_view name) -> sifr::Fill {
    const std::vector<float>& all = values.at(std::string(name));
    return [&all](std::int64_t first, std::span<float> part) {
      std::copy_n(all.begin() + first, part.size(), part.begin());
    };
  };
  return options;
}

std::vector<std::int32_t> tokens_of(unsigned seed, std::int64_t rows, std::int64_t length) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < rows * length; ++i)
    tokens.push_back(static_cast<std::int32_t>(random() % 60));
  return tokens;
}

template <class T>
void set_all(PlainTraining<T>& plain, const std::map<std::string, std::vector<float>>& values) {
  for (std::size_t i = 0; i < plain.model().parameters().size(); ++i) {
    plain.set(i, values.at(plain.model().parameters()[i].name));
  }
}

StepFacts engine_step(sifr::Engine& engine, std::span<const TokenBatch> micro_batches) {
  sifr::StepReport report;
  for (const TokenBatch& batch : micro_batches) {
    engine.forward(batch);
    engine.backward();
    report = engine.step();
  }
  return {report.loss, report.gradient_norm};
}

TEMPLATE_TEST_CASE("on the engine the Llama takes the plain loop's steps",
                   "[llama][engine][PRE17][ACT06]",
                   float,
                   sifr::bfloat16) {
  using T = TestType;
  const bool tied = GENERATE(false, true);
  const int stage = GENERATE(0, 3);
  const bool recompute = GENERATE(false, true);
  const LlamaShape shape = small_shape(tied);
  const auto values = values_by_name(shape);
  PlainTraining<T> plain(shape, kExtent, {});
  set_all(plain, values);
  LlamaOptions options = options_of(shape, values);
  options.recompute = recompute;
  Llama model(options);
  QuietRank rank;
  auto engine = rank.engine(model, config(stage, !std::is_same_v<T, float>));
  for (unsigned step = 0; step < 5; ++step) {
    const auto first = tokens_of(2 * step, 2, 13);
    const auto second = tokens_of(2 * step + 1, 2, 13);
    const std::vector<TokenBatch> micro_batches = {{first, kExtent}, {second, kExtent}};
    const StepFacts expected = plain.step(micro_batches, {});
    const StepFacts ours = engine_step(engine, micro_batches);
    CHECK(ours.loss == Approx(expected.loss).epsilon(step == 0 ? 1e-12 : 1e-4));
    CHECK(ours.gradient_norm == Approx(expected.gradient_norm).epsilon(step == 0 ? 1e-7 : 1e-3));
  }
}

TEST_CASE("the engine's evaluation gives the plain loop's logits and tokens", "[llama][engine]") {
  const LlamaShape shape = small_shape(true);
  const auto values = values_by_name(shape);
  PlainTraining<float> plain(shape, kExtent, {});
  set_all(plain, values);
  auto source = plain.model().source();
  const auto prompt = tokens_of(9, 1, 10);
  Llama model(options_of(shape, values));
  QuietRank rank;
  auto engine = rank.engine(model, config(3, false));
  const auto expected = plain.transformer().logits(source, prompt);
  std::vector<float> ours;
  {
    const auto evaluation = engine.evaluate(sifr::Residency::kStreamed);
    ours = model.logits(engine, prompt);
  }
  CHECK(ours == std::vector<float>(expected.begin(), expected.end()));

  std::vector<std::int32_t> generated;
  const auto evaluation = engine.evaluate(sifr::Residency::kWhole);
  model.generate(engine, prompt, {.count = 5}, [&generated](std::int32_t token) {
    generated.push_back(token);
  });
  REQUIRE(generated.size() == 5);
  std::vector<std::int32_t> sequence = prompt;
  for (const std::int32_t token : generated) {
    if (sequence.size() > 12) break;
    const auto all = plain.transformer().logits(source, sequence);
    CHECK(pick(all.last(60), {}, 0) == token);
    sequence.push_back(token);
  }
}

TEST_CASE("after the first micro-batch the Llama's memory stays", "[llama][engine]") {
  const LlamaShape shape = small_shape(false);
  Llama model({.shape = shape, .seed = 3});
  QuietRank rank;
  auto engine = rank.engine(model, config(2, true));
  const auto tokens = tokens_of(1, 2, 13);
  const TokenBatch batch = {tokens, kExtent};
  static_cast<void>(engine_step(engine, std::vector<TokenBatch>{batch, batch}));
  const auto activations = [&engine] {
    return engine.memory().row(sifr::Tier::kDevice, sifr::Purpose::kActivation).now;
  };
  CHECK(activations() >= model.activation_bytes(sifr::DType::kBFloat16, kExtent));
  const std::int64_t before = activations();
  static_cast<void>(engine_step(engine, std::vector<TokenBatch>{batch, batch}));
  CHECK(activations() == before);
}

TEST_CASE("random initial weights have the deviations that they should", "[llama][engine]") {
  const LlamaShape shape = {.hidden = 64,
                            .layers = 2,
                            .heads = 4,
                            .kv_heads = 4,
                            .head_size = 16,
                            .intermediate = 96,
                            .vocab = 100};
  Llama model({.shape = shape, .seed = 3});
  QuietRank rank;
  auto engine = rank.engine(model, config(1, false));
  std::map<std::string, double> deviations;
  const auto note = [&deviations](const sifr::WeightPiece& piece) {
    double squares = 0;
    for (std::int64_t i = 0; i < piece.values.count; ++i) {
      squares += std::pow(static_cast<double>(piece.values.as<float>()[i]), 2);
    }
    deviations[std::string(piece.name)] =
        std::sqrt(squares / static_cast<double>(piece.values.count));
  };
  engine.export_weights(note);
  CHECK(deviations.at("model.embed_tokens.weight") == Approx(0.02).epsilon(0.05));
  CHECK(deviations.at("model.layers.1.mlp.down_proj.weight") == Approx(0.01).epsilon(0.05));
  CHECK(deviations.at("model.layers.0.input_layernorm.weight") == 1);
}

TEST_CASE("what a Llama cannot do is refused with the reason", "[llama][engine]") {
  CHECK_THROWS_WITH(Llama({.shape = {}}), Contains("hidden=0: must be from 1"));
  Llama model({.shape = small_shape(false)});
  QuietRank rank;
  auto engine = rank.engine(model, config(0, false));
  CHECK_THROWS_WITH(engine.backward(), Contains("forward"));
  const auto evaluation = engine.evaluate(sifr::Residency::kWhole);
  CHECK_THROWS_WITH(model.generate(engine, {}, {.count = 1}, {}),
                    Contains("the prompt has no token"));
}

}  // namespace
}  // namespace llama::test
