#pragma once

#include "../device/dtype.hpp"
#include "../device/view.hpp"
#include "./io_error.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sifr {

/// "F32", "BF16" or "F16", as a safetensors header spells a dtype; and back, if it is one of these.
[[nodiscard]] SIFR_API std::string_view safetensors_name(DType dtype) noexcept;
[[nodiscard]] SIFR_API std::optional<DType> dtype_from_safetensors(std::string_view name) noexcept;

/// One tensor of a safetensors file. `bytes` lie in the mapped file and live as long as it.
struct SafetensorsTensor {
  std::string name;
  std::string dtype;  // as the file spells it: "F32", "BF16", "F16", "I64", …
  std::vector<std::int64_t> shape;
  std::int64_t count = 0;  // elements
  std::span<const std::byte> bytes = {};
};

/// A safetensors file, mapped read only: pages are read when they are touched. The header is
/// checked completely at opening: sizes within the file, no overlap, no hole, no name twice, every
/// size as its shape and dtype say. Move-only; the questions are thread-safe.
class SIFR_API SafetensorsFile {
 public:
  /// Throws IoError: cannot be opened, or is not a whole, well-formed safetensors file.
  explicit SafetensorsFile(const std::filesystem::path& path);
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;
  ~SafetensorsFile();

  [[nodiscard]] const std::filesystem::path& path() const noexcept;
  /// In the order in which they lie in the file.
  [[nodiscard]] std::span<const SafetensorsTensor> tensors() const noexcept;
  /// Null if there is none of that name.
  [[nodiscard]] const SafetensorsTensor* find(std::string_view name) const noexcept;
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const noexcept;

  /// Elements [first, first + values.size()) of a tensor, widened exactly. Throws IoError unless
  /// its dtype is F32, BF16 or F16, UsageError beyond its end.
  void read(const SafetensorsTensor& tensor, std::int64_t first, std::span<float> values) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Writes a safetensors file as a stream: the tensors are declared first, then their elements come
/// in order. The bytes go to a temporary file beside `path`; finish() makes them durable and gives
/// the file its name, so that under this name lies either the older file or the complete new one.
/// The space is reserved at the start: a full disk and a limit (ulimit -f) are errors before the
/// first byte. Move-only.
class SIFR_API SafetensorsWriter {
 public:
  struct Declared {
    std::string name;
    DType dtype = DType::kFloat32;
    std::vector<std::int64_t> shape;
  };
  /// Throws IoError (cannot be created, no space), UsageError (a name twice, a negative extent).
  SafetensorsWriter(const std::filesystem::path& path,
                    const std::vector<Declared>& tensors,
                    const std::map<std::string, std::string>& metadata = {});
  SafetensorsWriter(SafetensorsWriter&&) noexcept;
  SafetensorsWriter& operator=(SafetensorsWriter&&) noexcept;
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;
  /// Without finish() nothing is left of it.
  ~SafetensorsWriter();

  /// The next elements of the tensor whose turn it is: `first` is where the last piece ended.
  /// UsageError for another tensor, place or dtype; IoError if the file cannot take them.
  void write(std::string_view name, std::int64_t first, ConstView values);
  /// Throws UsageError if elements are missing, IoError if the file cannot be made durable or
  /// renamed.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sifr
