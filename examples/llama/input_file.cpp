#include "examples/llama/input_file.hpp"

#include "engine/io_error.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace llama {
namespace {

FileDescriptor open_to_read(const std::filesystem::path& path) {
  // A pipe without a writer would be waited for.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (file.number() < 0) throw sifr::IoError(path, "cannot be opened", errno);
  return file;
}

std::int64_t size_of(const FileDescriptor& file, const std::filesystem::path& path) {
  struct stat status = {};
  if (::fstat(file.number(), &status) != 0) throw sifr::IoError(path, "cannot be examined", errno);
  if (!S_ISREG(status.st_mode)) throw sifr::IoError(path, "is not a regular file");
  return status.st_size;
}

}  // namespace

InputFile::InputFile(const std::filesystem::path& path)
    : path_(path), file_(open_to_read(path)), bytes_(size_of(file_, path)) {}

void InputFile::read(std::int64_t from, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t length = ::pread(file_.number(), bytes.data(), bytes.size(), from);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) throw sifr::IoError(path_, "cannot be read", errno);
    if (length == 0)
      throw sifr::IoError(
          path_, fmt::format("has no byte {} any more; was it cut short after the start?", from));
    from += length;
    bytes = bytes.subspan(static_cast<std::size_t>(length));
  }
}

std::string text_of(const std::filesystem::path& path) {
  const InputFile file(path);
  std::string text(static_cast<std::size_t>(file.bytes()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace llama
