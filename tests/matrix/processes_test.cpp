// Ranks as processes; apart from the other tests, since a mutation's program must not call it: the
// processes would not be mutated.
#include "tests/matrix/carry_out.hpp"

#include <catch2/catch.hpp>

namespace sifr::test {
namespace {

TEST_CASE("ranks that are processes train to the same bits as threads", "[matrix]") {
  const std::string model = GENERATE("odd", "tied", "untied");
  const std::string dtype = GENERATE("fp32", "bf16");
  const std::string text = "model=" + model + " dtype=" + dtype + " overlap=on stage=";
  const Figures threads = carry_out(text + "0");
  CHECK(carry_out(text + "0 ranks_are=processes") == threads);
  CHECK(carry_out(text + "3 window=none ranks_are=processes") == threads);
}

TEST_CASE("a training that fails in a process is told with its reason", "[matrix]") {
  CHECK_THROWS_WITH(carry_out("ranks=2 stage=2 reduce_at=boundary ranks_are=processes"),
                    Catch::Contains("exit code 1") && Catch::Contains("reduce_at"));
}

}  // namespace
}  // namespace sifr::test
