#include "comm/detail/shared_segment.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <string>
#include <system_error>
#include <utility>

namespace sifr::detail {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kSmallPage = 4096;
constexpr int kCollapse = 25;  // MADV_COLLAPSE, which the C library does not know yet

[[noreturn]] void fail(int error, const std::string& call) {
  throw std::system_error(error, std::generic_category(), call);
}

/// Memory without a name is a file to the system, which would end the process by SIGXFSZ.
void require_limit(std::int64_t bytes) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  if (static_cast<rlim_t>(bytes) <= limit.rlim_cur) return;
  fail(EFBIG,
       fmt::format("the limit of a file's size (ulimit -f), which is {} bytes, holds for shared "
                   "memory too",
                   limit.rlim_cur));
}

/// Maps at an address where huge pages fit.
std::byte* map_aligned(int descriptor, std::size_t bytes, int protection) {
  const std::size_t room = bytes + kHugePage;
  void* reserved =
      mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) fail(errno, "mmap of address space for shared memory");
  auto* const begin = static_cast<std::byte*>(reserved);
  const std::size_t address = reinterpret_cast<std::uintptr_t>(begin);
  const std::size_t head = (kHugePage - address % kHugePage) % kHugePage;
  void* const data = mmap(begin + head, bytes, protection, MAP_SHARED | MAP_FIXED, descriptor, 0);
  if (data == MAP_FAILED) {
    const int error = errno;
    munmap(begin, room);
    fail(error, "mmap of shared memory");
  }
  const std::size_t end = (head + bytes + kSmallPage - 1) / kSmallPage * kSmallPage;
  if (head > 0) munmap(begin, head);
  if (end < room) munmap(begin + end, room - end);
  return static_cast<std::byte*>(data);
}

/// Lets the system enter every page into this process's tables now instead of in the middle of a
/// step.
void touch(const std::byte* data, std::int64_t bytes) noexcept {
  for (std::int64_t at = 0; at < bytes; at += std::int64_t{kSmallPage})
    (void)*static_cast<const volatile std::byte*>(data + at);
}

}  // namespace

SharedSegment::SharedSegment(int descriptor, std::int64_t bytes, Access access) : bytes_(bytes) {
  if (bytes == 0) return;
  const int protection = access == Access::kReadOnly ? PROT_READ : PROT_READ | PROT_WRITE;
  data_ = map_aligned(descriptor, static_cast<std::size_t>(bytes), protection);
  // Huge pages are read twice as fast as small ones. This asks for them whatever the system's
  // switch for shared memory says; older kernels refuse, and small pages stay. The owner's pages
  // are everybody's, so that peers find them done.
  if (access == Access::kReadWrite) madvise(data_, static_cast<std::size_t>(bytes), kCollapse);
  touch(data_, bytes);
}

SharedSegment::SharedSegment(SharedSegment&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedSegment::~SharedSegment() {
  if (data_ != nullptr) munmap(data_, static_cast<std::size_t>(bytes_));
}

DescriptorHandle make_shared_memory(const char* name, std::int64_t bytes) {
  require_limit(bytes);
  DescriptorHandle memory(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (memory.get() < 0) fail(errno, "memfd_create");
  if (ftruncate(memory.get(), bytes) != 0) fail(errno, "ftruncate of shared memory");
  // Without this a machine that runs out of memory kills the job by SIGBUS at some later write.
  if (bytes > 0 && fallocate(memory.get(), 0, 0, bytes) != 0)
    fail(errno, "fallocate of shared memory");
  if (fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    fail(errno, "sealing of shared memory");
  return memory;
}

std::int64_t sealed_size(int descriptor) {
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) fail(errno, "fstat of a peer's shared memory");
  const int seals = fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    fail(EINVAL, "a peer's shared memory is not sealed");
  return status.st_size;
}

}  // namespace sifr::detail
