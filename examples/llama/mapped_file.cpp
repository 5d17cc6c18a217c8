#include "examples/llama/mapped_file.hpp"

#include "engine/io_error.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace llama {
namespace {

std::span<const std::byte> map(int file, const std::filesystem::path& path) {
  struct stat status = {};
  if (::fstat(file, &status) != 0) throw sifr::IoError(path, "cannot be examined", errno);
  if (!S_ISREG(status.st_mode)) throw sifr::IoError(path, "is not a regular file");
  if (status.st_size == 0) return {};
  const auto size = static_cast<std::size_t>(status.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (data == MAP_FAILED) throw sifr::IoError(path, "cannot be mapped", errno);
  return {static_cast<const std::byte*>(data), size};
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  // A pipe without a writer would be waited for.
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file < 0) throw sifr::IoError(path, "cannot be opened", errno);
  try {
    bytes_ = map(file, path);
  } catch (...) {
    ::close(file);
    throw;
  }
  ::close(file);
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace llama
