#include "examples/llama/attention.hpp"

#include "tests/llama/numbers.hpp"

#include <catch2/catch.hpp>

#include <cmath>

namespace llama::test {
namespace {

constexpr std::int64_t kSize = 8;

LlamaShape shape_of(std::int64_t heads, std::int64_t kv_heads) {
  return {.hidden = 8,
          .layers = 1,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_size = kSize,
          .intermediate = 8,
          .vocab = 8};
}

struct Inputs {
  std::vector<double> queries;  // [row][position][head][element]
  std::vector<double> keys;
  std::vector<double> values;
};

/// A head of one position, turned by its angles.
std::vector<double> turned(const std::vector<double>& all,
                           std::size_t place,
                           std::int64_t position,
                           double theta) {
  std::vector<double> head(static_cast<std::size_t>(kSize));
  for (std::size_t i = 0; i < kSize / 2; ++i) {
    const double angle =
        static_cast<double>(position) * std::pow(theta, -2.0 * static_cast<double>(i) / kSize);
    const double a = all[place + i];
    const double b = all[place + i + kSize / 2];
    head[i] = a * std::cos(angle) - b * std::sin(angle);
    head[i + kSize / 2] = b * std::cos(angle) + a * std::sin(angle);
  }
  return head;
}

/// As the definition says, one query at a time.
std::vector<double> reference(const LlamaShape& shape, const Extent& extent, const Inputs& in) {
  std::vector<double> output(in.queries.size());
  const std::int64_t group = shape.heads / shape.kv_heads;
  const auto kv_place = [&](std::int64_t row, std::int64_t t, std::int64_t head) {
    return static_cast<std::size_t>(((row * extent.length + t) * shape.kv_heads + head / group) *
                                    kSize);
  };
  for (std::int64_t row = 0; row < extent.rows; ++row) {
    for (std::int64_t t = 0; t < extent.length; ++t) {
      for (std::int64_t head = 0; head < shape.heads; ++head) {
        const auto place =
            static_cast<std::size_t>(((row * extent.length + t) * shape.heads + head) * kSize);
        const std::vector<double> query = turned(in.queries, place, t, shape.rope_theta);
        double sum = 0;
        for (std::int64_t s = 0; s <= t; ++s) {
          const std::size_t kv = kv_place(row, s, head);
          const double e = std::exp(dot(query, turned(in.keys, kv, s, shape.rope_theta)) /
                                    std::sqrt(double{kSize}));
          sum += e;
          for (std::size_t i = 0; i < kSize; ++i)
            output[place + i] += e * in.values[kv + i];
        }
        for (std::size_t i = 0; i < kSize; ++i)
          output[place + i] /= sum;
      }
    }
  }
  return output;
}

/// Attention with memory of its own.
template <class T>
class Attention {
 public:
  Attention(const LlamaShape& shape, const Extent& extent)
      : shape_(shape), extent_(extent), rotary_(extent.length, kSize, shape.rope_theta, false) {
    Carver measure;
    carve(measure);
    memory_.resize(static_cast<std::size_t>(measure.bytes()));
    Carver carver(memory_.data());
    carve(carver);
  }

  std::vector<T> forward(const std::vector<T>& q,
                         const std::vector<T>& k,
                         const std::vector<T>& v) {
    queries = q;
    keys = k;
    values = v;
    attention(context(), {queries.data(), keys.data(), values.data()}, kept_);
    return {kept_.output, kept_.output + q.size()};
  }

  /// queries, keys and values become their gradients.
  void backward(const std::vector<T>& d_output) {
    attention_backward(context(),
                       kept_,
                       d_output.data(),
                       Projections<T>{queries.data(), keys.data(), values.data()});
  }

  std::vector<T> queries;
  std::vector<T> keys;
  std::vector<T> values;

 private:
  void carve(Carver& carver) {
    kept_ = carve_attention_kept<T>(carver, shape_, extent_);
    scratch_ = carve_attention_scratch<T>(carver, shape_, extent_.length);
  }
  AttentionContext<T> context() { return {shape_, extent_, products_, rotary_, scratch_}; }

  LlamaShape shape_;
  Extent extent_;
  MatrixProducts products_{1};
  RotaryTable rotary_;
  AttentionKept<T> kept_;
  AttentionScratch<T> scratch_;
  std::vector<std::byte> memory_;
};

template <class T>
void check_attention(const LlamaShape& shape, const Extent& extent) {
  const auto q = random_values<T>(extent.tokens() * shape.query_width(), 1);
  const auto k = random_values<T>(extent.tokens() * shape.kv_width(), 2);
  const auto v = random_values<T>(extent.tokens() * shape.kv_width(), 3);
  const auto d_output = random_values<T>(extent.tokens() * shape.query_width(), 4);
  Inputs wide = {doubles(q), doubles(k), doubles(v)};
  Attention<T> ours(shape, extent);
  CHECK(distance(ours.forward(q, k, v), reference(shape, extent, wide)) < 20 * kRounding<T>);
  ours.backward(d_output);
  const auto f = [&] { return dot(reference(shape, extent, wide), doubles(d_output)); };
  const auto check_some = [&f](const std::vector<T>& gradients, std::vector<double>& x) {
    std::vector<T> some;
    std::vector<double> expected;
    for (std::size_t i = 0; i < x.size(); i += 1 + x.size() / 23) {
      some.push_back(gradients[i]);
      expected.push_back(derivative(f, x[i]));
    }
    CHECK(distance(some, expected) < 20 * kRounding<T> + 1e-6);
  };
  check_some(ours.queries, wide.queries);
  check_some(ours.keys, wide.keys);
  check_some(ours.values, wide.values);
}

TEMPLATE_TEST_CASE("attention and its way back are the definition's",
                   "[llama][attention]",
                   float,
                   sifr::bfloat16) {
  check_attention<TestType>(shape_of(4, 2), {2, 5});
  check_attention<TestType>(shape_of(2, 2), {1, 1});
  check_attention<TestType>(shape_of(3, 1), {1, 70});  // two blocks of queries, the second short
}

TEST_CASE("no position sees a later one", "[llama][attention]") {
  const LlamaShape shape = shape_of(2, 1);
  const Extent extent = {1, 90};
  const auto q = random_values<float>(90 * shape.query_width(), 1);
  auto k = random_values<float>(90 * shape.kv_width(), 2);
  auto v = random_values<float>(90 * shape.kv_width(), 3);
  Attention<float> ours(shape, extent);
  const std::vector<float> before = ours.forward(q, k, v);
  for (std::size_t i = 75 * kSize; i < k.size(); ++i) {
    k[i] += 3;
    v[i] -= 5;
  }
  const std::vector<float> after = ours.forward(q, k, v);
  const auto border = static_cast<std::ptrdiff_t>(75 * shape.query_width());
  CHECK(std::equal(before.begin(), before.begin() + border, after.begin()));
  CHECK_FALSE(std::equal(before.begin() + border, before.end(), after.begin() + border));
}

TEST_CASE("turning back undoes turning, and both orders of heads hold the same",
          "[llama][attention]") {
  const RotaryTable table(7, kSize, 10000, false);
  const HeadGroup group = {.length = 7, .count = 2, .head_size = kSize, .stride = 3 * kSize};
  const auto tokens = random_values<float>(group.length * group.stride, 1);
  std::vector<float> heads(std::size_t{7} * 2 * kSize);
  std::vector<float> back = tokens;
  split_and_turn(tokens.data(), group, table, 0, heads.data());
  merge_and_turn_back(heads.data(), group, table, back.data());
  CHECK(distance(back, doubles(tokens)) < 1e-6);
  split_heads(tokens.data(), group, heads.data());
  CHECK(heads[2 * kSize] == tokens[3 * kSize]);
  merge_heads(heads.data(), group, back.data());
  CHECK(back == tokens);
}

}  // namespace
}  // namespace llama::test
