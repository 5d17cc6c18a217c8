#include "zero/layout.hpp"

#include "tests/zero/unit_specs.hpp"

#include <catch2/catch.hpp>

#include <set>

namespace sifr::test {
namespace {

// Every element of every parameter lies in one slice, and no quantum straddles anything.
void check_cover(const Layout& layout) {
  for (int u = 0; u < layout.unit_count(); ++u) {
    const UnitLayout& unit = layout.unit(u);
    for (int s = 0; s < static_cast<int>(unit.segments.size()); ++s) {
      const SegmentLayout& segment = unit.segments[static_cast<std::size_t>(s)];
      REQUIRE(segment.count == segment.slice_count * layout.group_size());
      REQUIRE(segment.slice_count % kQuantum == 0);
      std::vector<std::int64_t> covered(unit.parameters.size());
      for (int rank = 0; rank < layout.group_size(); ++rank) {
        const std::int64_t first = rank * segment.slice_count;
        for (const Stretch& stretch : layout.stretches(u, s, first, first + segment.slice_count)) {
          auto& done = covered[static_cast<std::size_t>(stretch.parameter)];
          REQUIRE(stretch.parameter_first == done);
          REQUIRE(stretch.parameter_first % kQuantum == 0);
          REQUIRE(stretch.segment_first % kQuantum == 0);
          REQUIRE(stretch.count > 0);
          done += stretch.count;
        }
      }
      for (const int p : segment.parameters) {
        REQUIRE(unit.parameters[static_cast<std::size_t>(p)].segment == s);
        REQUIRE(covered[static_cast<std::size_t>(p)] ==
                unit.parameters[static_cast<std::size_t>(p)].spec.count);
      }
    }
  }
}

TEST_CASE("slices cover every element once at any count and group size", "[zero][PAR03]") {
  const int ranks = GENERATE(1, 2, 3, 4, 5, 6, 7, 9);
  for (std::int64_t count = 0; count <= 40; ++count)
    check_cover(Layout({unit("a", count)}, ranks));
  for (const std::int64_t count : {255, 256, 257, 511, 512, 513, 1031, 65'537})
    check_cover(Layout({{.name = "u",
                         .parameters = {parameter("p", count),
                                        parameter("q", 3),
                                        parameter("r", 1000 - count % 7)}}},
                       ranks));
}

TEST_CASE("with many ranks the last ones may hold padding only", "[zero][PAR03][GRD15]") {
  const Layout layout({unit("a", 266'240)}, 768);
  check_cover(layout);
  const SegmentLayout& segment = layout.unit(0).segments[0];
  CHECK(segment.slice_count == 512);
  for (const int rank : {0, 519, 520, 767}) {
    const std::int64_t first = rank * segment.slice_count;
    CHECK(layout.stretches(0, 0, first, first + segment.slice_count).size() ==
          (rank < 520 ? 1U : 0U));
  }
}

TEST_CASE("parameters of one dtype and fate share a segment", "[zero][PRE11]") {
  UnitSpec spec{.name = "u",
                .parameters = {parameter("a", 300, DType::kBFloat16),
                               parameter("norm", 13),
                               parameter("b", 2, DType::kBFloat16),
                               parameter("ice", 500, DType::kBFloat16),
                               parameter("precise", 7, DType::kBFloat16)}};
  spec.parameters[3].trainable = false;
  spec.parameters[4].gradients = DType::kFloat32;
  const Layout layout({spec}, 2);
  check_cover(layout);
  const UnitLayout& u = layout.unit(0);
  REQUIRE(u.segments.size() == 4);
  CHECK(u.segments[0].parameters == std::vector<int>{0, 2});
  CHECK(u.parameters[2].first == 512);  // the next quantum after 300 elements
  CHECK(u.segments[0].count == 1024);   // 512 + 256, padded to 2 · 256
  CHECK(u.segments[1].weights == DType::kFloat32);
  CHECK_FALSE(u.segments[2].trainable);
  CHECK(u.segments[3].gradients == DType::kFloat32);
  CHECK(u.segments[1].sum_first == 1024);
  CHECK(u.segments[3].sum_first == 1024 + 512);  // what is frozen has no sums
  CHECK(u.elements == 822);
  CHECK(u.weight_bytes == 2 * (1024 + 512 + 512) + 4 * 512);
  CHECK(u.gradient_bytes == 2 * 1024 + 4 * 512 + 4 * 512);
  CHECK(u.sum_count == 2048);
  for (const SegmentLayout& segment : u.segments) {
    CHECK(segment.weight_offset % 512 == 0);
    CHECK(segment.gradient_offset % 512 == 0);
  }
}

TEST_CASE("frozen parameters have weights and nothing else", "[zero][MEM01]") {
  const Layout layout({frozen(unit("ice", 1000)), unit("a", 10)}, 2);
  CHECK(layout.unit(0).gradient_bytes == 0);
  CHECK(layout.unit(0).segments[0].arena_first == -1);
  CHECK(layout.trainable_count() == 512);
  CHECK(layout.arena_count() == kArenaPadding);
  CHECK(layout.shard_bytes() == 4 * (512 + 256));
}

TEST_CASE("a rank's trainable slices lie end to end in declaration order", "[zero]") {
  const Layout layout({unit("a", 1000), frozen(unit("ice", 9)), unit("b", 3000), unit("c", 1)}, 3);
  std::int64_t first = 0;
  for (const int u : {0, 2, 3}) {
    CHECK(layout.unit(u).segments[0].arena_first == first);
    CHECK(layout.unit(u).sum_first == 3 * first);
    first += layout.unit(u).segments[0].slice_count;
  }
  CHECK(layout.arena_count() == round_up(first, kArenaPadding));
  CHECK(layout.trainable_count() == 3 * first);
}

TEST_CASE("empty parameters, units and models are ordinary", "[zero][PAR07]") {
  const Layout layout({unit("none", 0), {.name = "bare", .parameters = {}}, unit("a", 5)}, 3);
  check_cover(layout);
  CHECK(layout.unit(0).weight_bytes == 0);
  CHECK(layout.unit(1).segments.empty());
  CHECK(layout.parameter_count() == 2);
  CHECK(Layout({}, 4).arena_count() == 0);
}

TEST_CASE("whatever ranks must agree on changes the fingerprint", "[zero]") {
  const std::vector<UnitSpec> base = {unit("a", 10), unit("b", 20)};
  std::set<std::uint64_t> seen = {Layout(base, 2).fingerprint(), Layout(base, 3).fingerprint()};
  const auto changed = [&](const std::function<void(UnitSpec&)>& change) {
    std::vector<UnitSpec> specs = base;
    change(specs[1]);
    return Layout(specs, 2).fingerprint();
  };
  const std::vector<std::function<void(UnitSpec&)>> changes = {
      [](UnitSpec& u) { u.name = "c"; },
      [](UnitSpec& u) { u.gradient_leases = 2; },
      [](UnitSpec& u) { u.parameters[0].name = "x"; },
      [](UnitSpec& u) {
        u.parameters[0].shape = {2, 10};
      },
      [](UnitSpec& u) { u.parameters[0].weights = DType::kBFloat16; },
      [](UnitSpec& u) { u.parameters[0].gradients = DType::kBFloat16; },
      [](UnitSpec& u) { u.parameters[0].trainable = false; },
      [](UnitSpec& u) { u.parameters[0].decay = false; },
      [](UnitSpec& u) { u.parameters[0].lr_scale = 0.5F; },
      [](UnitSpec& u) { u.parameters.push_back(parameter("y", 1)); }};
  for (const auto& change : changes)
    CHECK(seen.insert(changed(change)).second);
  CHECK(changed([](UnitSpec&) {}) == Layout(base, 2).fingerprint());
}

}  // namespace
}  // namespace sifr::test
