#include "engine/safetensors.hpp"

#include "engine/detail/file.hpp"
#include "engine/detail/safetensors_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace sifr {
namespace {

static_assert(std::endian::native == std::endian::little,
              "safetensors files are little-endian, and read in place");

// A denormal is a multiple of 2^-24, which fp32 holds exactly; other values keep their fraction,
// and the exponent gets fp32's bias: 127 instead of 15.
float widen_float16(std::uint16_t half) noexcept {
  const auto sign = (std::uint32_t{half} & 0x8000U) << 16;
  const auto magnitude = std::uint32_t{half} & 0x7FFFU;
  if (magnitude >= 0x7C00U)
    return std::bit_cast<float>(sign | 0x7F800000U | (magnitude & 0x3FFU) << 13);
  const float scaled = static_cast<float>(magnitude & 0x3FFU) * 0x1p-24F;
  if (magnitude < 0x400U) return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
  return std::bit_cast<float>(sign | ((magnitude << 13) + (112U << 23)));
}

// The file promises no alignment, so elements are copied out.
template <class Stored, class Widen>
void widen(const std::byte* source, std::span<float> values, Widen one) {
  for (float& value : values) {
    Stored stored;
    std::memcpy(&stored, source, sizeof(stored));
    value = one(stored);
    source += sizeof(stored);
  }
}

std::string header_text(const std::filesystem::path& path, std::span<const std::byte> file) {
  std::uint64_t length = 0;
  if (file.size() < sizeof(length))
    throw IoError(
        path,
        fmt::format("is no safetensors file: {} bytes are too few for a header", file.size()));
  std::memcpy(&length, file.data(), sizeof(length));
  if (length > static_cast<std::uint64_t>(detail::kLongestHeader))
    throw IoError(
        path,
        fmt::format("is no safetensors file: its first 8 bytes claim a header of {} bytes",
                    length));
  if (length > file.size() - sizeof(length)) {
    throw IoError(path,
                  fmt::format("is truncated: its header has {} bytes, the file {}",
                              length,
                              file.size() - sizeof(length)));
  }
  return {reinterpret_cast<const char*>(file.data()) + sizeof(length), length};
}

}  // namespace

std::string_view safetensors_name(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat32:
      return "F32";
    case DType::kBFloat16:
      return "BF16";
    case DType::kFloat16:
      return "F16";
  }
  return "";
}

std::optional<DType> dtype_from_safetensors(std::string_view name) noexcept {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    if (safetensors_name(dtype) == name) return dtype;
  }
  return std::nullopt;
}

struct SafetensorsFile::State {
  explicit State(const std::filesystem::path& from) : path(from), file(from) {}
  std::filesystem::path path;
  detail::MappedFile file;
  std::vector<SafetensorsTensor> tensors;
  std::map<std::string_view, std::size_t> by_name;  // views of the names in `tensors`
  std::map<std::string, std::string> metadata;
};

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : state_(std::make_unique<State>(path)) {
  const auto file = state_->file.bytes();
  const std::string text = header_text(path, file);
  const auto data = file.subspan(sizeof(std::uint64_t) + text.size());
  try {
    auto header = detail::parse_safetensors_header(text, static_cast<std::int64_t>(data.size()));
    for (auto& entry : header.entries) {
      const auto bytes = data.subspan(static_cast<std::size_t>(entry.begin),
                                      static_cast<std::size_t>(entry.end - entry.begin));
      state_->tensors.push_back({std::move(entry.name),
                                 std::move(entry.dtype),
                                 std::move(entry.shape),
                                 entry.count,
                                 bytes});
    }
    state_->metadata = std::move(header.metadata);
  } catch (const detail::MalformedHeader& error) {
    throw IoError(path, fmt::format("is no whole safetensors file: its header {}", error.what()));
  }
  for (std::size_t i = 0; i < state_->tensors.size(); ++i)
    state_->by_name[state_->tensors[i].name] = i;
}

SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;
SafetensorsFile::~SafetensorsFile() = default;

const std::filesystem::path& SafetensorsFile::path() const noexcept {
  return state_->path;
}

std::span<const SafetensorsTensor> SafetensorsFile::tensors() const noexcept {
  return state_->tensors;
}

const SafetensorsTensor* SafetensorsFile::find(std::string_view name) const noexcept {
  const auto found = state_->by_name.find(name);
  return found == state_->by_name.end() ? nullptr : &state_->tensors[found->second];
}

const std::map<std::string, std::string>& SafetensorsFile::metadata() const noexcept {
  return state_->metadata;
}

void SafetensorsFile::read(const SafetensorsTensor& tensor,
                           std::int64_t first,
                           std::span<float> values) const {
  const auto count = static_cast<std::int64_t>(values.size());
  if (first < 0 || first > tensor.count || count > tensor.count - first) {
    throw UsageError(fmt::format("SafetensorsFile::read: elements {} to {} of '{}', which has {}",
                                 first,
                                 first + count,
                                 tensor.name,
                                 tensor.count));
  }
  const auto dtype = dtype_from_safetensors(tensor.dtype);
  if (!dtype) {
    throw IoError(
        path(),
        fmt::format("holds the tensor '{}' in {}; only F32, BF16 and F16 can be read as numbers",
                    tensor.name,
                    tensor.dtype));
  }
  const std::byte* source = tensor.bytes.data() + first * size_of(*dtype);
  switch (*dtype) {
    case DType::kFloat32:
      if (!values.empty()) std::memcpy(values.data(), source, values.size_bytes());
      return;
    case DType::kBFloat16:
      return widen<std::uint16_t>(
          source, values, [](std::uint16_t bits) { return to_float(bfloat16{bits}); });
    case DType::kFloat16:
      return widen<std::uint16_t>(source, values, widen_float16);
  }
}

}  // namespace sifr
