#include "examples/llama/hugging_face_writer.hpp"

#include "examples/llama/hugging_face_config.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace llama {
namespace {

using Declared = sifr::SafetensorsWriter::Declared;

std::int64_t bytes_of(const Declared& tensor) {
  std::int64_t bytes = sifr::size_of(tensor.dtype);
  for (const std::int64_t extent : tensor.shape)
    bytes *= extent;
  return bytes;
}

/// Of a file: its header has less than 256 bytes for a tensor beside the name.
std::int64_t most_bytes_of(const std::vector<Declared>& tensors) {
  constexpr std::int64_t kHeader = 256;
  std::int64_t bytes = kHeader;
  for (const Declared& tensor : tensors)
    bytes += kHeader + static_cast<std::int64_t>(tensor.name.size()) + bytes_of(tensor);
  return bytes;
}

bool holds(const std::vector<Declared>& tensors, std::string_view name) {
  return std::any_of(
      tensors.begin(), tensors.end(), [&](const Declared& tensor) { return tensor.name == name; });
}

}  // namespace

HuggingFaceWriter::HuggingFaceWriter(const SaveOptions& options, std::vector<Declared> tensors)
    : folder_(options.folder) {
  const sifr::DType dtype = tensors.empty() ? sifr::DType::kFloat32 : tensors.front().dtype;
  split(std::move(tensors), options.shard_bytes);
  for (const Shard& shard : shards_)
    folder_.require_limit(shard.file, most_bytes_of(shard.tensors));
  write_config(options, dtype);
  folder_.require_no_loss();
  if (shards_.size() > 1) write_index();
  folder_.require_space(bytes_);
}

void HuggingFaceWriter::split(std::vector<Declared> tensors, std::int64_t shard_bytes) {
  std::int64_t used = 0;
  for (Declared& tensor : tensors) {
    const std::int64_t size = bytes_of(tensor);
    if (shards_.empty() || (used > 0 && used + size > shard_bytes)) {
      shards_.emplace_back();
      used = 0;
    }
    used += size;
    bytes_ += size;
    shards_.back().tensors.push_back(std::move(tensor));
  }
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    shards_[i].file = shards_.size() == 1
                          ? "model.safetensors"
                          : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards_.size());
  }
}

void HuggingFaceWriter::write_config(const SaveOptions& options, sifr::DType dtype) const {
  const std::string_view source =
      options.source == nullptr ? "" : std::string_view(options.source->config().json);
  folder_.write_text("config.json", format_hugging_face_config(options.shape, dtype, source));
  if (options.source == nullptr) return;
  for (const auto& entry : std::filesystem::directory_iterator(options.source->folder())) {
    if (entry.is_regular_file() && is_tokenizer_file(entry.path().filename().string()))
      folder_.copy(entry.path());
  }
}

void HuggingFaceWriter::write_index() const {
  nlohmann::ordered_json index;
  index["metadata"]["total_size"] = bytes_;
  for (const Shard& shard : shards_) {
    for (const Declared& tensor : shard.tensors)
      index["weight_map"][tensor.name] = shard.file;
  }
  folder_.write_text("model.safetensors.index.json", index.dump(2) + "\n");
}

void HuggingFaceWriter::open_next_shard() {
  const Shard& shard = shards_[shard_];
  const std::map<std::string, std::string> metadata = {{"format", "pt"}};
  writer_.emplace(folder_.path() / shard.file, shard.tensors, metadata);
}

void HuggingFaceWriter::write(const sifr::WeightPiece& piece) {
  const bool is_next =
      writer_ && shard_ + 1 < shards_.size() && holds(shards_[shard_ + 1].tensors, piece.name);
  if (is_next) {
    writer_->finish();
    ++shard_;
  }
  if (!writer_ || is_next) open_next_shard();
  writer_->write(piece.name, piece.first, piece.values);
}

void HuggingFaceWriter::finish() {
  if (!writer_) open_next_shard();
  if (shard_ + 1 < shards_.size())
    throw sifr::UsageError("HuggingFaceWriter::finish: not all weights were written");
  writer_->finish();
  writer_.reset();
  folder_.commit();
}

}  // namespace llama
