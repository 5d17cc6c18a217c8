#include "examples/llama/inputs.hpp"

#include <fmt/format.h>

namespace llama {
namespace {

// "auto" sizes of buffers follow the model's width where nobody says otherwise.
sifr::Hints with_width(sifr::Hints hints, const LlamaShape& shape) {
  if (!hints.hidden_size) hints.hidden_size = shape.hidden;
  return hints;
}

void check_prompt(const Options& options, std::int64_t vocab) {
  if (options.generate && vocab != kByteVocab) {
    throw sifr::UsageError(fmt::format(
        "--generate takes a text's bytes for tokens, which needs vocab=256, but the model has {}; "
        "give its tokens to --generate-tokens",
        vocab));
  }
  for (const std::int32_t token : options.generate_tokens) {
    if (token < 0 || token >= vocab)
      throw sifr::UsageError(fmt::format(
          "--generate-tokens: there is no token {} in a vocabulary of {}", token, vocab));
  }
}

}  // namespace

Inputs::Inputs(const Options& options) {
  if (!options.model.empty()) model_ = std::make_unique<HuggingFaceModel>(options.model);
  shape_ = model_ ? model_->shape() : options.shape.value();
  config_ = sifr::load_config(options.config, with_width(options.hints, shape_));
  if (model_) {
    for (const std::string& notice : model_->config().notices)
      config_.notices.push_back(notice);
  }
  seed_ = options.seed.value_or(static_cast<std::uint64_t>(config_.sifr.seed));
  check_prompt(options, shape_.vocab);
  open_data(options);
  if (!options.eval_data.empty()) open_held_out(options);
}

void Inputs::open_data(const Options& options) {
  if (options.data.empty()) return;
  data_ = std::make_unique<TokenFile>(options.data, shape_.vocab);
  samples_ = std::make_unique<Samples>(*data_,
                                       SampleOptions{.sequence_length = options.sequence_length,
                                                     .stride = options.stride,
                                                     .order = options.order,
                                                     .seed = seed_});
}

void Inputs::open_held_out(const Options& options) {
  held_out_data_ = std::make_unique<TokenFile>(options.eval_data, shape_.vocab);
  held_out_ = std::make_unique<Samples>(
      *held_out_data_,
      SampleOptions{.sequence_length = options.sequence_length, .stride = options.sequence_length});
  held_out_entropy_ = unigram_entropy(*held_out_data_, shape_.vocab);
}

}  // namespace llama
