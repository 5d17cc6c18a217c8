#include "engine/detail/safetensors_header.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <utility>

namespace sifr::detail {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMostElements = std::int64_t{1} << 59;
constexpr int kDeepestNesting = 3;  // file / tensor / shape

/// The DOM keeps the last of two equal keys silently, so the keys are compared while they are read.
class DuplicateKeys {
 public:
  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth > kDeepestNesting) throw MalformedHeader("nests objects or lists too deeply");
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end) keys_.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second)
        throw MalformedHeader(fmt::format("has the key '{}' twice", key));
    }
    return true;
  }

 private:
  std::vector<std::set<std::string>> keys_;
};

Json parse_json(std::string_view text) {
  if (text.empty() || text.front() != '{') throw MalformedHeader("does not start with '{'");
  try {
    return Json::parse(text.begin(), text.end(), DuplicateKeys());
  } catch (const Json::exception& error) {
    throw MalformedHeader(fmt::format("is not JSON: {}", error.what()));
  }
}

std::int64_t as_whole_number(const std::string& name, const char* key, const Json& value) {
  const bool fits =
      value.is_number_unsigned() && value.get<std::uint64_t>() <= std::uint64_t{INT64_MAX};
  if (!fits)
    throw MalformedHeader(
        fmt::format("gives the tensor '{}' a {} that is not a list of whole numbers", name, key));
  return value.get<std::int64_t>();
}

std::vector<std::int64_t> whole_numbers(const std::string& name,
                                        const char* key,
                                        const Json& tensor) {
  const auto found = tensor.find(key);
  if (found == tensor.end() || !found->is_array())
    throw MalformedHeader(fmt::format("gives the tensor '{}' no list {}", name, key));
  std::vector<std::int64_t> numbers;
  for (const Json& value : *found)
    numbers.push_back(as_whole_number(name, key, value));
  return numbers;
}

std::map<std::string, std::string> metadata_from(const Json& object) {
  if (!object.is_object()) throw MalformedHeader("has a __metadata__ that is not an object");
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string())
      throw MalformedHeader(fmt::format("has metadata '{}' that is not a string", key));
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

void check_size(const SafetensorsEntry& entry) {
  const std::int64_t element = safetensors_element_bytes(entry.dtype);
  if (element != 0 && entry.end - entry.begin != entry.count * element) {
    throw MalformedHeader(
        fmt::format("gives the tensor '{}' {} bytes, but its {} elements of {} take {}",
                    entry.name,
                    entry.end - entry.begin,
                    entry.count,
                    entry.dtype,
                    entry.count * element));
  }
}

SafetensorsEntry entry_from(const std::string& name, const Json& tensor, std::int64_t data_bytes) {
  if (!tensor.is_object())
    throw MalformedHeader(fmt::format("describes the tensor '{}' by no object", name));
  for (const auto& [key, value] : tensor.items()) {
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      throw MalformedHeader(fmt::format("gives the tensor '{}' an unknown key '{}'", name, key));
  }
  const auto dtype = tensor.find("dtype");
  if (dtype == tensor.end() || !dtype->is_string())
    throw MalformedHeader(fmt::format("gives the tensor '{}' no dtype", name));
  SafetensorsEntry entry{
      .name = name, .dtype = *dtype, .shape = whole_numbers(name, "shape", tensor)};
  entry.count = safetensors_count(name, entry.shape);
  const auto offsets = whole_numbers(name, "data_offsets", tensor);
  if (offsets.size() != 2)
    throw MalformedHeader(
        fmt::format("gives the tensor '{}' data_offsets that are not two numbers", name));
  entry.begin = offsets[0];
  entry.end = offsets[1];
  if (entry.begin > entry.end || entry.end > data_bytes) {
    throw MalformedHeader(fmt::format(
        "places the tensor '{}' at bytes {} to {}, but the file has {} bytes of data (truncated?)",
        name,
        entry.begin,
        entry.end,
        data_bytes));
  }
  check_size(entry);
  return entry;
}

// Tensors must cover the data exactly: the format forbids aliases and holes.
void check_cover(const std::vector<SafetensorsEntry>& entries, std::int64_t data_bytes) {
  std::int64_t covered = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != covered) {
      throw MalformedHeader(fmt::format(
          "places the tensor '{}' at byte {}, which {} the data before it, that ends at {}",
          entry.name,
          entry.begin,
          entry.begin < covered ? "overlaps" : "leaves a hole behind",
          covered));
    }
    covered = entry.end;
  }
  if (covered != data_bytes)
    throw MalformedHeader(
        fmt::format("describes {} bytes of data, but the file has {}", covered, data_bytes));
}

}  // namespace

std::int64_t safetensors_element_bytes(std::string_view dtype) noexcept {
  struct Known {
    std::string_view name;
    std::int64_t bytes;
  };
  constexpr std::array kKnown = {
      Known{"F64", 8},
      Known{"I64", 8},
      Known{"U64", 8},
      Known{"F32", 4},
      Known{"I32", 4},
      Known{"U32", 4},
      Known{"BF16", 2},
      Known{"F16", 2},
      Known{"I16", 2},
      Known{"U16", 2},
      Known{"I8", 1},
      Known{"U8", 1},
      Known{"F8_E4M3", 1},
      Known{"F8_E5M2", 1},
      Known{"BOOL", 1},
  };
  for (const Known& known : kKnown) {
    if (known.name == dtype) return known.bytes;
  }
  return 0;
}

std::int64_t safetensors_count(const std::string& name, const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  bool is_empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0)
      throw MalformedHeader(fmt::format("gives the tensor '{}' a negative extent", name));
    is_empty = is_empty || extent == 0;
  }
  if (is_empty) return 0;
  for (const std::int64_t extent : shape) {
    if (count > kMostElements / extent)
      throw MalformedHeader(
          fmt::format("gives the tensor '{}' more elements than any file has", name));
    count *= extent;
  }
  return count;
}

SafetensorsHeader parse_safetensors_header(std::string_view json, std::int64_t data_bytes) {
  const Json parsed = parse_json(json);
  SafetensorsHeader header;
  for (const auto& [name, value] : parsed.items()) {
    if (name == "__metadata__") {
      header.metadata = metadata_from(value);
    } else {
      header.entries.push_back(entry_from(name, value, data_bytes));
    }
  }
  std::stable_sort(
      header.entries.begin(), header.entries.end(), [](const auto& left, const auto& right) {
        return std::pair(left.begin, left.end) < std::pair(right.begin, right.end);
      });
  check_cover(header.entries, data_bytes);
  return header;
}

std::string format_safetensors_header(SafetensorsHeader& header) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) json["__metadata__"] = header.metadata;
  std::int64_t place = 0;
  for (SafetensorsEntry& entry : header.entries) {
    entry.begin = place;
    entry.end = place + entry.count * safetensors_element_bytes(entry.dtype);
    place = entry.end;
    json[entry.name] = {
        {"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const Json::exception&) {
    throw MalformedHeader("holds a name or metadata that is not UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + text;
}

}  // namespace sifr::detail
