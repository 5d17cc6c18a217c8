#include "device/detail/settle_thread.hpp"

#include "device/device.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <pthread.h>
#include <sched.h>
#include <system_error>
#include <utility>

namespace sifr::detail {

bool settle_this_thread(const std::string& name, const std::vector<int>& cpus) noexcept {
  std::array<char, 16> shown = {};
  name.copy(shown.data(), shown.size() - 1);
  pthread_setname_np(pthread_self(), shown.data());
  if (cpus.empty()) return true;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) {
    if (cpu < 0 || cpu >= CPU_SETSIZE) return false;
    CPU_SET(static_cast<unsigned>(cpu), &set);
  }
  return pthread_setaffinity_np(pthread_self(), sizeof(set), &set) == 0;
}

std::thread start_thread(const std::string& name,
                         const std::vector<int>& cpus,
                         std::function<void()> body) {
  try {
    return std::thread([name, cpus, body = std::move(body)] {
      settle_this_thread(name, cpus);
      body();
    });
  } catch (const std::system_error& error) {
    throw DeviceError(
        fmt::format("the system refuses the thread \"{}\": {}; ask for fewer ranks or threads, or "
                    "raise its limits (ulimit -u, pids.max)",
                    name,
                    error.what()));
  }
}

}  // namespace sifr::detail
