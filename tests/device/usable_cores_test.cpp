#include "device/usable_cores.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <sched.h>
#include <thread>
#include <vector>

namespace sifr::test {
namespace {

TEST_CASE("the usable cores are those of the affinity mask, lowest first", "[device]") {
  const std::vector<int> cores = usable_cores();
  REQUIRE_FALSE(cores.empty());
  CHECK(std::is_sorted(cores.begin(), cores.end()));
  std::vector<int> of_bound_thread;
  std::thread([&] {
    cpu_set_t last;
    CPU_ZERO(&last);
    CPU_SET(cores.back(), &last);
    if (sched_setaffinity(0, sizeof(last), &last) == 0) of_bound_thread = usable_cores();
  }).join();
  CHECK(of_bound_thread == std::vector<int>{cores.back()});
  CHECK(usable_cores(-1).empty());  // no process
}

}  // namespace
}  // namespace sifr::test
