#pragma once

#include "config_schema/config.hpp"
#include "examples/llama/hugging_face.hpp"
#include "examples/llama/options.hpp"
#include "examples/llama/samples.hpp"

#include <memory>

namespace llama {

/// All that a run reads, opened and checked before any rank starts. Ranks that are threads share
/// it.
class Inputs {
 public:
  /// Throws sifr::Error of the file that is wrong.
  explicit Inputs(const Options& options);

  [[nodiscard]] const sifr::Config& config() const noexcept { return config_; }
  [[nodiscard]] const LlamaShape& shape() const noexcept { return shape_; }
  /// Null where the weights are random.
  [[nodiscard]] const HuggingFaceModel* model() const noexcept { return model_.get(); }
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  /// Needs --data.
  [[nodiscard]] const Samples& samples() const noexcept { return *samples_; }
  /// One after another, each token once; null without --eval-data.
  [[nodiscard]] const Samples* held_out() const noexcept { return held_out_.get(); }
  [[nodiscard]] double held_out_entropy() const noexcept { return held_out_entropy_; }

 private:
  void open_data(const Options& options);
  void open_held_out(const Options& options);

  sifr::Config config_;
  std::unique_ptr<const HuggingFaceModel> model_;
  LlamaShape shape_;
  std::uint64_t seed_ = 0;
  std::unique_ptr<const TokenFile> data_;
  std::unique_ptr<const Samples> samples_;
  std::unique_ptr<const TokenFile> held_out_data_;
  std::unique_ptr<const Samples> held_out_;
  double held_out_entropy_ = 0;
};

}  // namespace llama
