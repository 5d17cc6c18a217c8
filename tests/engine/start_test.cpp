// An engine that makes its own context and cannot start.
#include "sifr.hpp"

#include <catch2/catch.hpp>

#include <stdexcept>

namespace sifr::test {
namespace {

constexpr const char* kOptimizer = R"("optimizer": {"type": "AdamW"})";

Config config_with(const std::string& keys) {
  return parse_config("{" + keys + "}", "start.json");
}

void declare_one(Units& units) {
  units.add("one", {{.name = "one.weight", .shape = {4}}});
}

TEST_CASE("an engine with its own context tells why it cannot start", "[engine]") {
  const std::string micro = R"("train_micro_batch_size_per_gpu": 1, )";
  const auto start = [](const Engine::Declare& declare, const Config& config) {
    const Engine engine = Engine::initialize(declare, config);
  };
  CHECK_THROWS_AS(start(declare_one, config_with(kOptimizer)), ConfigError);
  CHECK_THROWS_AS(start(declare_one, config_with(micro + R"("steps_per_print": 1)")), ConfigError);
  const auto twice = [](Units& units) {
    declare_one(units);
    declare_one(units);
  };
  CHECK_THROWS_AS(start(twice, config_with(micro + kOptimizer)), UsageError);
  const auto too_large = [](Units& units) {
    units.add("large", {{.name = "large.weight", .shape = {std::int64_t{1} << 40}}});
  };
  CHECK_THROWS_AS(start(too_large, config_with(micro + kOptimizer)), OutOfMemory);
  const auto throws = [](Units&) { throw std::runtime_error("no model today"); };
  CHECK_THROWS_WITH(start(throws, config_with(micro + kOptimizer)), "no model today");
  CHECK_THROWS_AS(static_cast<void>(Engine::initialize(declare_one, "no such file.json")),
                  ConfigError);
}

}  // namespace
}  // namespace sifr::test
