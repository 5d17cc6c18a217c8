// How near a Llama's forward and backward come to the matrix products that they are made of.
//
//   llama_bench [steps]     SmolLM2-135M's shape, bf16, 512 tokens, one thread
//
// Prints, per round, tokens/s, GFLOP/s counted as 6 · parameters · tokens, the rate of the model's
// own products measured right before and after, and the ratio; then the medians.
#include "examples/llama/plain_source.hpp"
#include "examples/llama/transformer.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

using llama::Linear;
using llama::Product;
using sifr::bfloat16;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Memory on 512 bytes, its pages touched.
class Memory {
 public:
  explicit Memory(std::int64_t bytes) : bytes_(static_cast<std::size_t>(bytes) + 512) {}
  [[nodiscard]] std::byte* data() {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
    return bytes_.data() + (512 - address % 512) % 512;
  }

 private:
  std::vector<std::byte> bytes_;
};

void fill_normal(std::span<bfloat16> values, double deviation, std::mt19937& random) {
  std::normal_distribution<float> normal(0, static_cast<float>(deviation));
  for (bfloat16& value : values)
    value = sifr::to_bfloat16(normal(random));
}

/// The products of one block and of the head, each once forward and twice backward: the model's own
/// mixture.
class ProductRate {
 public:
  ProductRate(const llama::LlamaShape& shape, std::int64_t tokens, std::mt19937& random)
      : shape_(shape), tokens_(tokens) {
    const std::int64_t largest = std::max(tokens, shape.hidden) * shape.vocab;
    for (std::vector<bfloat16>* operand : {&a_, &b_, &c_})
      operand->resize(static_cast<std::size_t>(largest));
    fill_normal(a_, 1, random);
    fill_normal(b_, 1, random);
  }

  [[nodiscard]] double gflops() {
    double flops = 0;
    const double start = seconds();
    for (const Linear& layer : layers()) {
      for (const Product& p : {llama::forward_of(layer),
                               llama::input_gradient_of(layer),
                               llama::weight_gradient_of(layer)}) {
        products_.multiply(p, a_.data(), b_.data(), c_.data());
        flops +=
            2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
      }
    }
    return flops / (seconds() - start) * 1e-9;
  }

 private:
  [[nodiscard]] std::vector<Linear> layers() const {
    const LlamaShapeLayers block = {{tokens_, shape_.hidden, shape_.query_width()},
                                    {tokens_, shape_.hidden, shape_.kv_width()},
                                    {tokens_, shape_.hidden, shape_.kv_width()},
                                    {tokens_, shape_.query_width(), shape_.hidden},
                                    {tokens_, shape_.hidden, shape_.intermediate},
                                    {tokens_, shape_.hidden, shape_.intermediate},
                                    {tokens_, shape_.intermediate, shape_.hidden}};
    std::vector<Linear> all;
    for (std::int64_t layer = 0; layer < shape_.layers; ++layer)
      all.insert(all.end(), block.begin(), block.end());
    all.push_back({tokens_, shape_.hidden, shape_.vocab});
    return all;
  }
  using LlamaShapeLayers = std::vector<Linear>;

  llama::LlamaShape shape_;
  std::int64_t tokens_;
  llama::MatrixProducts products_{1};
  std::vector<bfloat16> a_;
  std::vector<bfloat16> b_;
  std::vector<bfloat16> c_;
};

}  // namespace

int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 5;
  const llama::LlamaShape shape = llama::parse_shape(
      "hidden=576,layers=30,heads=9,kv_heads=3,intermediate=1536,vocab=49152,tied=1,rope_theta="
      "1e5");
  const llama::Extent extent = {1, 512};
  std::mt19937 random(1);
  llama::PlainModel<bfloat16> model(shape);
  for (std::size_t i = 0; i < model.parameters().size(); ++i) {
    const llama::NamedParameter& parameter = model.parameters()[i];
    fill_normal(model.weights(i), parameter.deviation, random);
    if (parameter.is_norm)
      std::fill(model.weights(i).begin(), model.weights(i).end(), sifr::to_bfloat16(1));
  }
  const llama::TransformerOptions options;
  const std::int64_t bytes = llama::Transformer<bfloat16>::memory_bytes(shape, extent, options);
  Memory memory(bytes);
  llama::Transformer<bfloat16> transformer(shape, extent, options, memory.data());
  ProductRate rate(shape, extent.tokens(), random);
  std::vector<std::int32_t> tokens(513);
  for (std::int32_t& token : tokens)
    token = static_cast<std::int32_t>(random() % 49152);
  auto source = model.source();
  const double flops =
      6.0 * static_cast<double>(shape.parameter_count()) * static_cast<double>(extent.tokens());
  std::printf("parameters %lld, activations %.0f MiB\n",
              static_cast<long long>(shape.parameter_count()),
              static_cast<double>(bytes) / 1048576);
  std::vector<double> ratios;
  static_cast<void>(rate.gflops());
  for (int round = 0; round <= rounds; ++round) {
    const double before = rate.gflops();
    const double start = seconds();
    const double loss = transformer.forward(source, {tokens, extent});
    const double middle = seconds();
    transformer.backward(source, 1);
    const double end = seconds();
    const double after = rate.gflops();
    const double rated = flops / (end - start) * 1e-9;
    std::printf(
        "loss %.4f forward %.3f s backward %.3f s: %.0f tokens/s, %.1f GFLOP/s, products %.1f "
        "%.1f, ratio %.3f\n",
        loss,
        middle - start,
        end - middle,
        static_cast<double>(extent.tokens()) / (end - start),
        rated,
        before,
        after,
        rated / ((before + after) / 2));
    if (round > 0) ratios.push_back(rated / ((before + after) / 2));
  }
  std::printf("median ratio %.3f\n", median(ratios));
}
