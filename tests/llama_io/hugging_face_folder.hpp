#pragma once

#include "engine/safetensors.hpp"
#include "examples/llama/hugging_face_config.hpp"
#include "examples/llama/parameters.hpp"
#include "tests/support/temporary_folder.hpp"

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

/// A tiny Llama whose parameter p has the values 1000·p, 1000·p + 1, … as far as 16 bits carry
/// them.
inline llama::LlamaShape tiny_shape(bool tied) {
  return {.hidden = 4,
          .layers = 2,
          .heads = 2,
          .kv_heads = 1,
          .head_size = 2,
          .intermediate = 6,
          .vocab = 8,
          .tied = tied};
}

inline std::int64_t count_of(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape)
    count *= extent;
  return count;
}

inline std::vector<float> values_of(std::size_t parameter, std::int64_t count) {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const float exact = static_cast<float>(1000 * parameter) + static_cast<float>(i);
    values.push_back(sifr::to_float(sifr::to_bfloat16(exact)));
  }
  return values;
}

inline sifr::ConstView view_of(const std::vector<float>& values) {
  return {reinterpret_cast<const std::byte*>(values.data()),
          static_cast<std::int64_t>(values.size()),
          sifr::DType::kFloat32};
}

/// Writes these parameters as one file, with the values of their places in the list.
inline void write_weights(const std::filesystem::path& path,
                          const std::vector<llama::NamedParameter>& parameters) {
  std::vector<sifr::SafetensorsWriter::Declared> declared;
  declared.reserve(parameters.size());
  for (const auto& one : parameters)
    declared.push_back({one.name, sifr::DType::kFloat32, one.shape});
  sifr::SafetensorsWriter writer(path, declared);
  for (std::size_t p = 0; p < parameters.size(); ++p)
    writer.write(parameters[p].name, 0, view_of(values_of(p, count_of(parameters[p].shape))));
  writer.finish();
}

inline void write_config(const std::filesystem::path& folder, const llama::LlamaShape& shape) {
  std::filesystem::create_directories(folder);
  write_file(folder / "config.json",
             llama::format_hugging_face_config(shape, sifr::DType::kFloat32, ""));
}
