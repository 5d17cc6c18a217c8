#include "examples/llama/console.hpp"

#include "engine/io_error.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>

namespace llama {

namespace {

std::atomic<int> last_error = 0;  // of stdout

}  // namespace

void print(std::string_view text) noexcept {
  errno = 0;
  const bool is_taken = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!is_taken || std::fflush(stdout) != 0) last_error = errno;
}

void warn(std::string_view text) noexcept {
  std::fprintf(stderr, "llama: %.*s\n", static_cast<int>(text.size()), text.data());
}

void require_printed() {
  print("");  // flushes what others left
  if (std::ferror(stdout) != 0)
    throw sifr::IoError("standard output", "cannot be written", last_error);
}

}  // namespace llama
