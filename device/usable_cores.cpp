#include "device/usable_cores.hpp"

#include <sched.h>

namespace sifr {

std::vector<int> usable_cores(int process) {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(process, sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

}  // namespace sifr
