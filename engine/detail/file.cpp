#include "engine/detail/file.hpp"

#include "device/memory.hpp"
#include "engine/io_error.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <utility>

namespace sifr {

IoError::IoError(std::filesystem::path path, const std::string& text, int error_number)
    : std::runtime_error(
          error_number == 0
              ? fmt::format("{}: {}", path.string(), text)
              : fmt::format("{}: {}: {}", path.string(), text, std::strerror(error_number))),
      path_(std::move(path)),
      error_number_(error_number) {}

namespace detail {

MappedFile::MappedFile(const std::filesystem::path& path) {
  // A pipe without a writer would be waited for.
  const DescriptorHandle file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (file.get() < 0) throw IoError(path, "cannot be opened", errno);
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) throw IoError(path, "cannot be examined", errno);
  if (!S_ISREG(status.st_mode)) throw IoError(path, "is not a regular file");
  if (status.st_size == 0) return;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) throw IoError(path, "cannot be mapped", errno);
  bytes_ = {static_cast<const std::byte*>(data), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

NewFile::NewFile(std::filesystem::path path, std::int64_t bytes) : path_(std::move(path)) {
  require_replaceable();
  require_limit(bytes);
  create();
  try {
    reserve(bytes);
  } catch (...) {
    ::unlink(temporary_.c_str());
    throw;
  }
}

NewFile::~NewFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

// A device, a pipe or a folder would be gone once the file has its name.
void NewFile::require_replaceable() const {
  struct stat status = {};
  if (::stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    throw IoError(path_, "exists and is not a regular file");
}

// The write that goes beyond it would end the process by SIGXFSZ, which is not the library's to
// catch.
void NewFile::require_limit(std::int64_t bytes) const {
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  if (static_cast<rlim_t>(bytes) <= limit.rlim_cur) return;
  throw IoError(path_,
                fmt::format("cannot be written: needs {} bytes, a file may have {} (ulimit -f)",
                            bytes,
                            limit.rlim_cur),
                EFBIG);
}

void NewFile::create() {
  constexpr int kAttempts = 100;
  int number = -1;
  for (int attempt = 0; number < 0 && attempt < kAttempts; ++attempt) {
    temporary_ = path_.string() + fmt::format(".partial-{}-{}", ::getpid(), attempt);
    number = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (number < 0 && errno != EEXIST) break;
  }
  if (number < 0) throw IoError(path_, "cannot be created", errno);
  file_ = DescriptorHandle(number);
}

// A full disk is found now and not after hours; file systems that cannot reserve find it while
// writing.
void NewFile::reserve(std::int64_t bytes) {
  if (bytes == 0 || ::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, 0, bytes) == 0) return;
  if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) fail_for_space(bytes);
}

void NewFile::fail_for_space(std::int64_t bytes) const {
  const int error = errno;
  struct statvfs status = {};
  const bool known = ::fstatvfs(file_.get(), &status) == 0;
  const auto free = known ? mib(static_cast<std::int64_t>(status.f_bavail * status.f_frsize))
                          : std::string("an unknown number of MiB");
  throw IoError(
      path_, fmt::format("cannot be written: needs {}, {} are free", mib(bytes), free), error);
}

void NewFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && (errno == ENOSPC || errno == EDQUOT))
      fail_for_space(static_cast<std::int64_t>(bytes.size()));
    if (written < 0) throw IoError(path_, "cannot be written", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void NewFile::commit() {
  if (::fsync(file_.get()) != 0) throw IoError(path_, "cannot be made durable", errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0)
    throw IoError(path_, "cannot be given its name", errno);
  temporary_.clear();
  const auto folder = path_.has_parent_path() ? path_.parent_path() : std::filesystem::path(".");
  const DescriptorHandle handle(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (handle.get() < 0 || ::fsync(handle.get()) != 0)
    throw IoError(folder, "cannot be made durable", errno);
}

}  // namespace detail
}  // namespace sifr
