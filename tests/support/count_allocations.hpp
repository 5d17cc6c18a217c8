#pragma once

// Counts what this process asks of the system, in every thread, by standing in for the C library's
// functions. Link sifr_count_allocations into the test executable.
#include <cstdint>
#include <ostream>

namespace sifr::test {

struct Allocations {
  std::int64_t memory = 0;    // malloc, calloc, realloc, aligned ones; operator new comes here too
  std::int64_t mappings = 0;  // mmap, mremap
  std::int64_t descriptors = 0;  // open, memfd_create, socket, accept, pipe, eventfd, epoll, dup

  friend bool operator==(const Allocations&, const Allocations&) = default;
  friend Allocations operator-(const Allocations& a, const Allocations& b) {
    return {a.memory - b.memory, a.mappings - b.mappings, a.descriptors - b.descriptors};
  }
  friend std::ostream& operator<<(std::ostream& out, const Allocations& a) {
    return out << a.memory << " allocations, " << a.mappings << " mappings, " << a.descriptors
               << " descriptors";
  }
};

/// False under a sanitizer, which brings an allocator of its own: such a test prints
/// "[skipped] a sanitizer brings its own allocator".
[[nodiscard]] bool can_count_allocations() noexcept;

/// Since the start of the process. A test takes the difference of two.
[[nodiscard]] Allocations allocations_so_far() noexcept;

}  // namespace sifr::test
