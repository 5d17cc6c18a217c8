#include "tests/llama/tiny_llama.hpp"

#include <nlohmann/json.hpp>

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace llama::test {
namespace {

using Json = nlohmann::json;

std::string read_file(const std::string& name) {
  std::ifstream file(std::string(LLAMA_TEST_DATA) + "/" + name, std::ios::binary);
  if (!file) throw std::runtime_error("no test data: " + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<TensorFacts> tensors(const Json& json) {
  std::vector<TensorFacts> all;
  for (const auto& [name, facts] : json.items()) {
    all.push_back({name, facts.at("first"), facts.at("spread"), facts.at("sum"), facts.at("norm")});
  }
  return all;
}

StepFacts step(const Json& json) {
  return {json.at("loss"), json.at("gradient_norm")};
}

std::vector<StepFacts> steps(const Json& json) {
  std::vector<StepFacts> all;
  for (const Json& one : json)
    all.push_back(step(one));
  return all;
}

Accept accept(const Json& json) {
  return {.logit_absolute = json.at("logit_absolute"),
          .gradient_tensor_norm_relative = json.at("gradient_tensor_norm_relative"),
          .gradient_value_per_rms = json.at("gradient_value_per_rms"),
          .loss_relative = json.at("loss_relative"),
          .gradient_norm_relative = json.at("gradient_norm_relative"),
          .value_absolute = json.at("value_absolute"),
          .tensor_norm_relative = json.at("tensor_norm_relative"),
          .tensor_sum_per_root_count = json.at("tensor_sum_per_root_count")};
}

LlamaShape shape(const Json& json) {
  return {.hidden = json.at("hidden_size"),
          .layers = json.at("num_hidden_layers"),
          .heads = json.at("num_attention_heads"),
          .kv_heads = json.at("num_key_value_heads"),
          .head_size = json.at("head_dim"),
          .intermediate = json.at("intermediate_size"),
          .vocab = json.at("vocab_size"),
          .tied = json.at("tie_word_embeddings"),
          .rope_theta = json.at("rope_theta"),
          .rms_eps = json.at("rms_norm_eps")};
}

}  // namespace

Oracle read_oracle() {
  const Json json = Json::parse(read_file("tiny_llama.json"));
  Oracle oracle;
  oracle.shape = shape(Json::parse(read_file("tiny_llama/config.json")));
  for (const Json& rows : json.at("micro_batches")) {
    std::vector<std::int32_t> tokens;
    for (const Json& row : rows) {
      for (const Json& token : row)
        tokens.push_back(token);
    }
    oracle.extent = {static_cast<std::int64_t>(rows.size()),
                     static_cast<std::int64_t>(rows[0].size()) - 1};
    oracle.micro_batches.push_back(tokens);
  }
  oracle.logits = json.at("logits").get<std::vector<std::vector<double>>>();
  oracle.backward = step(json.at("backward"));
  oracle.gradients = tensors(json.at("backward").at("gradients"));
  oracle.float32_steps = steps(json.at("float32").at("steps"));
  oracle.float32_after = tensors(json.at("float32").at("after"));
  oracle.bfloat16_steps = steps(json.at("bfloat16").at("steps"));
  oracle.bfloat16_spread = step(json.at("bfloat16_spread"));
  oracle.accept = accept(json.at("accept"));
  return oracle;
}

std::vector<sifr::bfloat16> read_weights(const std::string& name) {
  const std::string file = read_file("tiny_llama/model.safetensors");
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), sizeof header_bytes);
  const Json header = Json::parse(file.substr(8, header_bytes));
  const auto offsets = header.at(name).at("data_offsets").get<std::vector<std::size_t>>();
  std::vector<sifr::bfloat16> values((offsets[1] - offsets[0]) / sizeof(sifr::bfloat16));
  std::memcpy(values.data(), file.data() + 8 + header_bytes + offsets[0], offsets[1] - offsets[0]);
  return values;
}

}  // namespace llama::test
