#include "examples/llama/save.hpp"

#include "examples/llama/failure.hpp"
#include "examples/llama/ranks.hpp"
#include "tests/llama_io/hugging_face_folder.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <string>

using namespace llama;
using Catch::Matchers::Contains;

namespace {

/// An engine over these parameters with the values of hugging_face_folder.hpp; no forward.
sifr::Engine make_engine(sifr::Context& context, const LlamaShape& shape, bool bf16) {
  const auto declare = [&](sifr::Units& units) {
    std::size_t number = 0;
    for (const NamedUnit& unit : units_of(shape)) {
      std::vector<sifr::Parameter> parameters;
      for (const NamedParameter& named : unit.parameters) {
        const auto fill = [number, count = count_of(named.shape)](std::int64_t first,
                                                                  std::span<float> values) {
          const auto whole = values_of(number, count);
          std::copy_n(whole.begin() + first, values.size(), values.begin());
        };
        parameters.push_back({.name = named.name, .shape = named.shape, .fill = fill});
        ++number;
      }
      units.add(unit.name, parameters, unit.gradient_leases);
    }
  };
  const std::string json =
      std::string(R"({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3},)") +
      R"("optimizer": {"type": "AdamW"}, "bf16": {"enabled": )" + (bf16 ? "true}}" : "false}}");
  return sifr::Engine::initialize(declare, sifr::parse_config(json, "test"), {.context = &context});
}

bool is_whole(const std::filesystem::path& folder, const LlamaShape& shape) {
  const HuggingFaceModel model(folder);
  const auto parameters = parameters_of(shape);
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const auto expected = values_of(p, count_of(parameters[p].shape));
    std::vector<float> values(expected.size());
    model.fill(parameters[p].name)(0, values);
    if (values != expected) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("any number of ranks saves whole weights and masters", "[llama][save][CKP11][CKP25]") {
  const TemporaryFolder folder;
  for (const int ranks : {1, 2, 3}) {
    for (const bool bf16 : {false, true}) {
      const LlamaShape shape = tiny_shape(bf16);
      run_ranks(ranks, [&](sifr::Context& context) {
        sifr::Engine engine = make_engine(context, shape, bf16);
        const auto dtype = bf16 ? sifr::DType::kBFloat16 : sifr::DType::kFloat32;
        save_model(engine,
                   {.folder = folder / "weights", .shape = shape},
                   dtype,
                   sifr::ExportAs::kWeights);
        save_model(engine,
                   {.folder = folder / "masters", .shape = shape},
                   dtype,
                   sifr::ExportAs::kMasters);
      });
      CHECK(is_whole(folder / "weights", shape));
      CHECK(is_whole(folder / "masters", shape));
      // Each parameter once, a tied one too, and nothing beside them but the header.
      const auto bytes = shape.parameter_count() * (bf16 ? 2 : 4);
      const auto size = std::filesystem::file_size(folder / "weights/model.safetensors");
      CHECK(static_cast<std::int64_t>(size) - bytes > 0);
      CHECK(static_cast<std::int64_t>(size) - bytes < 4096);
      const sifr::SafetensorsFile weights(folder / "weights/model.safetensors");
      CHECK(weights.tensors()[0].dtype == (bf16 ? "BF16" : "F32"));
      CHECK(sifr::SafetensorsFile(folder / "masters/model.safetensors").tensors()[0].dtype ==
            "F32");
    }
  }
}

TEST_CASE("masters are stored in fp32, weights as the model computes", "[llama][save]") {
  const sifr::DType compute = GENERATE(sifr::DType::kBFloat16, sifr::DType::kFloat32);
  CHECK(stored_dtype(compute, sifr::ExportAs::kWeights) == compute);
  CHECK(stored_dtype(compute, sifr::ExportAs::kMasters) == sifr::DType::kFloat32);
}

TEST_CASE("ranks save into new nested folders and into those that are there",
          "[llama][save][CKP27]") {
  const TemporaryFolder folder;
  const LlamaShape shape = tiny_shape(false);
  run_ranks(4, [&](sifr::Context& context) {
    sifr::Engine engine = make_engine(context, shape, false);
    for (int i = 0; i < 10; ++i) {
      save_model(engine,
                 {.folder = folder / ("a/b" + std::to_string(i % 5) + "/c"), .shape = shape},
                 sifr::DType::kFloat32,
                 sifr::ExportAs::kWeights);
    }
  });
  for (int i = 0; i < 5; ++i)
    CHECK(is_whole(folder / ("a/b" + std::to_string(i) + "/c"), shape));
}

TEST_CASE("a save that fails is known on every rank and costs nothing", "[llama][save][CKP14]") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "m");
  write_file(folder / "m/mine.txt", "mine");
  const LlamaShape shape = tiny_shape(false);
  std::atomic<int> failed = 0;
  std::atomic<int> saved = 0;
  run_ranks(3, [&](sifr::Context& context) {
    sifr::Engine engine = make_engine(context, shape, false);
    const auto save = [&](const char* name) {
      save_model(engine,
                 {.folder = folder / name, .shape = shape},
                 sifr::DType::kFloat32,
                 sifr::ExportAs::kWeights);
    };
    try {
      save("m");
    } catch (const sifr::IoError&) {
      failed += context.rank() == 0 ? 1 : 100;
    } catch (const PeerFailed&) {
      failed += context.rank() == 0 ? 100 : 1;
    }
    save("n");
    ++saved;
  });
  CHECK(failed == 3);
  CHECK(saved == 3);
  CHECK(is_whole(folder / "n", shape));
  CHECK(read_file(folder / "m/mine.txt") == "mine");
}

TEST_CASE("the first failure of any rank is what the caller sees", "[llama][save]") {
  for (const int failing : {0, 1, 2}) {
    const auto body = [&](sifr::Context& context) {
      if (context.rank() == failing) throw sifr::UsageError("rank gave up");
      context.barrier();
    };
    CHECK_THROWS_WITH(run_ranks(3, body), "rank gave up");
  }
  const auto body = [](sifr::Context& context) {
    on_root(context, "writing", [] { throw sifr::UsageError("root gave up"); });
  };
  CHECK_THROWS_WITH(run_ranks(3, body), "root gave up");
}
