#pragma once

#include "examples/llama/batch.hpp"
#include "examples/llama/sampling.hpp"
#include "examples/llama/shape.hpp"
#include "sifr.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace llama {

struct LlamaOptions {
  LlamaShape shape;
  std::uint64_t seed = 0;  // of the initial weights
  int threads = 1;         // of matrix products; part of the number format
  bool recompute = false;  // keep the blocks' inputs only, compute blocks again on the way back
  bool no_decay_norms = false;  // weight decay leaves the norms' weights alone
  /// Initial values by Hugging Face name, e.g. from a file; unset: random.
  std::function<sifr::Fill(std::string_view name)> fill = {};
};

/// A Llama that trains on sifr: units "embed", "layers.0" …, and "norm" (tied) or "head". One per
/// rank; it must outlive the engine. Batches are TokenBatch; the loss is the mean over the
/// micro-batch's tokens, its weight 1.
class Llama final : public sifr::Model {
 public:
  /// Throws std::invalid_argument as validate() does.
  explicit Llama(LlamaOptions options);
  Llama(const Llama&) = delete;
  Llama& operator=(const Llama&) = delete;
  ~Llama() override;

  void declare(sifr::Units& units) override;
  /// The first call, and any with a larger batch, takes activation memory from the engine; later
  /// ones take none.
  sifr::Loss forward(sifr::Engine& engine, const sifr::Batch& batch) override;
  void backward(sifr::Engine& engine, float loss_gradient) override;

  /// Logits [position][vocab] of one sequence. Within engine.evaluate(); where that is kStreamed on
  /// every rank alike.
  [[nodiscard]] std::vector<float> logits(sifr::Engine& engine,
                                          std::span<const std::int32_t> tokens);

  /// Continues `prompt` (not empty), token by token as they come. Within engine.evaluate(kWhole),
  /// on any ranks.
  void generate(sifr::Engine& engine,
                std::span<const std::int32_t> prompt,
                const Sampling& sampling,
                const std::function<void(std::int32_t token)>& on_token);

  /// Bytes that a micro-batch's activations take on a rank.
  [[nodiscard]] std::int64_t activation_bytes(sifr::DType compute_dtype,
                                              const Extent& extent) const;
  /// Bytes that generate takes for a text of so many tokens, its prompt among them.
  [[nodiscard]] std::int64_t generation_bytes(sifr::DType compute_dtype, std::int64_t tokens) const;

 private:
  class Network;
  template <class T>
  class NetworkOf;
  LlamaOptions options_;
  std::unique_ptr<Network> network_;  // from declare on: then the dtype is known
};

}  // namespace llama
