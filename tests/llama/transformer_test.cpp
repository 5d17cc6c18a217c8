// The whole model on plain memory: gradients of every parameter against differences of the loss,
// recomputation, batches of other sizes, generation.
#include "examples/llama/decoder.hpp"
#include "examples/llama/sampling.hpp"
#include "tests/llama/numbers.hpp"
#include "tests/llama/plain_training.hpp"

#include <catch2/catch.hpp>

#include <stdexcept>

using Catch::Matchers::Contains;

namespace llama::test {
namespace {

LlamaShape small_shape(bool tied) {
  return {.hidden = 24,
          .layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .head_size = 6,
          .intermediate = 40,
          .vocab = 50,
          .tied = tied};
}

/// Of as many rows of that many tokens.
std::vector<std::int32_t> random_tokens(std::int64_t rows, std::int64_t length, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < rows * length; ++i)
    tokens.push_back(static_cast<std::int32_t>(random() % 50));
  return tokens;
}

template <class T>
void fill(PlainTraining<T>& training, double deviation) {
  for (std::size_t i = 0; i < training.model().parameters().size(); ++i) {
    auto values = random_values<float>(
        static_cast<std::int64_t>(training.master(i).size()), static_cast<unsigned>(i), deviation);
    if (training.model().parameters()[i].is_norm) {
      for (float& value : values)
        value += 1;
    }
    training.set(i, values);
  }
}

/// d loss along the parameter's own gradient, by differences; equal to the gradient's squared norm.
double slope_along(PlainTraining<float>& training,
                   std::size_t parameter,
                   const std::vector<float>& gradient,
                   const TokenBatch& batch) {
  const std::vector<float> kept = training.master(parameter);
  const auto loss_at = [&](double step) {
    std::vector<float> moved = kept;
    for (std::size_t i = 0; i < moved.size(); ++i)
      moved[i] += static_cast<float>(step * static_cast<double>(gradient[i]));
    training.set(parameter, moved);
    auto source = training.model().source();
    return training.transformer().forward(source, batch);
  };
  double squares = 0;
  for (const float g : gradient)
    squares += static_cast<double>(g) * static_cast<double>(g);
  const double step = 1.5e-3 / std::sqrt(squares);
  const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
  training.set(parameter, kept);
  return slope / squares;
}

TEST_CASE("every parameter's gradient is the slope of the loss", "[llama]") {
  const bool tied = GENERATE(false, true);
  const Extent extent = {2, 9};
  PlainTraining<float> training(small_shape(tied), extent, {});
  fill(training, 0.3);
  const auto tokens = random_tokens(2, 10, 1);
  static_cast<void>(training.run({tokens, extent}));
  std::vector<std::vector<float>> gradients;
  for (std::size_t i = 0; i < training.model().parameters().size(); ++i) {
    const auto span = training.model().gradients(i);
    gradients.emplace_back(span.begin(), span.end());
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    INFO(training.model().parameters()[i].name);
    CHECK(slope_along(training, i, gradients[i], {tokens, extent}) == Approx(1).margin(3e-3));
  }
}

template <class T>
std::vector<std::vector<T>> gradients_of(PlainTraining<T>& training, const TokenBatch& batch) {
  static_cast<void>(training.run(batch));
  std::vector<std::vector<T>> all;
  for (std::size_t i = 0; i < training.model().parameters().size(); ++i) {
    const auto span = training.model().gradients(i);
    all.emplace_back(span.begin(), span.end());
  }
  return all;
}

TEMPLATE_TEST_CASE("recomputation changes no bit and takes less memory",
                   "[llama]",
                   float,
                   sifr::bfloat16) {
  using T = TestType;
  const LlamaShape shape = small_shape(true);
  const Extent extent = {2, 70};
  const auto tokens = random_tokens(2, 71, 2);
  PlainTraining<T> kept(shape, extent, {});
  PlainTraining<T> again(shape, extent, {.recompute = true});
  fill(kept, 0.1);
  fill(again, 0.1);
  CHECK((gradients_of<T>(kept, {tokens, extent}) == gradients_of<T>(again, {tokens, extent})));
  CHECK(Transformer<T>::memory_bytes(shape, extent, {.recompute = true}) <
        Transformer<T>::memory_bytes(shape, extent, {}));
}

TEST_CASE("the same micro-batch in larger memory gives the same bits", "[llama]") {
  const LlamaShape shape = small_shape(false);
  const auto tokens = random_tokens(2, 8, 3);
  PlainTraining<float> exact(shape, {2, 7}, {});
  PlainTraining<float> larger(shape, {5, 30}, {});
  fill(exact, 0.1);
  fill(larger, 0.1);
  static_cast<void>(larger.run({random_tokens(5, 31, 4), {5, 30}}));
  CHECK((gradients_of<float>(exact, {tokens, {2, 7}}) ==
         gradients_of<float>(larger, {tokens, {2, 7}})));
}

TEST_CASE("a batch that the model cannot take is refused with the reason", "[llama]") {
  PlainTraining<float> training(small_shape(false), {2, 7}, {});
  CHECK_THROWS_WITH(training.run({random_tokens(2, 8, 1), {2, 8}}),
                    Contains("needs 18 tokens, not 16"));
  CHECK_THROWS_WITH(training.run({random_tokens(3, 9, 1), {3, 8}}), Contains("room for 2 x 7"));
  std::vector<std::int32_t> tokens = random_tokens(2, 8, 1);
  tokens[5] = 50;
  CHECK_THROWS_WITH(training.run({tokens, {2, 7}}),
                    Contains("token 50 at place 5") && Contains("vocabulary has 50"));
}

TEMPLATE_TEST_CASE("token by token come the logits of the whole sequence",
                   "[llama]",
                   float,
                   sifr::bfloat16) {
  using T = TestType;
  const LlamaShape shape = small_shape(std::is_same_v<T, float>);
  PlainTraining<T> training(shape, {1, 12}, {});
  fill(training, 0.2);
  const auto tokens = random_tokens(1, 12, 5);
  auto source = training.model().source();
  const auto whole = training.transformer().logits(source, tokens);
  std::vector<std::byte> memory(static_cast<std::size_t>(Decoder<T>::memory_bytes(shape, 12)));
  Decoder<T> decoder(shape, 12, memory.data());
  for (std::size_t position = 0; position < tokens.size(); ++position) {
    const auto logits = decoder.next(source, tokens[position]);
    const auto row = whole.subspan(position * logits.size(), logits.size());
    CHECK(distance(std::vector<T>(logits.begin(), logits.end()),
                   doubles(std::vector<T>(row.begin(), row.end()))) < 30 * kRounding<T> + 1e-5);
  }
  CHECK_THROWS_WITH(decoder.next(source, 0), Contains("room for 12 tokens"));
}

TEST_CASE("a token is the likeliest, or drawn as often as it is likely", "[llama]") {
  const std::vector<float> logits = {0, std::log(2.0F), std::log(5.0F)};
  const std::span<const float> span(logits);
  CHECK(pick(span, {.count = 1, .temperature = 0}, 0) == 2);
  std::vector<int> drawn(3);
  for (std::uint64_t i = 0; i < 8000; ++i)
    ++drawn[static_cast<std::size_t>(pick(span, {1, 1.0, 7}, i))];
  CHECK(drawn[0] == Approx(1000).margin(150));
  CHECK(drawn[1] == Approx(2000).margin(200));
  CHECK(drawn[2] == Approx(5000).margin(250));
}

TEST_CASE("a Llama's parameters have Hugging Face's names, once", "[llama]") {
  const LlamaShape tied = small_shape(true);
  const auto units = units_of(tied);
  REQUIRE(units.size() == 4);
  CHECK(units[0].name == "embed");
  CHECK(units[0].gradient_leases == 2);
  CHECK(units[1].parameters[kOutput].name == "model.layers.0.self_attn.o_proj.weight");
  CHECK(units[1].parameters[kOutput].deviation == Approx(0.01));
  CHECK(units[3].parameters.size() == 1);
  const auto untied = units_of(small_shape(false));
  CHECK(untied[0].gradient_leases == 1);
  CHECK(untied[3].parameters[1].name == "lm_head.weight");
  std::int64_t count = 0;
  for (const NamedUnit& unit : units) {
    for (const NamedParameter& parameter : unit.parameters) {
      count += parameter.shape.size() == 1 ? parameter.shape[0]
                                           : parameter.shape[0] * parameter.shape[1];
    }
  }
  CHECK(count == tied.parameter_count());
}

}  // namespace
}  // namespace llama::test
