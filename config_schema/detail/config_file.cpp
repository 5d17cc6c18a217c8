#include "config_schema/detail/config_file.hpp"

#include "config_schema/config_error.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <unistd.h>

namespace sifr::detail {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& text) {
  throw ConfigError(path.string(), {{"", 0, 0, text}});
}

[[noreturn]] void refuse_for_system(const std::filesystem::path& path) {
  refuse(path, fmt::format("cannot be read: {}", std::strerror(errno)));
}

void require_regular(int file, const std::filesystem::path& path) {
  struct stat status = {};
  if (::fstat(file, &status) != 0) refuse_for_system(path);
  if (S_ISDIR(status.st_mode)) refuse(path, "is a directory; name the config file in it");
  if (!S_ISREG(status.st_mode)) {
    refuse(path,
           fmt::format("is a {}, and every rank reads the config: write it to a file",
                       S_ISFIFO(status.st_mode) ? "pipe" : "device"));
  }
}

}  // namespace

std::string read_config_file(const std::filesystem::path& path, std::size_t most) {
  const int number = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (number < 0) refuse_for_system(path);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(::fdopen(number, "rb"), std::fclose);
  if (file == nullptr) {
    ::close(number);
    refuse_for_system(path);
  }
  require_regular(number, path);
  std::string text(most, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) refuse_for_system(path);
  return text;
}

}  // namespace sifr::detail
