#pragma once

#include "engine/safetensors.hpp"
#include "examples/llama/input_file.hpp"

#include <cstdint>
#include <filesystem>
#include <span>

namespace llama {

/// A safetensors file whose elements are read as an InputFile's bytes. Thread-safe once made.
class WeightsFile {
 public:
  /// Throws sifr::IoError as sifr::SafetensorsFile does.
  explicit WeightsFile(const std::filesystem::path& path);
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return file_.path(); }
  /// In the order in which they lie in the file. Their `bytes` are not for reading.
  [[nodiscard]] std::span<const sifr::SafetensorsTensor> tensors() const noexcept {
    return header_.tensors();
  }
  /// Elements [first, first + values.size()) of an F32, BF16 or F16 tensor, widened exactly. Throws
  /// sifr::IoError where somebody has cut the file short.
  void read(const sifr::SafetensorsTensor& tensor,
            std::int64_t first,
            std::span<float> values) const;
  /// Bytes [first, first + bytes.size()) of a tensor.
  void read_bytes(const sifr::SafetensorsTensor& tensor,
                  std::int64_t first,
                  std::span<std::byte> bytes) const;

 private:
  sifr::SafetensorsFile header_;
  InputFile file_;
  std::int64_t data_begin_ = 0;
};

}  // namespace llama
