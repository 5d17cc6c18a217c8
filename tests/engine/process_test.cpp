// What holds for ranks that are threads holds for processes: their account is the plan, and from
// the third step on nothing is allocated.
#include "comm/meeting_point.hpp"
#include "tests/comm/spawned.hpp"
#include "tests/support/count_allocations.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace sifr::test {
namespace {

TEST_CASE("processes hold what is planned, and allocate nothing from the third step on",
          "[engine][MEM01]") {
  constexpr int kRanks = 2;
  const std::string stage = GENERATE("0", "1", "2", "3");
  const MeetingPoint meeting_point(kRanks);
  std::vector<Spawned> ranks;
  for (int r = 0; r < kRanks; ++r) {
    ranks.emplace_back(std::vector<std::string>{program_folder() + "/engine_rank", stage},
                       meeting_point.environment(r));
  }
  for (const Spawned::Ended& ended : wait_all(ranks)) {
    INFO(ended.errors);
    CHECK(ended.code == 0);
    if (can_count_allocations())
      CHECK(ended.output == "from the third step on: 0 allocations, 0 mappings, 0 descriptors\n");
  }
}

}  // namespace
}  // namespace sifr::test
