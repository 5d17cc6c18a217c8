#pragma once

#include "engine/model.hpp"
#include "examples/llama/hugging_face_config.hpp"
#include "examples/llama/weights_file.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llama {

/// A model folder in Hugging Face's format: config.json, and model.safetensors or the shards that
/// model.safetensors.index.json lists. Weights that no fill asks for are never read. Thread-safe
/// once made.
class HuggingFaceModel {
 public:
  /// Throws sifr::IoError: a file is missing or malformed, the model is no Llama of this kind, or
  /// tensors are missing, superfluous or of another shape or dtype; all of them are named.
  explicit HuggingFaceModel(const std::filesystem::path& folder);

  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }
  [[nodiscard]] const HuggingFaceConfig& config() const noexcept { return config_; }
  [[nodiscard]] const LlamaShape& shape() const noexcept { return config_.shape; }

  /// Reads any stretch of the parameter straight from its file, widened to fp32. Keeps the file
  /// open. Throws sifr::UsageError for a name that the model does not have; the fill throws
  /// sifr::IoError where somebody has cut the file short.
  [[nodiscard]] sifr::Fill fill(std::string_view name) const;

 private:
  struct Place {
    std::shared_ptr<const WeightsFile> file;
    const sifr::SafetensorsTensor* tensor = nullptr;
  };
  [[nodiscard]] static bool are_equal(const Place& left, const Place& right);
  void open_files();
  void open_shards(const std::filesystem::path& index);
  void add_file(const std::shared_ptr<const WeightsFile>& file);
  void check_tensors() const;
  [[nodiscard]] std::vector<std::string> wrong_tensors() const;
  [[nodiscard]] std::vector<std::string> superfluous_tensors() const;

  std::filesystem::path folder_;
  HuggingFaceConfig config_;
  std::map<std::string, Place, std::less<>> tensors_;
};

}  // namespace llama
