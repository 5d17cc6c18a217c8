#include "tests/support/count_allocations.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

// Visible to the shared libraries too, whose calls must come here as well.
#define SIFR_STANDS_IN extern "C" __attribute__((visibility("default")))

// What is replaced here, under glibc's own names.
extern "C" {
void* libc_malloc(std::size_t bytes) noexcept __asm__("__libc_malloc");
void* libc_calloc(std::size_t count, std::size_t bytes) noexcept __asm__("__libc_calloc");
void* libc_realloc(void* old, std::size_t bytes) noexcept __asm__("__libc_realloc");
void* libc_memalign(std::size_t alignment, std::size_t bytes) noexcept __asm__("__libc_memalign");
}

namespace {

// Called before and after main and from any thread: only constants of static storage are there for
// them.
std::atomic<std::int64_t> memory_count{0};
std::atomic<std::int64_t> mapping_count{0};
std::atomic<std::int64_t> descriptor_count{0};

void* count_memory(void* result) noexcept {
  memory_count.fetch_add(1, std::memory_order_relaxed);
  return result;
}

template <class... Arguments>
int descriptor(long number, Arguments... arguments) noexcept {
  descriptor_count.fetch_add(1, std::memory_order_relaxed);
  return static_cast<int>(syscall(number, arguments...));
}

template <class... Arguments>
void* mapping(long number, Arguments... arguments) noexcept {
  mapping_count.fetch_add(1, std::memory_order_relaxed);
  return std::bit_cast<void*>(syscall(number, arguments...));
}

/// The last argument of open, which is there only if a file may be made.
mode_t mode_of(int flags, std::va_list arguments) {
  return (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

namespace sifr::test {

bool can_count_allocations() noexcept {
  return true;
}

Allocations allocations_so_far() noexcept {
  return {memory_count.load(), mapping_count.load(), descriptor_count.load()};
}

}  // namespace sifr::test

SIFR_STANDS_IN void* malloc(std::size_t bytes) noexcept {
  return count_memory(libc_malloc(bytes));
}
SIFR_STANDS_IN void* calloc(std::size_t count, std::size_t bytes) noexcept {
  return count_memory(libc_calloc(count, bytes));
}
SIFR_STANDS_IN void* realloc(void* old, std::size_t bytes) noexcept {
  return count_memory(libc_realloc(old, bytes));
}
SIFR_STANDS_IN void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return count_memory(libc_memalign(alignment, bytes));
}
SIFR_STANDS_IN void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return count_memory(libc_memalign(alignment, bytes));
}
SIFR_STANDS_IN int posix_memalign(void** result,
                                  std::size_t alignment,
                                  std::size_t bytes) noexcept {
  *result = count_memory(libc_memalign(alignment, bytes));
  return *result == nullptr ? ENOMEM : 0;
}

SIFR_STANDS_IN void* mmap(
    void* at, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  return mapping(SYS_mmap, at, bytes, protection, flags, file, offset);
}
SIFR_STANDS_IN void* mmap64(
    void* at, std::size_t bytes, int protection, int flags, int file, off64_t offset) noexcept {
  return mapping(SYS_mmap, at, bytes, protection, flags, file, offset);
}

SIFR_STANDS_IN void* mremap(
    void* old, std::size_t old_bytes, std::size_t bytes, int flags, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, flags);
  void* const to = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  return mapping(SYS_mremap, old, old_bytes, bytes, flags, to);
}

SIFR_STANDS_IN int memfd_create(const char* name, unsigned flags) noexcept {
  return descriptor(SYS_memfd_create, name, flags);
}
SIFR_STANDS_IN int socket(int domain, int type, int protocol) noexcept {
  return descriptor(SYS_socket, domain, type, protocol);
}
SIFR_STANDS_IN int socketpair(int domain, int type, int protocol, int* pair) noexcept {
  return descriptor(SYS_socketpair, domain, type, protocol, pair);
}
SIFR_STANDS_IN int pipe(int* pair) noexcept {
  return descriptor(SYS_pipe, pair);
}
SIFR_STANDS_IN int pipe2(int* pair, int flags) noexcept {
  return descriptor(SYS_pipe2, pair, flags);
}
SIFR_STANDS_IN int eventfd(unsigned value, int flags) noexcept {
  return descriptor(SYS_eventfd2, value, flags);
}
SIFR_STANDS_IN int epoll_create1(int flags) noexcept {
  return descriptor(SYS_epoll_create1, flags);
}
SIFR_STANDS_IN int dup(int file) noexcept {
  return descriptor(SYS_dup, file);
}
SIFR_STANDS_IN int dup2(int file, int to) noexcept {
  return descriptor(SYS_dup2, file, to);
}
SIFR_STANDS_IN int dup3(int file, int to, int flags) noexcept {
  return descriptor(SYS_dup3, file, to, flags);
}
SIFR_STANDS_IN int accept4(int file, sockaddr* address, socklen_t* length, int flags) {
  return descriptor(SYS_accept4, file, address, length, flags);
}
SIFR_STANDS_IN int accept(int file, sockaddr* address, socklen_t* length) {
  return descriptor(SYS_accept, file, address, length);
}

SIFR_STANDS_IN int open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return descriptor(SYS_openat, AT_FDCWD, path, flags, mode);
}
SIFR_STANDS_IN int open64(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return descriptor(SYS_openat, AT_FDCWD, path, flags, mode);
}
SIFR_STANDS_IN int openat(int folder, const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return descriptor(SYS_openat, folder, path, flags, mode);
}
SIFR_STANDS_IN int openat64(int folder, const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return descriptor(SYS_openat, folder, path, flags, mode);
}
