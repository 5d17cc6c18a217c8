#include "device/detail/settle_thread.hpp"

#include <array>
#include <cstring>
#include <pthread.h>
#include <sched.h>

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

}  // namespace sifr::detail
