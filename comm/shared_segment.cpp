#include "comm/detail/shared_segment.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <fcntl.h>
#include <system_error>
#include <utility>

namespace sifr::detail {
namespace {

[[noreturn]] void fail(int error, const char* call) {
  throw std::system_error(error, std::generic_category(), call);
}

}  // namespace

SharedSegment::SharedSegment(int descriptor, std::int64_t bytes, Access access) : bytes_(bytes) {
  if (bytes == 0) return;
  const int protection = access == Access::kReadOnly ? PROT_READ : PROT_READ | PROT_WRITE;
  void* data = mmap(nullptr,
                    static_cast<std::size_t>(bytes),
                    protection,
                    MAP_SHARED | MAP_POPULATE,
                    descriptor,
                    0);
  if (data == MAP_FAILED) fail(errno, "mmap of shared memory");
  data_ = static_cast<std::byte*>(data);
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
