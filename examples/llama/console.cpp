#include "examples/llama/console.hpp"

#include "engine/io_error.hpp"

#include <cstdio>

namespace llama {

void print(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);  // what fails stays known to the stream
}

void warn(std::string_view text) noexcept {
  std::fprintf(stderr, "llama: %.*s\n", static_cast<int>(text.size()), text.data());
}

void require_printed() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw sifr::IoError("standard output", "cannot be written: full, or closed by its reader");
}

}  // namespace llama
