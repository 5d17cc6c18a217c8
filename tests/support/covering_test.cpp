#include "tests/support/covering.hpp"

#include <catch2/catch.hpp>

#include <iostream>

namespace sifr::test {
namespace {

std::vector<Axis> matrix_axes() {
  return {{"stage", {"0", "1", "2", "3"}},
          {"bucket", {"tiny", "odd", "huge"}},
          {"prefetch", {"0", "small", "huge"}},
          {"overlap", {"on", "off"}},
          {"ranks_are", {"threads", "processes"}},
          {"pinned", {"no", "yes"}},
          {"recompute", {"no", "yes"}}};
}

TEST_CASE("a covering design lets every two values meet in few runs") {
  const std::vector<Axis> axes = matrix_axes();
  const CoveringDesign design(axes);
  std::cout << design.text() << '\n';
  CHECK(design.covered() == design.pairs());
  CHECK(design.pairs() == 4 * 14 + 3 * 11 + 3 * 8 + 2 * 6 + 2 * 4 + 2 * 2);
  CHECK(design.runs().size() >= 12);  // stage × bucket alone
  CHECK(design.runs().size() <= 16);
}

TEST_CASE("a covering design is the same each time") {
  const std::vector<Axis> axes = matrix_axes();
  const CoveringDesign first(axes);
  const CoveringDesign second(axes);
  REQUIRE(first.runs().size() == second.runs().size());
  for (std::size_t i = 0; i < first.runs().size(); ++i)
    CHECK(first.runs()[i].text() == second.runs()[i].text());
}

TEST_CASE("a covering design keeps forbidden values apart and covers all else") {
  const std::vector<Axis> axes = {{"stage", {"0", "1", "2", "3"}},
                                  {"reduce", {"each", "boundary"}},
                                  {"overlap", {"on", "off"}}};
  const CoveringDesign design(
      axes, {{"reduce", "boundary", "stage", "2"}, {"stage", "3", "reduce", "boundary"}});
  CHECK(design.pairs() == 8 - 2 + 8 + 4);
  CHECK(design.covered() == design.pairs());
  for (const Run& run : design.runs())
    CHECK_FALSE((run["reduce"] == "boundary" && run["stage"] >= "2"));
}

TEST_CASE("a covering design says which pair no run can hold, and which name it does not know") {
  const std::vector<Axis> axes = {{"a", {"1"}}, {"b", {"1", "2"}}, {"c", {"1"}}};
  CHECK_THROWS_WITH(CoveringDesign(axes, {{"b", "2", "c", "1"}}),
                    "no run can hold both a=1 and b=2");
  CHECK_THROWS_WITH(CoveringDesign(axes, {{"d", "2", "c", "1"}}), "no axis d");
  CHECK_THROWS_WITH(CoveringDesign(axes, {{"a", "2", "c", "1"}}), "axis a has no value 2");
}

}  // namespace
}  // namespace sifr::test
