// How near a Llama's forward and backward come to the matrix products that they are made of.
//
//   llama_bench     SmolLM2-135M's shape, bf16, 512 tokens, one thread
//
// Counted as 6 · parameters · tokens, against the products' rate measured right before and after in
// each round.
#include "bench/measure.hpp"
#include "examples/llama/plain_source.hpp"
#include "examples/llama/transformer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <vector>

namespace {

using llama::Linear;
using llama::LlamaShape;
using llama::Product;
using sifr::bfloat16;

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

/// Normal values, 65536 different ones over and over.
void fill_normal(std::span<bfloat16> values, double deviation, std::mt19937& random) {
  std::normal_distribution<float> normal(0, static_cast<float>(deviation));
  const std::size_t different = std::min<std::size_t>(values.size(), 65536);
  for (bfloat16& value : values.first(different))
    value = sifr::to_bfloat16(normal(random));
  for (std::size_t i = different; i < values.size(); ++i)
    values[i] = values[i - different];
}

double gflops_of(llama::MatrixProducts& products,
                 const std::vector<Product>& all,
                 const std::vector<bfloat16>& a,
                 const std::vector<bfloat16>& b,
                 std::vector<bfloat16>& c) {
  double flops = 0;
  const double seconds = bench::seconds_of([&] {
    for (const Product& p : all) {
      products.multiply(p, a.data(), b.data(), c.data());
      flops += 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
    }
  });
  return flops / seconds * 1e-9;
}

/// The rate of matrix products in the model's own mixture (each linear layer once forward and twice
/// backward, on operands that stay in the cache) and of square ones.
class ProductRate {
 public:
  ProductRate(const LlamaShape& shape, std::int64_t tokens, int threads, std::mt19937& random)
      : products_(threads) {
    for (std::int64_t layer = 0; layer < shape.layers; ++layer)
      add_block(shape, tokens);
    add({tokens, shape.hidden, shape.vocab});
    allocate();
    fill_normal(a_, 1, random);
    fill_normal(b_, 1, random);
  }

  [[nodiscard]] double of_model() { return gflops_of(products_, model_, a_, b_, c_); }
  [[nodiscard]] double of_squares() {
    return gflops_of(products_, std::vector<Product>(16, kSquare), a_, b_, c_);
  }

 private:
  static constexpr Product kSquare = {.m = 1024, .n = 1024, .k = 1024, .is_b_transposed = true};

  /// Operands as large as the largest product needs.
  void allocate() {
    std::int64_t largest = 0;
    for (const Product& p : model_)
      largest = std::max({largest, p.m * p.k, p.k * p.n, p.m * p.n});
    largest = std::max({largest, kSquare.m * kSquare.k, kSquare.k * kSquare.n});
    for (std::vector<bfloat16>* operand : {&a_, &b_, &c_})
      operand->resize(static_cast<std::size_t>(largest));
  }

  void add(const Linear& layer) {
    for (const Product& p : {llama::forward_of(layer),
                             llama::input_gradient_of(layer),
                             llama::weight_gradient_of(layer)}) {
      model_.push_back(p);
    }
  }
  void add_block(const LlamaShape& shape, std::int64_t tokens) {
    add({tokens, shape.hidden, shape.query_width()});
    for (int i = 0; i < 2; ++i)
      add({tokens, shape.hidden, shape.kv_width()});
    add({tokens, shape.query_width(), shape.hidden});
    for (int i = 0; i < 2; ++i)
      add({tokens, shape.hidden, shape.intermediate});
    add({tokens, shape.intermediate, shape.hidden});
  }

  llama::MatrixProducts products_;
  std::vector<Product> model_;
  std::vector<bfloat16> a_;
  std::vector<bfloat16> b_;
  std::vector<bfloat16> c_;
};

/// The model with random weights and a random micro-batch.
class Training {
 public:
  Training(const LlamaShape& shape,
           const llama::Extent& extent,
           const llama::TransformerOptions& options,
           std::mt19937& random)
      : extent_(extent),
        model_(shape),
        memory_(llama::Transformer<bfloat16>::memory_bytes(shape, extent, options)),
        transformer_(shape, extent, options, memory_.data()),
        tokens_(static_cast<std::size_t>(extent.tokens() + extent.rows)) {
    for (std::size_t i = 0; i < model_.parameters().size(); ++i) {
      const llama::NamedParameter& parameter = model_.parameters()[i];
      fill_normal(model_.weights(i), parameter.deviation, random);
      if (parameter.is_norm) std::ranges::fill(model_.weights(i), sifr::to_bfloat16(1));
    }
    for (std::int32_t& token : tokens_)
      token = static_cast<std::int32_t>(random() % static_cast<unsigned>(shape.vocab));
  }

  struct Times {
    double forward;
    double backward;
  };
  [[nodiscard]] Times run() {
    auto source = model_.source();
    const auto forward = [&] {
      static_cast<void>(transformer_.forward(source, {tokens_, extent_}));
    };
    const double seconds = bench::seconds_of(forward);
    return {seconds, bench::seconds_of([&] { transformer_.backward(source, 1); })};
  }

 private:
  llama::Extent extent_;
  llama::PlainModel<bfloat16> model_;
  Memory memory_;
  llama::Transformer<bfloat16> transformer_;
  std::vector<std::int32_t> tokens_;
};

struct Options {
  int rounds = 7;
  int threads = 1;
  std::int64_t tokens = 512;
  std::string shape =
      "hidden=576,layers=30,heads=9,kv_heads=3,intermediate=1536,vocab=49152,tied=1,rope_theta="
      "1e5";
};

void run(const Options& options) {
  const LlamaShape shape = llama::parse_shape(options.shape);
  const llama::Extent extent = {1, options.tokens};
  std::mt19937 random(1);
  Training training(shape, extent, {.threads = options.threads}, random);
  ProductRate rate(shape, extent.tokens(), options.threads, random);
  const auto tokens = static_cast<double>(extent.tokens());
  const double flops = 6.0 * static_cast<double>(shape.parameter_count()) * tokens;
  static_cast<void>(rate.of_model());
  static_cast<void>(training.run());
  fmt::print("{}, {} tokens, bf16, {} threads\n",
             llama::to_string(shape),
             options.tokens,
             options.threads);
  fmt::print("forward s  backward s  tokens/s  GFLOP/s  products GFLOP/s (squares)  ratio\n");
  std::vector<double> ratios;
  for (int round = 0; round < options.rounds; ++round) {
    const double before = rate.of_model();
    const Training::Times times = training.run();
    const double products = (before + rate.of_model()) / 2;
    const double total = times.forward + times.backward;
    const double reached = flops / total * 1e-9;
    ratios.push_back(reached / products);
    fmt::print("{:9.3f}  {:10.3f}  {:8.0f}  {:7.1f}  {:16.1f} ({:7.1f})  {:5.3f}\n",
               times.forward,
               times.backward,
               tokens / total,
               reached,
               products,
               rate.of_squares(),
               ratios.back());
  }
  fmt::print("median ratio {:.3f}, to reach 0.70\n", bench::median(ratios));
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("--rounds", options.rounds, "rounds that count")
      ->check(CLI::Range(1, bench::kMostRounds));
  app.add_option("--threads", options.threads, "of the products")
      ->check(CLI::Range(1, bench::kMostThreads));
  app.add_option("--tokens", options.tokens, "of a micro-batch, in one row")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--shape", options.shape, "of the Llama");
}

}  // namespace

int main(int count, char** arguments) {
  Options options;
  return bench::run_program(
      {.name = "llama_bench",
       .about = "Speed of a Llama's forward and backward against its matrix products",
       .add_options = [&](CLI::App& app) { add_options(app, options); },
       .run = [&] { run(options); }},
      count,
      arguments);
}
