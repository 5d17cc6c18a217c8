#include "examples/llama/hugging_face.hpp"

#include "tests/llama_io/hugging_face_folder.hpp"

#include <catch2/catch.hpp>

#include <cstring>

using namespace llama;
using Catch::Matchers::Contains;

namespace {

std::string error_of(const std::filesystem::path& folder) {
  try {
    const HuggingFaceModel model(folder);
  } catch (const sifr::IoError& error) {
    return error.message();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a fill reads exactly the stretch that it is asked for", "[llama][hugging_face]") {
  const TemporaryFolder folder;
  const auto parameters = parameters_of(tiny_shape(false));
  write_config(folder.path(), tiny_shape(false));
  write_weights(folder / "model.safetensors", parameters);
  std::vector<sifr::Fill> fills;
  {
    const HuggingFaceModel model(folder.path());
    CHECK(model.shape() == tiny_shape(false));
    for (const NamedParameter& one : parameters)
      fills.push_back(model.fill(one.name));
    CHECK_THROWS_AS(model.fill("nothing"), sifr::UsageError);
  }
  for (std::size_t p = 0; p < parameters.size(); ++p) {  // the fills keep the file
    const auto whole = values_of(p, count_of(parameters[p].shape));
    std::vector<float> stretch(whole.size() - 2);
    fills[p](1, stretch);
    CHECK(stretch == std::vector<float>(whole.begin() + 1, whole.end() - 1));
  }
}

TEST_CASE("weights are widened exactly, at any place", "[llama][hugging_face]") {
  const TemporaryFolder folder;
  const sifr::DType dtype =
      GENERATE(sifr::DType::kFloat32, sifr::DType::kBFloat16, sifr::DType::kFloat16);
  constexpr std::int64_t kCount = 40000;  // more than one piece
  std::vector<std::byte> bytes(static_cast<std::size_t>(kCount * sifr::size_of(dtype)));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(i * 37 % 127);
  sifr::SafetensorsWriter writer(folder / "w", {{"a", dtype, {3}}, {"b", dtype, {kCount}}});
  writer.write("a", 0, {bytes.data(), 3, dtype});
  writer.write("b", 0, {bytes.data(), kCount, dtype});
  writer.finish();
  const WeightsFile file(folder / "w");
  const sifr::SafetensorsFile mapped(folder / "w");
  std::vector<float> values(kCount - 5);
  std::vector<float> expected(values.size());
  file.read(file.tensors()[1], 5, values);
  mapped.read(mapped.tensors()[1], 5, expected);
  CHECK(std::memcmp(values.data(), expected.data(), values.size() * sizeof(float)) == 0);
}

TEST_CASE("weights that are cut short after the start are an error that names the file",
          "[llama][hugging_face]") {
  const TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  const auto parameters = parameters_of(tiny_shape(false));
  write_config(folder.path(), tiny_shape(false));
  write_weights(path, parameters);
  const HuggingFaceModel model(folder.path());
  const auto fill = model.fill(parameters.back().name);
  std::vector<float> values(4);
  CHECK_NOTHROW(fill(0, values));
  std::filesystem::resize_file(path, 20);
  CHECK_THROWS_WITH(
      fill(0, values),
      Contains("model.safetensors: has no byte") && Contains("was it cut short after the start?"));
}

TEST_CASE("shards are found by their index", "[llama][hugging_face]") {
  const TemporaryFolder folder;
  const auto parameters = parameters_of(tiny_shape(true));
  write_config(folder.path(), tiny_shape(true));
  write_weights(folder / "a.safetensors", {parameters.begin(), parameters.begin() + 5});
  write_weights(folder / "b.safetensors", {parameters.begin() + 5, parameters.end()});
  std::string map;
  for (std::size_t p = 0; p < parameters.size(); ++p)
    map += "\"" + parameters[p].name + (p < 5 ? "\":\"a.safetensors\"," : "\":\"b.safetensors\",");
  map.pop_back();
  write_file(folder / "model.safetensors.index.json",
             R"({"metadata":{},"weight_map":{)" + map + "}}");
  const HuggingFaceModel model(folder.path());
  std::vector<float> first(1);
  model.fill(parameters[6].name)(0, first);
  CHECK(first[0] == values_of(1, 1)[0]);

  write_file(folder / "model.safetensors.index.json", R"({"weight_map":{"x":"a.safetensors"}})");
  CHECK_THAT(error_of(folder.path()),
             Contains("places the tensor 'x' in a.safetensors, where it is not"));
  write_file(folder / "model.safetensors.index.json", R"({"weight_map":{"x":"../a.safetensors"}})");
  CHECK_THAT(error_of(folder.path()), Contains("not a file of the folder"));
  write_file(folder / "model.safetensors.index.json",
             R"({"weight_map":{"x":"a.safetensors","x":"b.safetensors"}})");
  CHECK_THAT(error_of(folder.path()), Contains("has the key \"x\" twice"));
  write_file(folder / "model.safetensors.index.json", R"({"weight_map":[]})");
  CHECK_THAT(error_of(folder.path()), Contains("no index of shards"));
}

TEST_CASE("missing, superfluous and misshaped tensors are all named",
          "[llama][hugging_face][CKP09]") {
  const TemporaryFolder folder;
  auto parameters = parameters_of(tiny_shape(false));
  write_config(folder.path(), tiny_shape(false));
  CHECK_THAT(error_of(folder.path()), Contains("has neither model.safetensors nor"));
  parameters.pop_back();
  parameters[1].name = "model.layers.0.input_layernorm.bias";
  std::swap(parameters[2].shape[0], parameters[9].shape[0]);
  parameters[2].shape = {4, 5};
  write_weights(folder / "model.safetensors", parameters);
  CHECK_THAT(
      error_of(folder.path()),
      Contains("'lm_head.weight' is missing (config.json says tie_word_embeddings = false)") &&
          Contains("'model.layers.0.input_layernorm.weight' is missing") &&
          Contains("'model.layers.0.input_layernorm.bias' has no place") &&
          Contains("'model.layers.0.self_attn.q_proj.weight' has the shape [4, 5], but config.json "
                   "says [4, 4]"));
}

TEST_CASE("a tied head's copy may be there if it is one", "[llama][hugging_face]") {
  const TemporaryFolder folder;
  auto parameters = parameters_of(tiny_shape(true));
  write_config(folder.path(), tiny_shape(true));
  parameters.push_back({"lm_head.weight", {8, 4}});
  write_weights(folder / "model.safetensors", parameters);
  CHECK_THAT(error_of(folder.path()), Contains("'lm_head.weight' differs from the embedding"));

  const std::vector<float> zeros(32);
  std::vector<sifr::SafetensorsWriter::Declared> declared;
  declared.reserve(parameters.size());
  for (const auto& one : parameters)
    declared.push_back({one.name, sifr::DType::kFloat32, one.shape});
  sifr::SafetensorsWriter writer(folder / "model.safetensors", declared);
  for (const auto& one : parameters)
    writer.write(one.name, 0, view_of(zeros).slice(0, count_of(one.shape)));
  writer.finish();
  CHECK(error_of(folder.path()) == "no error");
}

TEST_CASE("a folder that is none is refused", "[llama][hugging_face]") {
  const TemporaryFolder folder;
  CHECK_THAT(error_of(folder / "none"), Contains("is not a folder"));
  CHECK_THAT(error_of(folder.path()), Contains("config.json: cannot be opened"));
}
