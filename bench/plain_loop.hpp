#pragma once

#include "device/device.hpp"
#include "examples/llama/plain_source.hpp"
#include "examples/llama/transformer.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace bench {

struct TrainingOptions {
  std::string shape = "hidden=320,layers=8,heads=5,kv_heads=5,intermediate=864,vocab=256,tied=1";
  std::int64_t tokens = 512;  // of a rank, in `rows` rows
  int rounds = 7;
  static constexpr std::int64_t kRows = 2;
  [[nodiscard]] llama::Extent extent() const { return {kRows, tokens / kRows}; }
};

/// A micro-batch, and the token that follows it in each row.
[[nodiscard]] std::vector<std::int32_t> random_tokens(const TrainingOptions& options, int rank);

/// A training step without an engine: forward, backward, fp32 sums, exact norm, clip, AdamW.
class PlainLoop {
 public:
  explicit PlainLoop(const TrainingOptions& options);
  /// Returns the loss.
  double step();

 private:
  void update();
  [[nodiscard]] sifr::View state(std::size_t which, std::int64_t first, std::int64_t count) const;
  template <class F>
  void for_each(const F& f);

  llama::LlamaShape shape_;
  llama::PlainModel<sifr::bfloat16> model_;
  std::unique_ptr<sifr::Device> device_;
  sifr::Buffer activations_;
  llama::Transformer<sifr::bfloat16> transformer_;
  std::vector<std::int32_t> tokens_;
  llama::Extent extent_;
  std::array<sifr::Buffer, 4> state_;  // sums, masters, m, v
};

}  // namespace bench
