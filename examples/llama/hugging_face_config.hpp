#pragma once

#include "device/dtype.hpp"
#include "examples/llama/shape.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace llama {

/// What a Hugging Face config.json says of a Llama.
struct HuggingFaceConfig {
  LlamaShape shape;
  std::string json;                  // the whole text, for writing it back
  std::vector<std::string> notices;  // keys that are not known here and left alone
};

/// Reads a config.json in today's and yesterday's spelling (rope_parameters.rope_theta and
/// rope_theta, dtype and torch_dtype). Throws sifr::IoError with everything that is wrong, each
/// feature that this Llama does not compute (rope scaling, biases, a sliding window, …) by name.
[[nodiscard]] HuggingFaceConfig parse_hugging_face_config(std::string_view json,
                                                          const std::filesystem::path& path);

/// The config.json of a new folder: that of the source (empty: none) with this dtype, or one of our
/// own, in the spelling that every transformers reads.
[[nodiscard]] std::string format_hugging_face_config(const LlamaShape& shape,
                                                     sifr::DType dtype,
                                                     std::string_view source_json);

}  // namespace llama
