#include "device/usable_cores.hpp"
#include "sifr.hpp"
#include "tests/support/child.hpp"

#include <catch2/catch.hpp>
#include <sys/syscall.h>

#include <cerrno>
#include <string>

namespace sifr::test {
namespace {

/// From now on the system refuses to bind threads of this process to cores, as some containers do.
void refuse_binding() {
  answer_call(SYS_sched_setaffinity, SECCOMP_RET_ERRNO | EPERM);
}

}  // namespace

TEST_CASE("a rank that may not be bound to its cores says so by its number, to the context's log",
          "[engine]") {
  const std::string told = text_from_child([] {
    refuse_binding();
    std::string all;
    const auto note = [&](Level, std::string_view text) { all += std::string(text) + "\n"; };
    (void)Context::threads(2, {.log = note, .threads = 1});
    return all;
  });
  using Catch::Matchers::Contains;
  if (usable_cores().size() < 2) return;  // ranks without a core each are not bound
  CHECK_THAT(told, Contains("[rank 0] [device] the system refuses to bind"));
  CHECK_THAT(told, Contains("[rank 1] [device] the system refuses to bind"));
}

TEST_CASE("ranks for which the system has no threads are a DeviceError", "[engine]") {
  const std::string told = text_from_child([] {
    become_nobody();
    set_limit(RLIMIT_NPROC, 1);
    return text_thrown<DeviceError>([] { (void)Context::threads(64); });
  });
  CHECK_THAT(told, Catch::Matchers::Contains("ulimit -u"));
}

}  // namespace sifr::test
