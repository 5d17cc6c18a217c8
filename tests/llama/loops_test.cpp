// Each loop against a slow reference in double, each way back against differences of that
// reference.
#include "examples/llama/cross_entropy.hpp"
#include "examples/llama/embedding.hpp"
#include "examples/llama/matrix_vector.hpp"
#include "examples/llama/residual.hpp"
#include "examples/llama/rms_norm.hpp"
#include "examples/llama/swiglu.hpp"
#include "examples/llama/vector_math.hpp"
#include "tests/llama/numbers.hpp"

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <limits>

namespace llama::test {
namespace {

TEST_CASE("rounding to bf16 is the library's", "[llama]") {
  std::mt19937 random(1);
  int different = 0;
  for (int i = 0; i < 200000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    different += narrow<bfloat16>(value) == sifr::to_bfloat16(value) ? 0 : 1;
  }
  CHECK(different == 0);
}

TEST_CASE("the exponential is within 2 units in the last place", "[llama]") {
  double worst = 0;
  for (int i = 0; i <= 20000; ++i) {
    const float x = -87.0F + static_cast<float>(i) * (175.0F / 20000.0F);
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(fast_exp(x)) / exact - 1));
  }
  CHECK(worst < 2 * 1.2e-7);
  CHECK(fast_exp(0) == 1);
  CHECK(fast_exp(-1e30F) == fast_exp(-87));
  CHECK(std::isfinite(fast_exp(1e30F)));
  CHECK(std::isnan(fast_exp(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("sums and maxima in lanes take every element", "[llama]") {
  for (const std::int64_t count : {1, 31, 32, 33, 100}) {
    const auto value = [](std::int64_t i) { return static_cast<float>(i % 7 - 3); };
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i)
      sum += static_cast<double>(value(i));
    CHECK(static_cast<double>(sum_in_lanes(count, value)) == sum);
    for (std::int64_t peak = 0; peak < count; ++peak) {
      CHECK(largest_in_lanes(count, [peak](std::int64_t i) { return i == peak ? 5.0F : -5.0F; }) ==
            5.0F);
    }
  }
}

std::vector<double> rms_norm_reference(const std::vector<double>& x,
                                       const std::vector<double>& weight,
                                       double eps) {
  std::vector<double> y(x.size());
  for (std::size_t first = 0; first < x.size(); first += weight.size()) {
    double squares = 0;
    for (std::size_t i = 0; i < weight.size(); ++i)
      squares += x[first + i] * x[first + i];
    const double r = 1 / std::sqrt(squares / static_cast<double>(weight.size()) + eps);
    for (std::size_t i = 0; i < weight.size(); ++i)
      y[first + i] = x[first + i] * r * weight[i];
  }
  return y;
}

TEMPLATE_TEST_CASE("RMSNorm and its way back are the formula's", "[llama]", float, bfloat16) {
  using T = TestType;
  constexpr std::int64_t kCount = 3 * 41;
  const RmsNormExtent extent = {3, 41};
  const auto x = random_values<T>(kCount, 1);
  const auto weight = random_values<T>(41, 2);
  const auto dy = random_values<float>(kCount, 3);
  const auto past = random_values<T>(kCount, 4);
  std::vector<T> y(x.size());
  std::vector<float> inverse_rms(3);
  rms_norm(x.data(), weight.data(), 1e-5, extent, y.data(), inverse_rms.data());
  std::vector<double> wide_x = doubles(x);
  std::vector<double> wide_weight = doubles(weight);
  CHECK(distance(y, rms_norm_reference(wide_x, wide_weight, 1e-5)) < 20 * kRounding<T>);

  std::vector<T> again(x.size());
  rms_norm_again(x.data(), weight.data(), inverse_rms.data(), extent, again.data());
  CHECK(again == y);

  std::vector<T> dx = past;
  std::vector<T> d_weight(41, T{});
  std::vector<double> sums(41);
  rms_norm_backward<T>({x.data(),
                        weight.data(),
                        inverse_rms.data(),
                        dy.data(),
                        dx.data(),
                        d_weight.data(),
                        sums.data()},
                       extent);
  const auto f = [&] { return dot(rms_norm_reference(wide_x, wide_weight, 1e-5), doubles(dy)); };
  std::vector<double> expected = derivatives(f, wide_x);
  for (std::size_t i = 0; i < expected.size(); ++i)
    expected[i] += static_cast<double>(widen(past[i]));
  CHECK(distance(dx, expected) < 20 * kRounding<T> + 1e-7);
  CHECK(distance(d_weight, derivatives(f, wide_weight)) < 20 * kRounding<T> + 1e-7);
}

std::vector<double> swiglu_reference(const std::vector<double>& gate,
                                     const std::vector<double>& up) {
  std::vector<double> y;
  for (std::size_t i = 0; i < gate.size(); ++i)
    y.push_back(gate[i] / (1 + std::exp(-gate[i])) * up[i]);
  return y;
}

TEMPLATE_TEST_CASE("SwiGLU and its way back are the formula's", "[llama]", float, bfloat16) {
  using T = TestType;
  auto gate = random_values<T>(101, 1, 3);
  auto up = random_values<T>(101, 2);
  const auto dy = random_values<T>(101, 3);
  std::vector<T> y(101);
  swiglu(gate.data(), up.data(), 101, y.data());
  std::vector<double> wide_gate = doubles(gate);
  std::vector<double> wide_up = doubles(up);
  CHECK(distance(y, swiglu_reference(wide_gate, wide_up)) < 20 * kRounding<T>);

  std::vector<T> again(101);
  swiglu_backward<T>({dy.data(), gate.data(), up.data(), again.data()}, 101);
  const auto f = [&] { return dot(swiglu_reference(wide_gate, wide_up), doubles(dy)); };
  CHECK(again == y);
  CHECK(distance(gate, derivatives(f, wide_gate)) < 20 * kRounding<T> + 1e-7);
  CHECK(distance(up, derivatives(f, wide_up)) < 20 * kRounding<T> + 1e-7);
}

double cross_entropy_reference(const std::vector<double>& logits,
                               const std::vector<std::int32_t>& targets,
                               std::size_t vocab) {
  double loss = 0;
  for (std::size_t row = 0; row < targets.size(); ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < vocab; ++i)
      sum += std::exp(logits[row * vocab + i]);
    loss += std::log(sum) - logits[row * vocab + static_cast<std::size_t>(targets[row])];
  }
  return loss;
}

TEMPLATE_TEST_CASE("cross-entropy and its way back are the formula's", "[llama]", float, bfloat16) {
  using T = TestType;
  const std::int64_t vocab = 77;
  auto logits = random_values<T>(3 * vocab, 1, 4);
  const std::vector<std::int32_t> targets = {0, 76, 40};
  std::vector<double> wide = doubles(logits);
  std::vector<SoftmaxRow> rows(3);
  const double loss = cross_entropy(logits.data(), targets, vocab, rows.data());
  CHECK(loss == Approx(cross_entropy_reference(wide, targets, 77)).epsilon(1e-6));
  cross_entropy_backward(logits.data(), targets, vocab, rows.data(), 0.5F);
  std::vector<double> expected =
      derivatives([&] { return 0.5 * cross_entropy_reference(wide, targets, 77); }, wide);
  CHECK(distance(logits, expected) < 20 * kRounding<T> + 1e-6);
}

TEST_CASE("a logit that is not a number shows in the loss", "[llama]") {
  std::vector<float> logits(40, 1.0F);
  logits[7] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::int32_t> targets = {3};
  SoftmaxRow row;
  CHECK(std::isnan(cross_entropy(logits.data(), targets, 40, &row)));
}

TEMPLATE_TEST_CASE("a token's gradient is the sum over its places", "[llama]", float, bfloat16) {
  using T = TestType;
  const std::vector<std::int32_t> tokens = {4, 1, 4, 0, 4, 1};
  const std::int64_t width = 19;
  const auto table = random_values<T>(5 * width, 1);
  std::vector<T> x(tokens.size() * 19);
  embed(table.data(), std::span<const std::int32_t>(tokens), width, x.data());
  CHECK(std::equal(x.begin() + 2 * width, x.begin() + 3 * width, table.begin() + 4 * width));

  const auto dx = random_values<T>(6 * width, 2);
  const auto before = random_values<T>(5 * width, 3);
  std::vector<T> d_table = before;
  EmbeddingBackward<T>(6, width).run(tokens, dx.data(), d_table.data());
  std::vector<double> expected = doubles(before);
  for (std::size_t place = 0; place < tokens.size(); ++place) {
    for (std::size_t i = 0; i < 19; ++i) {
      expected[static_cast<std::size_t>(tokens[place]) * 19 + i] +=
          static_cast<double>(widen(dx[place * 19 + i]));
    }
  }
  CHECK(distance(d_table, expected) < 10 * kRounding<T>);
  CHECK(std::equal(
      d_table.begin() + 2 * width, d_table.begin() + 4 * width, before.begin() + 2 * width));
}

TEMPLATE_TEST_CASE("a residual is one rounded sum", "[llama]", float, bfloat16) {
  using T = TestType;
  auto x = random_values<T>(67, 1);
  const auto branch = random_values<T>(67, 2);
  std::vector<T> expected;
  for (std::size_t i = 0; i < x.size(); ++i)
    expected.push_back(narrow<T>(widen(x[i]) + widen(branch[i])));
  add_residual(x.data(), branch.data(), 67, x.data());
  CHECK(x == expected);
}

TEMPLATE_TEST_CASE("products with a single row are exact sums rounded",
                   "[llama]",
                   float,
                   bfloat16) {
  using T = TestType;
  const auto matrix = random_values<T>(13 * 300, 1);
  const auto x = random_values<T>(300, 2);
  const auto weights = random_values<T>(13, 3);
  std::vector<T> y(13);
  std::vector<T> z(300);
  matrix_vector(matrix.data(), x.data(), {13, 300}, y.data());
  vector_matrix(weights.data(), matrix.data(), {13, 300}, z.data());
  std::vector<double> by_rows(13);
  std::vector<double> by_columns(300);
  for (std::size_t row = 0; row < 13; ++row) {
    for (std::size_t column = 0; column < 300; ++column) {
      const auto element = static_cast<double>(widen(matrix[row * 300 + column]));
      by_rows[row] += element * static_cast<double>(widen(x[column]));
      by_columns[column] += element * static_cast<double>(widen(weights[row]));
    }
  }
  CHECK(distance(y, by_rows) < 10 * kRounding<T>);
  CHECK(distance(z, by_columns) < 10 * kRounding<T>);
}

}  // namespace
}  // namespace llama::test
