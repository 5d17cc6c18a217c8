#include "tests/comm/refusals.hpp"

#include "device/detail/descriptor_handle.hpp"
#include "tests/support/child.hpp"

#include <sys/syscall.h>

#include <fstream>
#include <iostream>

namespace sifr::test {
namespace {

/// Rank 1 allocates under a limit of the system; tells what kind of error that is.
void allocate_limited(Communicator& group, std::int64_t bytes, const std::function<void()>& limit) {
  if (group.rank() == 1) limit();
  try {
    (void)group.allocate(bytes, Purpose::kWeights);
  } catch (const DeviceError&) {
    std::cerr << "DeviceError: ";
    throw;
  } catch (const OutOfMemory&) {
    std::cerr << "OutOfMemory: ";
    throw;
  }
}

/// `more` files may be opened from now on.
void limit_files(int more) {
  const detail::DescriptorHandle next(dup(STDERR_FILENO));
  set_limit(RLIMIT_NOFILE, static_cast<rlim_t>(next.get() + more));
}

void limit_address_space(std::int64_t more) {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0;
  file >> pages;
  set_limit(RLIMIT_AS, static_cast<rlim_t>(pages * 4096 + more));
}

/// The system kills that rank where it makes memory to share.
void allocate_killed(Communicator& group, int victim) {
  if (group.rank() == victim) {
    set_limit(RLIMIT_CORE, 0);
    answer_call(SYS_memfd_create, SECCOMP_RET_KILL_PROCESS);
  }
  (void)group.allocate(1 << 20, Purpose::kWeights);
}

}  // namespace

std::map<std::string, std::function<void(Communicator&)>> refusals() {
  return {{"no-open-file-left",
           [](Communicator& group) { allocate_limited(group, 1 << 20, [] { limit_files(0); }); }},
          {"no-open-file-left-to-receive",
           [](Communicator& group) { allocate_limited(group, 1 << 20, [] { limit_files(2); }); }},
          {"no-address-space-left",
           [](Communicator& group) {
             allocate_limited(group, 64 << 20, [] { limit_address_space(16 << 20); });
           }},
          {"rank-0-killed", [](Communicator& group) { allocate_killed(group, 0); }},
          {"rank-1-killed", [](Communicator& group) { allocate_killed(group, 1); }},
          {"more-than-half-of-the-machine",
           [](Communicator& group) { allocate_limited(group, available_bytes() / 4 * 3, [] {}); }}};
}

}  // namespace sifr::test
