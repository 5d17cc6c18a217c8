#include "examples/llama/hugging_face_writer.hpp"

#include "tests/llama_io/hugging_face_folder.hpp"

#include <catch2/catch.hpp>

using namespace llama;
using Catch::Matchers::Contains;

namespace {

std::vector<sifr::SafetensorsWriter::Declared> declared(const LlamaShape& shape) {
  std::vector<sifr::SafetensorsWriter::Declared> all;
  for (const auto& one : parameters_of(shape))
    all.push_back({one.name, sifr::DType::kFloat32, one.shape});
  return all;
}

void write_all(HuggingFaceWriter& writer, const LlamaShape& shape) {
  const auto parameters = parameters_of(shape);
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const auto values = values_of(p, count_of(parameters[p].shape));
    const auto half = static_cast<std::int64_t>(values.size() / 2);
    const auto piece = [&](std::int64_t first, std::int64_t length) {
      writer.write(
          {parameters[p].name, parameters[p].shape, first, view_of(values).slice(first, length)});
    };
    piece(0, half);
    piece(half, static_cast<std::int64_t>(values.size()) - half);
  }
}

void save(const SaveOptions& options) {
  HuggingFaceWriter writer(options, declared(options.shape));
  write_all(writer, options.shape);
  writer.finish();
}

void check_readable(const std::filesystem::path& folder, const LlamaShape& shape) {
  const HuggingFaceModel model(folder);
  CHECK(model.shape() == shape);
  const auto parameters = parameters_of(shape);
  std::size_t wrong = 0;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const auto expected = values_of(p, count_of(parameters[p].shape));
    std::vector<float> values(expected.size());
    model.fill(parameters[p].name)(0, values);
    wrong += values == expected ? 0 : 1;
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("a saved folder reads back, whole or in shards", "[llama][hugging_face][CKP08]") {
  const TemporaryFolder folder;
  save({.folder = folder / "one", .shape = tiny_shape(false)});
  check_readable(folder / "one", tiny_shape(false));
  CHECK_FALSE(std::filesystem::exists(folder / "one/model.safetensors.index.json"));
  save({.folder = folder / "many/deep/", .shape = tiny_shape(true), .shard_bytes = 200});
  check_readable(folder / "many/deep", tiny_shape(true));
  CHECK(std::filesystem::exists(folder / "many/deep/model-00002-of-00008.safetensors"));
  CHECK(folder.count() == 2);
}

TEST_CASE("tokenizer and config travel along from the source", "[llama][hugging_face]") {
  const TemporaryFolder folder;
  save({.folder = folder / "source", .shape = tiny_shape(true)});
  write_file(folder / "source/tokenizer.json", "{}");
  write_file(folder / "source/README.md", "stays");
  const HuggingFaceModel source(folder / "source");
  save({.folder = folder / "copy", .shape = tiny_shape(true), .source = &source});
  CHECK(read_file(folder / "copy/tokenizer.json") == "{}");
  CHECK_FALSE(std::filesystem::exists(folder / "copy/README.md"));
  CHECK(read_file(folder / "copy/config.json") == read_file(folder / "source/config.json"));
}

TEST_CASE("a save replaces an older one only when it is complete",
          "[llama][hugging_face][CKP14][CKP34]") {
  const TemporaryFolder folder;
  save({.folder = folder / "m", .shape = tiny_shape(false)});
  {
    HuggingFaceWriter unfinished({.folder = folder / "m", .shape = tiny_shape(true)},
                                 declared(tiny_shape(true)));
    CHECK(folder.count() == 2);
  }
  CHECK(folder.count() == 1);
  check_readable(folder / "m", tiny_shape(false));
  {
    HuggingFaceWriter early({.folder = folder / "m", .shape = tiny_shape(true)},
                            declared(tiny_shape(true)));
    CHECK_THROWS_AS(early.finish(), sifr::UsageError);
  }
  check_readable(folder / "m", tiny_shape(false));
  std::filesystem::create_directories(folder / "m.partial");
  write_file(folder / "m.partial/model.safetensors", "of another's save");
  save({.folder = folder / "m", .shape = tiny_shape(true), .shard_bytes = 300});
  check_readable(folder / "m", tiny_shape(true));
  CHECK_FALSE(std::filesystem::exists(folder / "m/model.safetensors"));
  CHECK(read_file(folder / "m.partial/model.safetensors") == "of another's save");
  CHECK(folder.count() == 2);
}

TEST_CASE("a save into its own source works", "[llama][hugging_face]") {
  const TemporaryFolder folder;
  save({.folder = folder / "m", .shape = tiny_shape(true)});
  const HuggingFaceModel source(folder / "m");
  save({.folder = folder / "m", .shape = tiny_shape(true), .source = &source});
  check_readable(folder / "m", tiny_shape(true));
}

TEST_CASE("a folder that is no model is never replaced", "[llama][hugging_face]") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "m");
  write_file(folder / "m/thesis.tex", "years of work");
  CHECK_THROWS_WITH(NewFolder(folder / "m"),
                    Contains("holds 'thesis.tex'") && Contains("would be lost"));
  std::filesystem::create_directories(folder / "n/model.safetensors");
  CHECK_THROWS_WITH(NewFolder(folder / "n"), Contains("would be lost"));
  write_file(folder / "file", "");
  CHECK_THROWS_WITH(NewFolder(folder / "file"), Contains("is not a folder"));
  CHECK_THROWS_WITH(NewFolder(folder / "file/below"), Contains("cannot be made"));
  CHECK(read_file(folder / "m/thesis.tex") == "years of work");
}

TEST_CASE("files that no save wrote are never lost", "[llama][hugging_face]") {
  const TemporaryFolder folder;
  for (const char* name :
       {"tokenizer.json", "model-backup.safetensors", "model-1.safetensors.bak"}) {
    save({.folder = folder / "m", .shape = tiny_shape(false)});
    write_file(folder / "m" / name, "mine");
    CHECK_THROWS_WITH(save({.folder = folder / "m", .shape = tiny_shape(true)}),
                      Contains("holds '" + std::string(name) + "'") && Contains("would be lost"));
    CHECK(read_file(folder / "m" / name) == "mine");
    std::filesystem::remove(folder / "m" / name);
  }
  for (const char* name : {"config.json", "model.safetensors", "vocab.json"}) {
    const auto alone = folder / (std::string("only-") + name);
    std::filesystem::create_directories(alone);
    write_file(alone / name, "mine");
    CHECK_THROWS_WITH(NewFolder(alone), Contains("no whole saved model"));
    CHECK(read_file(alone / name) == "mine");
  }
}

TEST_CASE("too little space is told before a byte is written", "[llama][hugging_face][CKP14]") {
  const TemporaryFolder folder;
  const NewFolder fresh(folder / "m");
  CHECK_THROWS_WITH(fresh.require_space(std::int64_t{1} << 60),
                    Contains("needs 1099511627776.00 MiB"));
}

TEST_CASE("two renames replace a folder where exchanging is impossible", "[llama][hugging_face]") {
  const TemporaryFolder folder;
  save({.folder = folder / "older", .shape = tiny_shape(false)});
  save({.folder = folder / "new", .shape = tiny_shape(true)});
  replace_by_renames(folder / "new", folder / "older");
  check_readable(folder / "older", tiny_shape(true));
  CHECK(folder.count() == 1);
  CHECK_THROWS_AS(replace_by_renames(folder / "none", folder / "older"), sifr::IoError);
  check_readable(folder / "older", tiny_shape(true));
  CHECK(folder.count() == 1);
}
