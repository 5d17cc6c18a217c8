#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sifr::detail {

/// What a safetensors header says of one tensor; begin and end count bytes from the end of the
/// header.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::int64_t count = 0;  // elements
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // by begin
  std::map<std::string, std::string> metadata;
};

/// The header is not what the format demands; the text is a sentence's end: "the tensor 'a' …".
struct MalformedHeader : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The longest header that is read: safetensors' own limit.
inline constexpr std::int64_t kLongestHeader = 100'000'000;

/// Parses and checks the JSON of a header whose file has `data_bytes` bytes behind it. Throws
/// MalformedHeader.
[[nodiscard]] SafetensorsHeader parse_safetensors_header(std::string_view json,
                                                         std::int64_t data_bytes);

/// Computes begin and end of entries that lie one after another, and returns the file's first
/// bytes: the length word and the JSON, padded with spaces so that the data starts on a multiple
/// of 8.
[[nodiscard]] std::string format_safetensors_header(SafetensorsHeader& header);

/// Bytes of one element of a dtype as the format names it; 0 for a name that this reader does not
/// know.
[[nodiscard]] std::int64_t safetensors_element_bytes(std::string_view dtype) noexcept;

/// Elements of a shape; throws MalformedHeader for a negative extent or more than 2^59 elements.
[[nodiscard]] std::int64_t safetensors_count(const std::string& name,
                                             const std::vector<std::int64_t>& shape);

}  // namespace sifr::detail
