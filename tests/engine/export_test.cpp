#include "tests/engine/odd_model.hpp"
#include "tests/engine/small_engine.hpp"
#include "tests/support/python.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>

using Catch::Contains;

namespace sifr::test {
namespace {

struct Exported {
  std::vector<std::string> names;  // in order of their first piece
  std::map<std::string, std::string> bytes;
  std::int64_t largest = 0;  // bytes of a piece
};

Exported export_from(Engine& engine, ExportAs what, int root) {
  Exported exported;
  engine.export_weights(
      [&](const WeightPiece& piece) {
        const std::string name(piece.name);
        std::string& bytes = exported.bytes[name];
        if (piece.first == 0) exported.names.push_back(name);
        SIFR_CHECK_RANK(static_cast<std::int64_t>(bytes.size()) ==
                        piece.first * size_of(piece.values.dtype));
        bytes.append(reinterpret_cast<const char*>(piece.values.data),
                     static_cast<std::size_t>(piece.values.bytes()));
        exported.largest = std::max(exported.largest, piece.values.bytes());
      },
      what,
      root);
  return exported;
}

// The odd model after two steps.
template <class Result>
Result trained(int ranks, const SmallConfig& config, const std::function<Result(Engine&)>& then) {
  auto contexts = quiet_contexts(ranks);
  std::vector<Result> results(static_cast<std::size_t>(ranks));
  run_ranks(contexts, [&](Context& context) {
    OddModel model;
    auto engine = Engine::initialize(model, make_config(config), {.context = &context});
    for (std::int64_t step = 0; step < 2; ++step) {
      model.run(engine, {0, step, 1});  // the same on every rank: sums are exact multiples
      engine.step();
    }
    results[static_cast<std::size_t>(context.rank())] = then(engine);
  });
  return results.front();
}

std::vector<std::string> declared_names() {
  std::vector<std::string> names;
  for (const OddUnit& unit : OddModel::units()) {
    for (const OddParameter& parameter : unit.parameters)
      names.push_back(parameter.name);
  }
  return names;
}

TEST_CASE("weights and masters come in declaration order and are equal at every stage",
          "[engine][PAR05][PAR07][API02][CKP12]") {
  const bool is_bf16 = GENERATE(false, true);
  const ExportAs what = GENERATE(ExportAs::kWeights, ExportAs::kMasters);
  const int ranks = GENERATE(1, 3);
  const int root = ranks - 1;
  std::map<std::string, std::string> first;
  for (int stage = 0; stage <= 3; ++stage) {
    std::mutex mutex;
    Exported exported;
    trained<int>(ranks, {.stage = stage, .is_bf16 = is_bf16}, [&](Engine& engine) {
      Exported own = export_from(engine, what, root);
      const std::scoped_lock lock(mutex);
      if (engine.rank() == root) exported = std::move(own);
      return 0;
    });
    CHECK(exported.names == declared_names());
    if (stage == 0) first = exported.bytes;
    CHECK(exported.bytes == first);
  }
}

TEST_CASE("a parameter has its whole shape at every stage, leased and exported",
          "[engine][ST310]") {
  const Config config = make_config({.stage = GENERATE(0, 1, 2, 3)});
  auto contexts = quiet_contexts(2);
  run_ranks(contexts, [&](Context& context) {
    Unit unit;
    const Engine::Declare declare = [&](Units& units) {
      unit = units.add("one", {{.name = "one.weight", .shape = {4, 3}}});
    };
    auto engine = Engine::initialize(declare, config, {.context = &context});
    SIFR_CHECK_RANK(engine.weights(unit).count(0) == 12);
    std::int64_t seen = 0;
    engine.export_weights([&](const WeightPiece& piece) {
      SIFR_CHECK_RANK(std::vector(piece.shape.begin(), piece.shape.end()) ==
                      std::vector<std::int64_t>({4, 3}));
      seen += piece.values.count;
    });
    SIFR_CHECK_RANK(seen == (context.rank() == 0 ? 12 : 0));
  });
}

TEST_CASE("only the root's sink is called, which may be any rank", "[engine]") {
  const int root = GENERATE(0, 1, 2);
  const auto body = [&](Engine& engine, SmallModel&) {
    const Exported exported = export_from(engine, ExportAs::kWeights, root);
    SIFR_CHECK_RANK(exported.names.size() == (engine.rank() == root ? 3U : 0U));
    SIFR_CHECK_RANK(error_of([&] { engine.export_weights({}, ExportAs::kWeights, 3); }) ==
                    "UsageError: export_weights(): root is 3, and there are 3 ranks");
  };
  for (const std::string& error : errors_of_ranks(3, {.stage = GENERATE(0, 1, 2, 3)}, body))
    CHECK(error == "");
}

TEST_CASE("pieces have at most 64 MiB", "[engine][CKP32]") {
  const std::int64_t count = 17'000'001;  // 65 MiB in fp32
  const auto body = [&](Engine& engine, SmallModel&) {
    const Exported exported = export_from(engine, ExportAs::kMasters, 0);
    SIFR_CHECK_RANK(exported.largest <= 64 << 20);
    SIFR_CHECK_RANK(engine.memory().row(Tier::kDevice, Purpose::kStaging).peak <= 64 << 20);
    if (engine.rank() == 0)
      SIFR_CHECK_RANK(static_cast<std::int64_t>(exported.bytes.at("a.weight").size()) == 4 * count);
  };
  for (const std::string& error :
       errors_of_ranks(2, {.stage = 3}, body, SmallModel({{"a", count}})))
    CHECK(error == "");
}

TEST_CASE("a step without learning rate changes no weight", "[engine][CKP18]") {
  SmallConfig config{.stage = GENERATE(0, 1, 2, 3), .is_bf16 = GENERATE(false, true)};
  config.optimizer = R"({"type": "AdamW", "params": {"lr": 0, "weight_decay": 0.1}})";
  const auto body = [](Engine& engine, SmallModel& model) {
    const Exported before = export_from(engine, ExportAs::kMasters, 0);
    model.run(engine, 1);
    SIFR_CHECK_RANK(engine.step().outcome == Outcome::kUpdated);
    SIFR_CHECK_RANK(export_from(engine, ExportAs::kMasters, 0).bytes == before.bytes);
  };
  for (const std::string& error : errors_of_ranks(2, config, body))
    CHECK(error == "");
}

TEST_CASE("a sink that throws fails the call on every rank and nothing more", "[engine]") {
  const auto body = [](Engine& engine, SmallModel& model) {
    const std::string error = error_of([&] {
      engine.export_weights(
          [](const WeightPiece& piece) {
            if (piece.name == "b.weight") throw std::runtime_error("disk full");
          },
          ExportAs::kWeights,
          1);
    });
    SIFR_CHECK_RANK(error == (engine.rank() == 1 ? "disk full"
                                                 : "UsageError: export_weights(): the sink on rank "
                                                   "1 threw: disk full"));
    model.run(engine, 1);
    SIFR_CHECK_RANK(engine.step().outcome == Outcome::kUpdated);
    SIFR_CHECK_RANK(export_from(engine, ExportAs::kWeights, 1).names.size() ==
                    (engine.rank() == 1 ? 3U : 0U));
  };
  for (const std::string& error : errors_of_ranks(3, {.stage = GENERATE(0, 1, 2, 3)}, body))
    CHECK(error == "");
}

TEST_CASE("a sink cannot step, drop or export", "[engine]") {
  auto contexts = quiet_contexts(1);
  SmallModel model;
  auto engine = Engine::initialize(
      model, make_config({.stage = GENERATE(0, 1, 2, 3)}), {.context = &contexts.front()});
  const Sink nothing = [](const WeightPiece&) {};
  for (const auto& call :
       std::vector<std::function<void()>>{[&] { engine.step(); },
                                          [&] { engine.drop_gradients(); },
                                          [&] { engine.export_weights(nothing); }}) {
    CHECK_THAT(error_of([&] { engine.export_weights([&](const WeightPiece&) { call(); }); }),
               Contains("export_weights() is calling its sink"));
  }
  model.run(engine, 1);
  CHECK(engine.step().outcome == Outcome::kUpdated);
}

TEST_CASE("equal weights have one hash at every stage and number of ranks", "[engine]") {
  const bool is_bf16 = GENERATE(false, true);
  std::string first;
  for (int stage = 0; stage <= 3; ++stage) {
    for (int ranks = 1; ranks <= 4; ++ranks) {
      auto contexts = quiet_contexts(ranks);
      std::vector<std::string> hashes(static_cast<std::size_t>(ranks));
      run_ranks(contexts, [&](Context& context) {
        OddModel model;
        auto engine = Engine::initialize(
            model, make_config({.stage = stage, .is_bf16 = is_bf16}), {.context = &context});
        hashes[static_cast<std::size_t>(context.rank())] = engine.weights_hash();
      });
      if (first.empty()) first = hashes.front();
      CHECK(first.size() == 32);
      for (const std::string& hash : hashes)
        CHECK(hash == first);
    }
  }
}

// A model of two equal-shaped parameters whose elements are what the test says.
std::string hash_of(const std::array<std::vector<float>, 2>& values, bool trainable) {
  auto contexts = quiet_contexts(1);
  const auto declare = [&](Units& units) {
    std::vector<Parameter> parameters;
    for (std::size_t p = 0; p < 2; ++p) {
      const Fill fill = [&values, p](std::int64_t at, std::span<float> piece) {
        std::copy_n(values[p].begin() + at, piece.size(), piece.begin());
      };
      parameters.push_back({.name = "p" + std::to_string(p),
                            .shape = {static_cast<std::int64_t>(values[p].size())},
                            .fill = fill,
                            .trainable = trainable});
    }
    static_cast<void>(units.add("unit", std::move(parameters)));
  };
  return Engine::initialize(declare, make_config({.stage = 1}), {.context = &contexts.front()})
      .weights_hash();
}

TEST_CASE("one flipped bit or two swapped parameters change the hash", "[engine]") {
  const bool trainable = GENERATE(true, false);
  std::array<std::vector<float>, 2> values = {std::vector<float>(515, 1.5F),
                                              std::vector<float>(515, 2.5F)};
  const std::string hash = hash_of(values, trainable);
  for (const std::size_t at : {0U, 255U, 256U, 511U, 514U}) {
    auto flipped = values;
    flipped[1][at] = std::nextafter(2.5F, 3.0F);
    CHECK(hash_of(flipped, trainable) != hash);
  }
  CHECK(hash_of({values[1], values[0]}, trainable) != hash);
  CHECK(hash_of(values, trainable) == hash);
}

// What tests/device/weights_hash.py prints for files of exported bytes.
std::string hash_in_python(const Exported& exported) {
  const TemporaryFolder folder;
  std::string arguments;
  for (std::size_t p = 0; p < exported.names.size(); ++p) {
    const auto path = folder.path() / fmt::format("{}", p);
    std::ofstream(path, std::ios::binary) << exported.bytes.at(exported.names[p]);
    const bool is_stored_in_bf16 = exported.names[p].find("frozen") != std::string::npos;
    arguments += fmt::format(" '{}:{}'", is_stored_in_bf16 ? 2 : 4, path.string());
  }
  return run_python(SIFR_PYTHON, SIFR_WEIGHTS_HASH, arguments);
}

TEST_CASE("the hash is what the documented Python program prints for exported masters",
          "[engine]") {
  if (std::string(SIFR_PYTHON).empty()) {
    std::cout << "[skipped] no Python\n";
    return;
  }
  Exported exported;
  const std::string hash =
      trained<std::string>(1, {.stage = 3, .is_bf16 = true}, [&](Engine& engine) {
        exported = export_from(engine, ExportAs::kMasters, 0);
        return engine.weights_hash();
      });
  CHECK(hash_in_python(exported) == hash + "\n");
}

}  // namespace
}  // namespace sifr::test
