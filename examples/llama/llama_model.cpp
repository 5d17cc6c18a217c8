#include "examples/llama/llama_model.hpp"

#include "device/philox.hpp"
#include "examples/llama/decoder.hpp"
#include "examples/llama/element.hpp"
#include "examples/llama/leased_source.hpp"
#include "examples/llama/parameters.hpp"
#include "examples/llama/transformer.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace llama {
namespace {

sifr::Fill random_values(std::uint64_t seed, std::uint64_t stream, double deviation) {
  return [=](std::int64_t first, std::span<float> values) {
    auto index = static_cast<std::uint64_t>(first);
    for (float& value : values)
      value = static_cast<float>(deviation) * sifr::philox_normal(seed, stream, index++);
  };
}

void fill_with_ones(std::int64_t /*first*/, std::span<float> values) {
  std::fill(values.begin(), values.end(), 1.0F);
}

}  // namespace

/// The model in one dtype.
class Llama::Network {
 public:
  Network() = default;
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  virtual ~Network() = default;
  virtual double forward(sifr::Engine& engine, const TokenBatch& batch) = 0;
  virtual void backward(sifr::Engine& engine, float loss_gradient) = 0;
  virtual std::vector<float> logits(sifr::Engine& engine, std::span<const std::int32_t> tokens) = 0;
  virtual void generate(sifr::Engine& engine,
                        std::span<const std::int32_t> prompt,
                        const Sampling& sampling,
                        const std::function<void(std::int32_t)>& on_token) = 0;
};

template <class T>
class Llama::NetworkOf final : public Network {
 public:
  NetworkOf(const LlamaOptions& options, std::vector<sifr::Unit> units)
      : shape_(options.shape),
        options_{.threads = options.threads, .recompute = options.recompute},
        units_(std::move(units)) {}

  double forward(sifr::Engine& engine, const TokenBatch& batch) override {
    LeasedSource<T> source = source_of(engine);
    return transformer_for(engine, batch.extent).forward(source, batch);
  }

  void backward(sifr::Engine& engine, float loss_gradient) override {
    if (!transformer_) throw sifr::UsageError("Llama::backward: there was no forward");
    LeasedSource<T> source = source_of(engine);
    transformer_->backward(source, loss_gradient);
  }

  std::vector<float> logits(sifr::Engine& engine, std::span<const std::int32_t> tokens) override {
    LeasedSource<T> source = source_of(engine);
    const Extent extent = {1, static_cast<std::int64_t>(tokens.size())};
    const std::span<const T> logits = transformer_for(engine, extent).logits(source, tokens);
    std::vector<float> values(logits.size());
    std::transform(logits.begin(), logits.end(), values.begin(), [](T one) { return widen(one); });
    return values;
  }

  void generate(sifr::Engine& engine,
                std::span<const std::int32_t> prompt,
                const Sampling& sampling,
                const std::function<void(std::int32_t)>& on_token) override {
    if (prompt.empty()) throw sifr::UsageError("Llama::generate: the prompt has no token");
    const std::int64_t positions = static_cast<std::int64_t>(prompt.size()) + sampling.count;
    const sifr::Buffer memory = engine.allocate(Decoder<T>::memory_bytes(shape_, positions));
    Decoder<T> decoder(shape_, positions, memory.data());
    LeasedSource<T> source = source_of(engine);
    std::span<const T> logits;
    for (const std::int32_t token : prompt)
      logits = decoder.next(source, token);
    for (std::int64_t i = 0; i < sampling.count; ++i) {
      const std::int32_t token = pick(logits, sampling, static_cast<std::uint64_t>(i));
      on_token(token);
      if (i + 1 < sampling.count) logits = decoder.next(source, token);
    }
  }

 private:
  LeasedSource<T> source_of(sifr::Engine& engine) const { return {engine, units_, shape_.tied}; }

  /// With memory for `extent`: what there is, or new memory instead.
  Transformer<T>& transformer_for(sifr::Engine& engine, const Extent& extent) {
    if (transformer_ && transformer_->fits(extent)) return *transformer_;
    transformer_.reset();
    memory_ = sifr::Buffer();
    memory_ = engine.allocate(Transformer<T>::memory_bytes(shape_, extent, options_));
    return transformer_.emplace(shape_, extent, options_, memory_.data());
  }

  LlamaShape shape_;
  TransformerOptions options_;
  std::vector<sifr::Unit> units_;
  sifr::Buffer memory_;
  std::optional<Transformer<T>> transformer_;
};

Llama::Llama(LlamaOptions options) : options_(std::move(options)) {
  validate(options_.shape);
}

Llama::~Llama() = default;

void Llama::declare(sifr::Units& units) {
  std::vector<sifr::Unit> declared;
  std::uint64_t number = 0;
  for (NamedUnit& unit : units_of(options_.shape)) {
    std::vector<sifr::Parameter> parameters;
    for (NamedParameter& named : unit.parameters) {
      sifr::Parameter parameter;
      parameter.fill = named.is_norm ? sifr::Fill(fill_with_ones)
                                     : random_values(options_.seed, number, named.deviation);
      if (options_.fill) parameter.fill = options_.fill(named.name);
      parameter.decay = !(named.is_norm && options_.no_decay_norms);
      parameter.name = std::move(named.name);
      parameter.shape = std::move(named.shape);
      parameters.push_back(std::move(parameter));
      ++number;
    }
    declared.push_back(
        units.add(std::move(unit.name), std::move(parameters), unit.gradient_leases));
  }
  switch (units.compute_dtype()) {
    case sifr::DType::kFloat32:
      network_ = std::make_unique<NetworkOf<float>>(options_, std::move(declared));
      break;
    case sifr::DType::kBFloat16:
      network_ = std::make_unique<NetworkOf<bfloat16>>(options_, std::move(declared));
      break;
    default:
      throw sifr::UsageError(
          "this Llama computes in fp32 and bf16, not in fp16: enable \"bf16\" instead");
  }
}

sifr::Loss Llama::forward(sifr::Engine& engine, const sifr::Batch& batch) {
  return network_->forward(engine, batch.as<TokenBatch>());
}

void Llama::backward(sifr::Engine& engine, float loss_gradient) {
  network_->backward(engine, loss_gradient);
}

std::vector<float> Llama::logits(sifr::Engine& engine, std::span<const std::int32_t> tokens) {
  return network_->logits(engine, tokens);
}

void Llama::generate(sifr::Engine& engine,
                     std::span<const std::int32_t> prompt,
                     const Sampling& sampling,
                     const std::function<void(std::int32_t token)>& on_token) {
  network_->generate(engine, prompt, sampling, on_token);
}

std::int64_t Llama::activation_bytes(sifr::DType compute_dtype, const Extent& extent) const {
  const TransformerOptions options = {.threads = options_.threads, .recompute = options_.recompute};
  return compute_dtype == sifr::DType::kFloat32
             ? Transformer<float>::memory_bytes(options_.shape, extent, options)
             : Transformer<bfloat16>::memory_bytes(options_.shape, extent, options);
}

std::int64_t Llama::generation_bytes(sifr::DType compute_dtype, std::int64_t tokens) const {
  return compute_dtype == sifr::DType::kFloat32
             ? Decoder<float>::memory_bytes(options_.shape, tokens)
             : Decoder<bfloat16>::memory_bytes(options_.shape, tokens);
}

}  // namespace llama
