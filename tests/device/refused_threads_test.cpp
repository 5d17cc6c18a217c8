#include "device/device.hpp"
#include "tests/support/child.hpp"

#include <catch2/catch.hpp>

#include <functional>
#include <string>

using namespace sifr;
using namespace sifr::test;
using Catch::Matchers::Contains;

namespace {

std::string thrown_without_threads(const std::function<void()>& body) {
  return text_from_child([&] {
    become_nobody();
    set_limit(RLIMIT_NPROC, 0);
    return text_thrown<DeviceError>(body);
  });
}

}  // namespace

TEST_CASE("a thread that the system refuses is a DeviceError that names the limit", "[device]") {
  const std::function<void()> starts[] = {
      [] { const ThreadPool pool(3); },
      [] { (void)make_host_device({}); },
      [] { (void)Stream::worker("worker", nullptr); },
  };
  for (const auto& start : starts) {
    CHECK_THAT(thrown_without_threads(start),
               Contains("the system refuses the thread \"sifr-") ||
                   Contains("the system refuses the thread \"worker"));
    CHECK_THAT(thrown_without_threads(start), Contains("ulimit -u"));
  }
}
