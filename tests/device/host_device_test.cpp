#include "device/device.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

using namespace sifr;
using Catch::Matchers::Contains;

namespace {

bool is_zero(const Buffer& buffer) {
  return std::all_of(
      buffer.data(), buffer.data() + buffer.bytes(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

TEST_CASE("host memory is zeroed, aligned to pages, and charged until its end", "[device]") {
  const auto device = make_host_device({.threads = 2});
  CHECK(device->kind() == DeviceKind::kHost);
  for (const std::int64_t bytes : {1, 4096, 4097, 2 << 20, (20 << 20) + 5}) {
    const Buffer buffer = device->allocate(bytes, Purpose::kWindow);
    CHECK(buffer.bytes() == bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 4096 == 0);
    CHECK(is_zero(buffer));
    CHECK(device->account().table().row(Tier::kDevice, Purpose::kWindow).now == bytes);
  }
  CHECK(device->account().table().total(Tier::kDevice).now == 0);
}

TEST_CASE("host memory is resident from the start", "[device]") {
  const auto device = make_host_device({});
  const std::int64_t before = resident_bytes();
  const Buffer buffer = device->allocate(64 << 20, Purpose::kWeights);
  CHECK(resident_bytes() - before >= (60 << 20));
}

TEST_CASE("large buffers of one size do not lie a power of two apart", "[device]") {
  const auto device = make_host_device({});
  std::vector<Buffer> buffers;
  buffers.reserve(4);
  std::vector<std::uintptr_t> places;  // within a huge page
  for (int i = 0; i < 4; ++i) {
    buffers.push_back(device->allocate(4 << 20, Purpose::kOptimizer));
    places.push_back(reinterpret_cast<std::uintptr_t>(buffers.back().data()) % (2 << 20));
  }
  std::sort(places.begin(), places.end());
  CHECK(std::adjacent_find(places.begin(), places.end()) == places.end());
}

TEST_CASE("0 bytes are an ordinary size", "[device]") {
  const auto device = make_host_device({});
  const Buffer buffer = device->allocate(0, Purpose::kWeights);
  CHECK(buffer.bytes() == 0);
  CHECK_THROWS_AS(device->allocate(-1, Purpose::kWeights), UsageError);
}

TEST_CASE("memory outlives its device", "[device]") {
  auto device = make_host_device({});
  Buffer buffer = device->allocate(100, Purpose::kWeights);
  device.reset();
  CHECK(is_zero(buffer));
}

TEST_CASE("a host device holds its limit", "[device]") {
  HostOptions options;
  options.limits.device = 1 << 20;
  const auto device = make_host_device(options);
  CHECK_THROWS_AS(device->allocate((1 << 20) + 1, Purpose::kOptimizer), OutOfMemory);
  CHECK_NOTHROW(device->allocate(1 << 20, Purpose::kOptimizer));
}

TEST_CASE("what the machine has not is OutOfMemory before it is touched, and nothing stays charged",
          "[device][MEM09]") {
  const auto device = make_host_device({});
  CHECK_THROWS_AS(device->allocate(std::int64_t{1} << 55, Purpose::kWeights), OutOfMemory);
  CHECK_THROWS_WITH(device->allocate(std::int64_t{1} << 55, Purpose::kWeights),
                    Contains("weights needs 34359738368.00 MiB") &&
                        Contains("left for this process") &&
                        Contains("\nrefused: 34359738368.00 MiB for weights"));
  CHECK(device->account().table().total(Tier::kDevice).peak == 0);
}

TEST_CASE("the host computes on a caller stream and makes workers", "[device]") {
  const auto device = make_host_device({.threads = 2});
  CHECK(device->compute().kind() == StreamKind::kCaller);
  CHECK(device->pool().threads() == 2);
  Stream worker = device->make_stream("a name of more than fifteen characters");
  CHECK(worker.kind() == StreamKind::kWorker);
  int value = 0;
  worker.submit([&] { value = 1; });
  worker.synchronize();
  CHECK(value == 1);
}

TEST_CASE("CPUs that do not exist are told once and left aside", "[device]") {
  std::vector<std::string> notices;
  HostOptions options;
  options.threads = 3;
  options.cpus = {100000};
  options.log = [&](Level level, std::string_view text) {
    if (level == Level::kWarning) notices.emplace_back(text);
  };
  const auto device = make_host_device(options);
  Stream worker = device->make_stream("worker");
  CHECK_NOTHROW(worker.synchronize());
  REQUIRE(notices.size() == 1);
  CHECK_THAT(notices[0], Contains("100000"));
}

TEST_CASE("a sifr without CUDA says so", "[device]") {
  CHECK_THROWS_AS(make_cuda_device(0, {}), DeviceError);
  CHECK_THROWS_WITH(make_cuda_device(1, {}), Contains("GPU 1") && Contains("built without CUDA"));
}
