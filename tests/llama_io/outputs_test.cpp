#include "examples/llama/outputs.hpp"

#include "sifr_error.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <string>

using namespace llama;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

Options options_in(const TemporaryFolder& folder) {
  fs::create_directories(folder / "run");
  fs::create_directories(folder / "model");
  for (const char* name : {"run/config.json", "run/vocab.json", "d.txt", "model/model.safetensors"})
    write_file(folder / name, "text");
  Options options;
  options.config = folder / "run/config.json";
  options.data = folder / "d.txt";
  options.model = folder / "model";
  return options;
}

std::string refusal(const Options& options) {
  try {
    require_separate_outputs(options);
  } catch (const sifr::UsageError& error) {
    return error.message();
  }
  return "none";
}

}  // namespace

TEST_CASE("a result never overwrites what is read", "[llama][options]") {
  const TemporaryFolder folder;
  Options options = options_in(folder);
  fs::create_symlink("d.txt", folder / "link");
  fs::create_hard_link(folder / "d.txt", folder / "hard");
  for (const char* name : {"d.txt", "run/../d.txt", "link", "hard"}) {
    options.metrics = folder / name;
    CHECK_THAT(refusal(options),
               Contains("--metrics would overwrite") && Contains("the file of --data"));
  }
  options.metrics = folder / "run/config.json";
  CHECK_THAT(refusal(options), Contains("--metrics") && Contains("the file of --config"));
  options.metrics.clear();
  options.logits = folder / "model/model.safetensors";
  CHECK_THAT(refusal(options), Contains("--logits") && Contains("the file of --model"));
  options.logits = folder / "e.txt";
  options.eval_data = folder / "e.txt";
  CHECK_THAT(refusal(options), Contains("--logits") && Contains("the file of --eval-data"));
}

TEST_CASE("no two results go to the same file", "[llama][options]") {
  const TemporaryFolder folder;
  Options options = options_in(folder);
  options.metrics = folder / "new";
  options.logits = folder / "run/../new";
  CHECK_THAT(refusal(options), Contains("--logits") && Contains("the file of --metrics"));
}

TEST_CASE("a folder that is replaced holds no file of the run", "[llama][options]") {
  const TemporaryFolder folder;
  Options options = options_in(folder);
  options.save = folder / "run";
  CHECK_THAT(refusal(options), Contains("--save") && Contains("the file of --config"));
  options.config = folder / "c.json";
  options.data = folder / "run/vocab.json";
  CHECK_THAT(refusal(options), Contains("--save") && Contains("the file of --data"));
  fs::create_directory_symlink("run", folder / "link");
  options.save = folder / "link/";
  CHECK_THAT(refusal(options), Contains("the file of --data"));
  options.data = folder / "d.txt";
  options.save = folder / "new/";
  options.logits = folder / "new/logits";
  CHECK_THAT(refusal(options), Contains("--save") && Contains("the file of --logits"));
}

TEST_CASE("results of their own go anywhere", "[llama][options]") {
  const TemporaryFolder folder;
  Options options = options_in(folder);
  options.save = options.model;
  options.metrics = folder / "run/metrics.jsonl";
  options.logits = folder / "modelx";
  CHECK(refusal(options) == "none");
}
