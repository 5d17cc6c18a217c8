#include "examples/llama/hugging_face_config.hpp"

#include "engine/io_error.hpp"
#include "examples/llama/hugging_face_keys.hpp"
#include "examples/llama/strict_json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <optional>
#include <stdexcept>

namespace llama {
namespace {

using Json = nlohmann::ordered_json;

/// Reads keys and collects everything that is wrong.
class Reader {
 public:
  Reader(const Json& json, HuggingFaceConfig& config) : json_(json), config_(config) {}

  std::vector<std::string> read() {
    if (json_.value("model_type", Json("llama")) != "llama")
      wrong("model_type", "is not \"llama\", and other models compute otherwise");
    LlamaShape& shape = config_.shape;
    shape.hidden = whole("hidden_size");
    shape.layers = whole("num_hidden_layers");
    shape.heads = whole("num_attention_heads");
    shape.kv_heads = whole("num_key_value_heads", shape.heads);
    shape.head_size = whole("head_dim", shape.heads > 0 ? shape.hidden / shape.heads : 0);
    shape.intermediate = whole("intermediate_size");
    shape.vocab = whole("vocab_size");
    shape.rms_eps = number(json_, "rms_norm_eps").value_or(shape.rms_eps);
    read_tied();
    read_rope();
    read_others();
    return problems_;
  }

 private:
  const Json* find(const Json& object, const std::string& key) const {
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }

  void wrong(std::string_view key, std::string_view text) {
    problems_.push_back(
        fmt::format("{} = {} {}", key, json_.value(std::string(key), Json()).dump(), text));
  }

  std::int64_t whole(const std::string& key, std::optional<std::int64_t> otherwise = std::nullopt) {
    const Json* value = find(json_, key);
    if (value == nullptr) {
      if (!otherwise) problems_.push_back(key + " is missing");
      return otherwise.value_or(0);
    }
    const bool fits = value->is_number_unsigned() && value->get<std::uint64_t>() <= std::uint64_t{1}
                                                                                        << 40;
    if (!fits) wrong(key, "is not a size");
    return fits ? value->get<std::int64_t>() : 0;
  }

  std::optional<double> number(const Json& object, const std::string& key) {
    const Json* value = find(object, key);
    if (value == nullptr) return std::nullopt;
    if (value->is_number()) return value->get<double>();
    problems_.push_back(fmt::format("{} = {} is not a number", key, value->dump()));
    return std::nullopt;
  }

  void read_tied() {
    const Json* tied = find(json_, "tie_word_embeddings");
    if (tied != nullptr && !tied->is_boolean())
      wrong("tie_word_embeddings", "is not true or false");
    config_.shape.tied = tied != nullptr && tied->is_boolean() && tied->get<bool>();
  }

  // rope_theta stands at the top, in rope_parameters or rope_scaling, or in several; then they must
  // agree.
  void read_rope() {
    std::optional<double> theta = number(json_, "rope_theta");
    for (const char* key : {"rope_parameters", "rope_scaling"}) {
      const Json* rope = find(json_, key);
      if (rope == nullptr) continue;
      if (!rope->is_object()) {
        wrong(key, "is not an object");
        continue;
      }
      const std::optional<double> other = number(*rope, "rope_theta");
      if (theta && other && *theta != *other)
        problems_.push_back(
            fmt::format("rope_theta = {} contradicts {}, which say {}", *theta, key, *other));
      if (!theta) theta = other;
      read_rope_type(key, *rope);
    }
    config_.shape.rope_theta = theta.value_or(config_.shape.rope_theta);
  }

  void read_rope_type(const char* key, const Json& rope) {
    for (const auto& [name, value] : rope.items()) {
      const bool is_type = name == "rope_type" || name == "type";
      const bool is_harmless = value.is_null() || name == "rope_theta" ||
                               (is_type && value == "default") ||
                               (name == "partial_rotary_factor" && value == 1);
      if (!is_harmless)
        problems_.push_back(fmt::format(
            "{}.{} = {} (rope scaling) is not computed here, only rope_type \"default\"",
            key,
            name,
            value.dump()));
    }
  }

  void read_others() {
    for (const auto& [key, value] : json_.items()) {
      // A whole number may be written as 1 or 1.0.
      const Json& plain = value.is_number() ? Json(value.get<double>()) : value;
      switch (effect_of(key, plain.dump())) {
        case KeyEffect::kNone:
          break;
        case KeyEffect::kChangesNumbers:
          wrong(key, "changes the numbers, and is not computed here");
          break;
        case KeyEffect::kUnknown:
          config_.notices.push_back(
              fmt::format("config.json: {} is not known here and has no effect", key));
          break;
      }
    }
  }

  const Json& json_;
  HuggingFaceConfig& config_;
  std::vector<std::string> problems_;
};

std::string_view torch_name(sifr::DType dtype) {
  switch (dtype) {
    case sifr::DType::kBFloat16:
      return "bfloat16";
    case sifr::DType::kFloat16:
      return "float16";
    default:
      return "float32";
  }
}

Json new_config(const LlamaShape& shape) {
  constexpr std::int64_t kPositions = 4096;
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"hidden_size", shape.hidden},
          {"num_hidden_layers", shape.layers},
          {"num_attention_heads", shape.heads},
          {"num_key_value_heads", shape.kv_heads},
          {"head_dim", shape.head_size},
          {"intermediate_size", shape.intermediate},
          {"vocab_size", shape.vocab},
          {"tie_word_embeddings", shape.tied},
          {"rope_theta", shape.rope_theta},
          {"rms_norm_eps", shape.rms_eps},
          {"hidden_act", "silu"},
          {"attention_bias", false},
          {"mlp_bias", false},
          {"max_position_embeddings", kPositions},
          {"bos_token_id", nullptr},
          {"eos_token_id", nullptr}};
}

}  // namespace

HuggingFaceConfig parse_hugging_face_config(std::string_view json,
                                            const std::filesystem::path& path) {
  HuggingFaceConfig config{.shape = {}, .json = std::string(json), .notices = {}};
  const Json parsed = parse_strict_json(json, path);
  if (!parsed.is_object()) throw sifr::IoError(path, "is not a JSON object");
  auto problems = Reader(parsed, config).read();
  if (problems.empty()) {
    try {
      validate(config.shape);
    } catch (const std::invalid_argument& error) {
      problems.emplace_back(error.what());
    }
  }
  if (!problems.empty())
    throw sifr::IoError(
        path,
        fmt::format("describes no Llama that can be trained here: {}", fmt::join(problems, "; ")));
  return config;
}

std::string format_hugging_face_config(const LlamaShape& shape,
                                       sifr::DType dtype,
                                       std::string_view source_json) {
  Json json = source_json.empty() ? new_config(shape) : Json::parse(source_json);
  const bool is_new_spelling = json.contains("dtype");
  json[is_new_spelling ? "dtype" : "torch_dtype"] = torch_name(dtype);
  return json.dump(2) + "\n";
}

}  // namespace llama
