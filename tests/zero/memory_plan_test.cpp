#include "zero/memory_plan.hpp"

#include "tests/zero/unit_specs.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

namespace sifr::test {
namespace {

struct Model {
  std::vector<UnitSpec> units;
  double elements = 0;
  double largest = 0;     // unit
  double neighbours = 0;  // the two largest neighbouring units with one gradient lease
  double tied = 0;        // units with several
};

// A transformer of `blocks` blocks of 12 · hidden² elements between two embeddings, tied or not.
Model transformer(int blocks, std::int64_t hidden, bool is_tied, DType dtype) {
  constexpr std::int64_t kVocabulary = 32'000;
  Model model;
  const std::int64_t block = 12 * hidden * hidden + 13 * hidden;
  model.units.push_back(unit("embedding", kVocabulary * hidden, dtype, is_tied ? 2 : 1));
  for (int b = 0; b < blocks; ++b)
    model.units.push_back(unit("block." + std::to_string(b), block, dtype));
  if (!is_tied) model.units.push_back(unit("head", kVocabulary * hidden, dtype));
  double before = 0;
  for (const UnitSpec& spec : model.units) {
    const auto count = static_cast<double>(spec.parameters[0].count);
    model.elements += count;
    model.largest = std::max(model.largest, count);
    if (spec.gradient_leases > 1) {
      model.tied += count;
      continue;
    }
    model.neighbours = std::max(model.neighbours, before + count);
    before = count;
  }
  return model;
}

// Bytes on one rank as the papers and docs count them.
double expected_bytes(const Model& model, int stage, double ranks, double bytes, double window) {
  const double all = model.elements;
  const double state = bytes == 4 ? 8 : 12;  // in fp32 the weights are the masters
  const double ring = bytes * (model.neighbours + model.tied);
  const double sums = 4 * all / ranks;
  switch (stage) {
    case 0:
      return bytes * all + bytes * all + sums + state * all + 2 * 4 * model.largest;
    case 1:
      return bytes * all + bytes * all + sums + state * all / ranks;
    case 2:
      return bytes * all + ring + sums + state * all / ranks;
    default:
      return bytes * all / ranks + window + ring + sums + state * all / ranks;
  }
}

TEST_CASE("the plan is the documented formula within 5 % at realistic sizes",
          "[zero][MEM03][MEM04]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const int ranks = GENERATE(1, 2, 3, 4, 8, 64);
  const DType dtype = GENERATE(DType::kFloat32, DType::kBFloat16);
  const bool is_tied = GENERATE(false, true);
  const Model model = transformer(GENERATE(2, 12), GENERATE(256, 768), is_tied, dtype);
  const MemoryPlan plan = make_memory_plan(Layout(model.units, ranks), {.stage = stage});
  const auto bytes = static_cast<double>(size_of(dtype));
  const double expected = expected_bytes(model, stage, ranks, bytes, bytes * model.elements);
  INFO("stage " << stage << ", " << ranks << " ranks, " << bytes << " bytes");
  CHECK(static_cast<double>(plan.total()) == Approx(expected).epsilon(0.05));
}

TEST_CASE("a small live limit bounds the window by the units that must fit", "[zero]") {
  const DType dtype = GENERATE(DType::kFloat32, DType::kBFloat16);
  const bool is_tied = GENERATE(false, true);
  const Model model = transformer(12, 768, is_tied, dtype);
  const MemoryPlan plan = make_memory_plan(Layout(model.units, 4), {.stage = 3, .max_live = 1000});
  const auto bytes = static_cast<double>(size_of(dtype));
  const double window = std::min(bytes * (3 * model.largest + model.tied), bytes * model.elements);
  CHECK(static_cast<double>(plan.window) == Approx(window).epsilon(0.01));
  CHECK(static_cast<double>(plan.total()) ==
        Approx(expected_bytes(model, 3, 4, bytes, window)).epsilon(0.05));
}

TEST_CASE("a live limit counts elements of the weights' own width", "[zero]") {
  const DType dtype = GENERATE(DType::kFloat32, DType::kBFloat16);
  std::vector<UnitSpec> units;
  for (int u = 0; u < 10; ++u)
    units.push_back(unit("u" + std::to_string(u), 1000, dtype));
  const MemoryPlan plan =
      make_memory_plan(Layout(units, 4), {.stage = 3, .persistence = 0, .max_live = 8000});
  CHECK(plan.window == round_up(8000 * size_of(dtype), 512));
}

TEST_CASE("rows of the plan add up to its sum", "[zero]") {
  const Layout layout({unit("a", 1000, DType::kBFloat16), unit("b", 5000)}, 2);
  const MemoryPlan plan =
      make_memory_plan(layout, {.stage = GENERATE(0, 1, 2, 3), .reduce_at_boundary = false});
  CHECK(plan.of(Purpose::kWeights) + plan.of(Purpose::kGradients) + plan.of(Purpose::kOptimizer) +
            plan.of(Purpose::kWindow) + plan.of(Purpose::kBucket) ==
        plan.total());
  CHECK(plan.of(Purpose::kActivation) == 0);
}

TEST_CASE("frozen parameters cost their weights and nothing else", "[zero][MEM01]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const auto bytes_with = [&](std::int64_t count) {
    const MemoryPlan plan = make_memory_plan(
        Layout({frozen(unit("ice", count, DType::kBFloat16)), unit("a", 10, DType::kBFloat16)}, 2),
        {.stage = stage});
    return std::pair(plan.weights + plan.window, plan.total());
  };
  const auto [few_weights, few] = bytes_with(512);
  const auto [many_weights, many] = bytes_with(512'000);
  CHECK(many - few == many_weights - few_weights);
}

TEST_CASE("local accumulators cost four bytes an element of the whole", "[zero]") {
  const Layout layout({unit("a", 5120, DType::kBFloat16)}, 2);
  const int stage = GENERATE(0, 1);
  CHECK(make_memory_plan(layout, {.stage = stage, .reduce_at_boundary = true}).total() -
            make_memory_plan(layout, {.stage = stage}).total() ==
        4 * 5120);
}

TEST_CASE("units stay gathered by their size, in declaration order", "[zero]") {
  const Layout layout({unit("a", 100), unit("b", 5000), unit("c", 200), unit("d", 100)}, 2);
  const auto persistent = [&](std::int64_t unit_limit, std::int64_t model_limit) {
    return persistent_units(layout, {.persistence = unit_limit, .model_persistence = model_limit});
  };
  CHECK(persistent(100, 1000) == std::vector{true, false, false, true});
  CHECK(persistent(200, 300) == std::vector{true, false, true, false});
  CHECK(persistent(0, 300) == std::vector{false, false, false, false});
}

TEST_CASE("debug mode has room for every unit at every stage", "[zero]") {
  const Layout layout({unit("a", 100), unit("b", 5000)}, 2);
  const ZeroOptions options{.stage = GENERATE(0, 1, 2, 3), .poison = true, .max_live = 0};
  CHECK(make_memory_plan(layout, options).window == layout.weight_bytes());
  CHECK(persistent_units(layout, options) == std::vector{false, false});
}

}  // namespace
}  // namespace sifr::test
