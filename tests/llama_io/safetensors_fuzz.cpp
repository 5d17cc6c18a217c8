// Feeds any bytes to the safetensors reader as a file: it opens or throws IoError, and what it
// opens can be read.
#include "engine/safetensors.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

void read_all(const sifr::SafetensorsFile& file) {
  std::vector<float> values(64);
  for (const sifr::SafetensorsTensor& tensor : file.tensors()) {
    if (file.find(tensor.name) != &tensor) std::abort();
    if (!sifr::dtype_from_safetensors(tensor.dtype)) continue;
    const auto length = std::min(tensor.count, static_cast<std::int64_t>(values.size()));
    file.read(tensor, 0, std::span(values).first(static_cast<std::size_t>(length)));
    file.read(
        tensor, tensor.count - length, std::span(values).first(static_cast<std::size_t>(length)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int memory = memfd_create("safetensors", MFD_CLOEXEC);
  if (memory < 0 || write(memory, data, size) != static_cast<ssize_t>(size)) std::abort();
  try {
    read_all(sifr::SafetensorsFile("/proc/self/fd/" + std::to_string(memory)));
  } catch (const sifr::IoError& error) {
    if (std::string_view(error.message()).empty()) std::abort();
  }
  close(memory);
  return 0;
}
