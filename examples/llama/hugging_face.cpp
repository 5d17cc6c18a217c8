#include "examples/llama/hugging_face.hpp"

#include "engine/io_error.hpp"
#include "examples/llama/parameters.hpp"
#include "examples/llama/strict_json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <set>

namespace llama {
namespace {

constexpr std::string_view kHead = "lm_head.weight";
constexpr std::string_view kEmbedding = "model.embed_tokens.weight";
constexpr std::size_t kMostNamed = 20;   // problems in one message
constexpr std::size_t kPiece = 1 << 20;  // bytes compared at once

// Buffers that early versions saved, which are computed from rope_theta.
bool is_buffer(std::string_view name) {
  return name.ends_with(".rotary_emb.inv_freq");
}

std::map<std::string, std::string> weight_map(const std::filesystem::path& index) {
  try {
    const auto json = parse_strict_json(text_of(index), index);
    return json.at("weight_map").get<std::map<std::string, std::string>>();
  } catch (const nlohmann::json::exception& error) {
    throw sifr::IoError(
        index, fmt::format("is no index of shards (weight_map: name to file): {}", error.what()));
  }
}

}  // namespace

HuggingFaceModel::HuggingFaceModel(const std::filesystem::path& folder) : folder_(folder) {
  if (!std::filesystem::is_directory(folder))
    throw sifr::IoError(folder,
                        "is not a folder; a model folder holds config.json and model.safetensors");
  config_ = parse_hugging_face_config(text_of(folder / "config.json"), folder / "config.json");
  open_files();
  check_tensors();
}

void HuggingFaceModel::open_files() {
  const auto single = folder_ / "model.safetensors";
  const auto index = folder_ / "model.safetensors.index.json";
  if (std::filesystem::exists(single)) {
    add_file(std::make_shared<WeightsFile>(single));
  } else if (std::filesystem::exists(index)) {
    open_shards(index);
  } else {
    throw sifr::IoError(
        folder_,
        "has neither model.safetensors nor model.safetensors.index.json; weights in another format "
        "must be saved as safetensors first");
  }
}

void HuggingFaceModel::open_shards(const std::filesystem::path& index) {
  const auto places = weight_map(index);
  std::set<std::string> names;
  for (const auto& [tensor, file] : places)
    names.insert(file);
  for (const std::string& name : names) {
    if (std::filesystem::path(name).filename() != name || name == "..")
      throw sifr::IoError(
          index, fmt::format("names the shard '{}', which is not a file of the folder", name));
    add_file(std::make_shared<WeightsFile>(folder_ / name));
  }
  for (const auto& [tensor, file] : places) {
    const auto found = tensors_.find(tensor);
    if (found == tensors_.end() || found->second.file->path().filename() != file)
      throw sifr::IoError(
          index, fmt::format("places the tensor '{}' in {}, where it is not", tensor, file));
  }
}

void HuggingFaceModel::add_file(const std::shared_ptr<const WeightsFile>& file) {
  for (const sifr::SafetensorsTensor& tensor : file->tensors()) {
    const auto [place, is_new] = tensors_.try_emplace(tensor.name, Place{file, &tensor});
    if (!is_new) {
      throw sifr::IoError(file->path(),
                          fmt::format("holds the tensor '{}', which {} holds too",
                                      tensor.name,
                                      place->second.file->path().filename().string()));
    }
  }
}

std::vector<std::string> HuggingFaceModel::wrong_tensors() const {
  std::vector<std::string> problems;
  for (const NamedParameter& expected : parameters_of(config_.shape)) {
    const auto found = tensors_.find(expected.name);
    if (found == tensors_.end()) {
      problems.push_back(fmt::format(
          "'{}' is missing{}",
          expected.name,
          expected.name == kHead ? " (config.json says tie_word_embeddings = false)" : ""));
      continue;
    }
    const sifr::SafetensorsTensor& tensor = *found->second.tensor;
    if (tensor.shape != expected.shape) {
      problems.push_back(fmt::format("'{}' has the shape {}, but config.json says {}",
                                     expected.name,
                                     tensor.shape,
                                     expected.shape));
    } else if (!sifr::dtype_from_safetensors(tensor.dtype)) {
      problems.push_back(fmt::format(
          "'{}' is stored as {}; only F32, BF16 and F16 can be read", expected.name, tensor.dtype));
    }
  }
  return problems;
}

bool HuggingFaceModel::are_equal(const Place& left, const Place& right) {
  if (left.tensor->dtype != right.tensor->dtype || left.tensor->shape != right.tensor->shape)
    return false;
  const std::size_t size = left.tensor->bytes.size();
  const auto piece_of = [&](const Place& place, std::size_t first) {
    std::vector<std::byte> piece(std::min(kPiece, size - first));
    place.file->read_bytes(*place.tensor, static_cast<std::int64_t>(first), piece);
    return piece;
  };
  for (std::size_t first = 0; first < size; first += kPiece) {
    if (piece_of(left, first) != piece_of(right, first)) return false;
  }
  return true;
}

std::vector<std::string> HuggingFaceModel::superfluous_tensors() const {
  std::set<std::string> expected;
  for (NamedParameter& parameter : parameters_of(config_.shape))
    expected.insert(std::move(parameter.name));
  const auto embedding = tensors_.find(kEmbedding);
  std::vector<std::string> problems;
  for (const auto& [name, place] : tensors_) {
    if (expected.contains(name) || is_buffer(name)) continue;
    // Some programs write a tied head's copy along; it must then be one.
    const bool is_tied_head = name == kHead && embedding != tensors_.end();
    if (is_tied_head && are_equal(place, embedding->second)) continue;
    problems.push_back(
        is_tied_head
            ? fmt::format("'{}' differs from the embedding, but config.json ties them", name)
            : fmt::format("'{}' has no place in a Llama of this shape", name));
  }
  return problems;
}

void HuggingFaceModel::check_tensors() const {
  auto problems = wrong_tensors();
  for (std::string& problem : superfluous_tensors())
    problems.push_back(std::move(problem));
  if (problems.empty()) return;
  const std::size_t count = problems.size();
  if (count > kMostNamed) {
    problems.resize(kMostNamed);
    problems.push_back(fmt::format("and {} more", count - kMostNamed));
  }
  throw sifr::IoError(folder_,
                      fmt::format("does not fit its config.json: {}", fmt::join(problems, "; ")));
}

sifr::Fill HuggingFaceModel::fill(std::string_view name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end())
    throw sifr::UsageError(fmt::format("HuggingFaceModel::fill: there is no tensor '{}'", name));
  return [place = found->second](std::int64_t first, std::span<float> values) {
    place.file->read(*place.tensor, first, values);
  };
}

}  // namespace llama
