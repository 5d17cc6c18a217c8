#include "device/detail/available_memory.hpp"

#include "device/memory.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <limits>

using namespace sifr;

namespace {

/// A machine of 1000 KiB whose process lies in the cgroups that `lines` name.
class Machine {
 public:
  explicit Machine(const std::string& lines) {
    put("proc/meminfo", "MemTotal:     2000 kB\nHugePages_Total:   0\nMemAvailable:  1000 kB\n");
    put("proc/self/cgroup", lines);
  }
  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((folder_.path() / path).parent_path());
    write_file(folder_.path() / path, text);
  }
  [[nodiscard]] std::int64_t available() const {
    return detail::available_bytes_under(folder_.path());
  }

 private:
  TemporaryFolder folder_;
};

constexpr std::int64_t kAll = std::int64_t{1000} * 1024;

}  // namespace

TEST_CASE("available memory is what the machine has where no cgroup limits it", "[device][MEM09]") {
  Machine machine("0::/job\n");
  CHECK(machine.available() == kAll);
  machine.put("sys/fs/cgroup/job/memory.max", "max\n");
  machine.put("sys/fs/cgroup/job/memory.current", "500\n");
  CHECK(machine.available() == kAll);
}

TEST_CASE("available memory is what the cgroups leave, of version 2", "[device][MEM09]") {
  Machine machine("0::/job/rank\n");
  machine.put("sys/fs/cgroup/job/rank/memory.max", "9000\n");
  machine.put("sys/fs/cgroup/job/rank/memory.current", "1000\n");
  CHECK(machine.available() == 8000);
  machine.put("sys/fs/cgroup/job/memory.max", "7000\n");  // the group above is tighter
  machine.put("sys/fs/cgroup/job/memory.current", "5000\n");
  CHECK(machine.available() == 2000);
  machine.put("sys/fs/cgroup/job/memory.current", "8000\n");
  CHECK(machine.available() == 0);
}

TEST_CASE("available memory is what the cgroups leave, of version 1", "[device][MEM09]") {
  Machine machine("5:cpu,memory:/job\n4:cpuset:/\n0::/\n");
  machine.put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4000\n");
  machine.put("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1000\n");
  CHECK(machine.available() == 3000);
}

TEST_CASE("cached files of a cgroup count as available", "[device][MEM09]") {
  Machine machine("0::/job\n");
  machine.put("sys/fs/cgroup/job/memory.max", "9000\n");
  machine.put("sys/fs/cgroup/job/memory.current", "9000\n");
  machine.put("sys/fs/cgroup/job/memory.stat", "anon 4000\ninactive_file 3000\nactive_file 2000\n");
  CHECK(machine.available() == 5000);
}

TEST_CASE("a container's group may be the mount itself", "[device][MEM09]") {
  Machine machine("0::/docker/0123\n");
  machine.put("sys/fs/cgroup/memory.max", "600\n");
  machine.put("sys/fs/cgroup/memory.current", "100\n");
  CHECK(machine.available() == 500);
}

TEST_CASE("a machine that tells nothing limits nothing", "[device][MEM09]") {
  const TemporaryFolder empty;
  CHECK(detail::available_bytes_under(empty.path()) == std::numeric_limits<std::int64_t>::max());
  CHECK(available_bytes() > 0);
}
