#include "examples/llama/hugging_face_config.hpp"

#include "engine/io_error.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace llama;
using Catch::Matchers::Contains;
using Json = nlohmann::ordered_json;

namespace {

Json base() {
  return Json::parse(R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
    "vocab_size": 256, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 1e-6,
    "rope_theta": 100000.0, "hidden_act": "silu", "attention_bias": false, "mlp_bias": false,
    "attention_dropout": 0.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
    "rope_scaling": null, "rope_interleaved": false, "is_llama_config": true})");
}

HuggingFaceConfig parse(const Json& json) {
  return parse_hugging_face_config(json.dump(), "config.json");
}

std::string error_of(const std::string& patch) {
  try {
    Json json = base();
    json.merge_patch(Json::parse(patch));  // null removes
    (void)parse(json);
  } catch (const sifr::IoError& error) {
    return error.message();
  }
  return "no error";
}

}  // namespace

TEST_CASE("yesterday's spelling of a config.json is read", "[llama][hugging_face]") {
  const auto config = parse(base());
  CHECK(config.shape == LlamaShape{.hidden = 64,
                                   .layers = 2,
                                   .heads = 4,
                                   .kv_heads = 2,
                                   .head_size = 16,
                                   .intermediate = 128,
                                   .vocab = 256,
                                   .tied = true,
                                   .rope_theta = 100000,
                                   .rms_eps = 1e-6});
  CHECK(config.notices.empty());
}

TEST_CASE("today's spelling of a config.json is read", "[llama][hugging_face]") {
  Json json = base();
  json.erase("rope_theta");
  json.erase("torch_dtype");
  json["dtype"] = "float32";
  json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 500000.0}};
  CHECK(parse(json).shape.rope_theta == 500000);
}

TEST_CASE("what a config.json leaves out has Hugging Face's defaults", "[llama][hugging_face]") {
  Json json = base();
  for (const char* key :
       {"num_key_value_heads", "head_dim", "rope_theta", "tie_word_embeddings", "hidden_act"})
    json.erase(key);
  const LlamaShape shape = parse(json).shape;
  CHECK(shape.kv_heads == 4);
  CHECK(shape.head_size == 16);
  CHECK(shape.rope_theta == 10000);
  CHECK_FALSE(shape.tied);
}

TEST_CASE("a head size of its own is kept", "[llama][hugging_face]") {
  Json json = base();
  json["head_dim"] = 32;
  CHECK(parse(json).shape.head_size == 32);
}

TEST_CASE("features that change the numbers are refused by name", "[llama][hugging_face]") {
  CHECK(error_of("{}") == "no error");
  CHECK_THAT(
      error_of(R"({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}})"),
      Contains("rope_scaling.rope_type = \"llama3\"") && Contains("rope_scaling.factor = 8.0"));
  CHECK_THAT(error_of(R"({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e5}})"),
             Contains("rope_parameters.rope_type"));
  CHECK_THAT(error_of(R"({"rope_parameters": {"rope_theta": 1e4}})"),
             Contains("rope_theta = 100000 contradicts rope_parameters, which say 10000"));
  CHECK_THAT(error_of(R"({"attention_bias": true})"),
             Contains("attention_bias = true changes the numbers"));
  CHECK_THAT(error_of(R"({"mlp_bias": true})"), Contains("mlp_bias"));
  CHECK_THAT(error_of(R"({"sliding_window": 4096})"), Contains("sliding_window = 4096"));
  CHECK_THAT(error_of(R"({"hidden_act": "gelu"})"), Contains("hidden_act = \"gelu\""));
  CHECK_THAT(error_of(R"({"partial_rotary_factor": 0.5})"), Contains("partial_rotary_factor"));
  CHECK_THAT(error_of(R"({"attention_dropout": 0.1})"), Contains("attention_dropout"));
  CHECK_THAT(error_of(R"({"quantization_config": {"bits": 4}})"), Contains("quantization_config"));
  CHECK_THAT(error_of(R"({"model_type": "gemma"})"), Contains("model_type = \"gemma\""));
}

TEST_CASE("a config.json that is wrong says all of it at once", "[llama][hugging_face]") {
  CHECK_THAT(
      error_of(R"({"hidden_size": null, "vocab_size": -3, "mlp_bias": true, "rms_norm_eps": "x"})"),
      Contains("hidden_size is missing") && Contains("vocab_size = -3 is not a size") &&
          Contains("mlp_bias") && Contains("rms_norm_eps = \"x\" is not a number"));
  CHECK_THAT(error_of(R"({"num_key_value_heads": 3})"), Contains("kv_heads"));
  CHECK_THAT(error_of(R"({"tie_word_embeddings": 1})"), Contains("tie_word_embeddings = 1"));
  CHECK_THROWS_WITH(parse_hugging_face_config("{", "c.json"), Contains("c.json: is not JSON"));
  CHECK_THROWS_WITH(parse_hugging_face_config("[]", "c.json"), Contains("not a JSON object"));
}

TEST_CASE("numbers of a config.json have their ranges", "[llama][hugging_face]") {
  for (const char* eps : {"1e300", "0", "0.0", "-1e-6", "1e-300", "2"})
    CHECK_THAT(error_of(R"({"rms_norm_eps": )" + std::string(eps) + "}"),
               Contains("rms_eps=") && Contains(": must be from 1e-30 to 1"));
  for (const char* theta : {"1e300", "0", "-10000", "0.5"})
    CHECK_THAT(error_of(R"({"rope_theta": )" + std::string(theta) + "}"),
               Contains("rope_theta=") && Contains(": must be from 1 to 1e+30"));
  for (const char* size : {"0", "1000000001"})
    CHECK_THAT(error_of(R"({"vocab_size": )" + std::string(size) + "}"),
               Contains("vocab=" + std::string(size) + ": must be from 1 to 1000000000"));
  for (const char* size : {"18446744073709551615", "2e3", "1.5", "true"})
    CHECK_THAT(error_of(R"({"vocab_size": )" + std::string(size) + "}"),
               Contains("vocab_size = ") && Contains(" is not a size"));
  CHECK_THAT(error_of(R"({"rope_theta": null, "rope_parameters": {"rope_theta": 1e4},
                          "rope_scaling": {"rope_theta": 2e4}})"),
             Contains("rope_theta = 10000 contradicts rope_scaling, which say 20000"));
  CHECK(error_of(R"({"logit_scale": 1, "attention_dropout": 0})") == "no error");
}

TEST_CASE("a key that a config.json has twice is refused by name", "[llama][hugging_face]") {
  const auto with = [](const std::string& text) {
    std::string json = base().dump();
    json.back() = ',';
    return parse_hugging_face_config(json + text + "}", "config.json");
  };
  CHECK_THROWS_WITH(with(R"("hidden_size": 64)"),
                    Contains("config.json: has the key \"hidden_size\" twice in one object"));
  CHECK_THROWS_WITH(with(R"("rope_parameters": {"rope_theta": 1e5, "rope_theta": 1e4})"),
                    Contains("has the key \"rope_theta\" twice"));
  CHECK_NOTHROW(with(R"("other": [{"a": 1}, {"a": {"a": 1}}])"));
}

TEST_CASE("an unknown key of a config.json is a notice", "[llama][hugging_face]") {
  Json json = base();
  json["new_feature"] = 1;
  const auto notices = parse(json).notices;
  REQUIRE(notices.size() == 1);
  CHECK_THAT(notices[0], Contains("new_feature"));
}

TEST_CASE("a written config.json reads back as the same shape", "[llama][hugging_face]") {
  LlamaShape shape = parse(base()).shape;
  shape.head_size = 32;
  shape.rope_theta = 12345.678;
  const auto text = format_hugging_face_config(shape, sifr::DType::kBFloat16, "");
  const auto config = parse_hugging_face_config(text, "config.json");
  CHECK(config.shape == shape);
  CHECK(config.notices.empty());
  CHECK(Json::parse(text)["torch_dtype"] == "bfloat16");
}

TEST_CASE("a config.json written back keeps what the source says", "[llama][hugging_face]") {
  Json json = base();
  json["bos_token_id"] = 7;
  const auto text =
      format_hugging_face_config(parse(json).shape, sifr::DType::kFloat32, json.dump());
  json["torch_dtype"] = "float32";
  CHECK(Json::parse(text) == json);
  json.erase("torch_dtype");
  json["dtype"] = "bfloat16";
  CHECK(Json::parse(format_hugging_face_config(
            parse(json).shape, sifr::DType::kFloat32, json.dump()))["dtype"] == "float32");
}

TEST_CASE("a config.json that nests without end is refused", "[llama][hugging_face]") {
  const auto nested = [](int levels) {
    const auto count = static_cast<std::size_t>(levels);
    Json shape = base();
    shape.erase("rope_scaling");
    std::string json = shape.dump();
    json.pop_back();
    return json + R"(, "rope_scaling": )" + std::string(count, '[') + std::string(count, ']') + "}";
  };
  for (const int levels : {100, 100'000, 1'000'000})
    CHECK_THROWS_WITH(parse_hugging_face_config(nested(levels), "config.json"),
                      Contains("nests deeper than 64 levels"));
  CHECK_THROWS_WITH(parse_hugging_face_config(nested(40), "config.json"),
                    Contains("rope_scaling = [[") && Contains("is not an object"));
}
