#include "examples/llama/hugging_face_keys.hpp"

#include <algorithm>
#include <array>

namespace llama {
namespace {

// Keys that are read here, or say nothing about a forward pass.
constexpr std::array<std::string_view, 30> kKnown = {"hidden_size",
                                                     "num_hidden_layers",
                                                     "num_attention_heads",
                                                     "num_key_value_heads",
                                                     "head_dim",
                                                     "intermediate_size",
                                                     "vocab_size",
                                                     "tie_word_embeddings",
                                                     "rms_norm_eps",
                                                     "rope_theta",
                                                     "rope_parameters",
                                                     "rope_scaling",
                                                     "model_type",
                                                     "architectures",
                                                     "torch_dtype",
                                                     "dtype",
                                                     "transformers_version",
                                                     "use_cache",
                                                     "bos_token_id",
                                                     "eos_token_id",
                                                     "pad_token_id",
                                                     "initializer_range",
                                                     "pretraining_tp",
                                                     "_name_or_path",
                                                     "max_position_embeddings",
                                                     "is_llama_config",
                                                     "transformers.js_config",
                                                     "output_attentions",
                                                     "output_hidden_states",
                                                     "return_dict"};

// Keys that change the numbers, each with the JSON of a value at which it does not; unset or null
// they never do.
struct Harmless {
  std::string_view key;
  std::string_view json;
};
constexpr std::array kHarmless = {Harmless{"hidden_act", "\"silu\""},
                                  Harmless{"hidden_act", "\"swish\""},
                                  Harmless{"attention_bias", "false"},
                                  Harmless{"mlp_bias", "false"},
                                  Harmless{"attention_dropout", "0.0"},
                                  Harmless{"partial_rotary_factor", "1.0"},
                                  Harmless{"rope_interleaved", "false"},
                                  Harmless{"use_sliding_window", "false"},
                                  Harmless{"sliding_window", "null"},
                                  Harmless{"quantization_config", "null"},
                                  Harmless{"use_qk_norm", "false"},
                                  Harmless{"final_logit_softcapping", "null"},
                                  Harmless{"attn_logit_softcapping", "null"},
                                  Harmless{"logit_scale", "1.0"},
                                  Harmless{"embedding_multiplier", "1.0"},
                                  Harmless{"residual_multiplier", "1.0"}};

}  // namespace

KeyEffect effect_of(std::string_view key, std::string_view json) noexcept {
  if (json == "null" || std::find(kKnown.begin(), kKnown.end(), key) != kKnown.end())
    return KeyEffect::kNone;
  const auto has_key = [&](const Harmless& one) { return one.key == key; };
  if (std::none_of(kHarmless.begin(), kHarmless.end(), has_key)) return KeyEffect::kUnknown;
  const auto is_harmless = [&](const Harmless& one) { return one.key == key && one.json == json; };
  return std::any_of(kHarmless.begin(), kHarmless.end(), is_harmless) ? KeyEffect::kNone
                                                                      : KeyEffect::kChangesNumbers;
}

}  // namespace llama
