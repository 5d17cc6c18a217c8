#include "tests/support/count_allocations.hpp"

#include <catch2/catch.hpp>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <thread>
#include <unistd.h>
#include <vector>

namespace sifr::test {
namespace {

Allocations made_by(const std::function<void()>& work) {
  const Allocations before = allocations_so_far();
  work();
  return allocations_so_far() - before;
}

bool is_skipped() {
  if (!can_count_allocations()) std::cout << "[skipped] a sanitizer brings its own allocator\n";
  return !can_count_allocations();
}

TEST_CASE("a deliberate allocation is counted, whoever makes it") {
  if (is_skipped()) return;
  volatile std::size_t bytes = 100;
  void* volatile kept = nullptr;  // or the compiler would leave the allocations out
  const auto give_back = [&](void* memory) {
    kept = memory;
    std::free(kept);
  };
  CHECK(made_by([] {}) == Allocations{});
  CHECK(made_by([&] { give_back(std::malloc(bytes)); }).memory == 1);
  CHECK(made_by([&] { give_back(std::calloc(bytes, 2)); }).memory == 1);
  CHECK(made_by([&] { give_back(std::realloc(std::malloc(bytes), 2 * bytes)); }).memory == 2);
  CHECK(made_by([&] { give_back(std::aligned_alloc(64, 64 * bytes)); }).memory == 1);
  CHECK(made_by([&] { std::vector<char>{}.reserve(bytes); }).memory == 1);
  CHECK(made_by([&] { std::thread([&] { std::vector<char>{}.reserve(bytes); }).join(); }).memory >=
        2);
  CHECK(made_by([] { std::ifstream("/dev/null"); }).memory >= 1);
}

TEST_CASE("a deliberate mapping or descriptor is counted") {
  if (is_skipped()) return;
  CHECK(made_by([] {
          void* page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
          REQUIRE(page != MAP_FAILED);
          page = mremap(page, 4096, 8192, MREMAP_MAYMOVE);
          REQUIRE(page != MAP_FAILED);
          munmap(page, 8192);
        }).mappings == 2);
  CHECK(made_by([] { close(open("/dev/null", O_RDONLY)); }) == Allocations{0, 0, 1});
  CHECK(made_by([] { close(openat64(AT_FDCWD, "/dev/null", O_RDONLY)); }).descriptors == 1);
  CHECK(made_by([] { close(dup2(STDIN_FILENO, 100)); }).descriptors == 1);
  CHECK(made_by([] { close(dup3(STDIN_FILENO, 100, O_CLOEXEC)); }).descriptors == 1);
  CHECK(made_by([] { close(memfd_create("page", MFD_CLOEXEC)); }) == Allocations{0, 0, 1});
  CHECK(made_by([] { close(socket(AF_UNIX, SOCK_STREAM, 0)); }) == Allocations{0, 0, 1});
}

}  // namespace
}  // namespace sifr::test
