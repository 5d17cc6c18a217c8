#pragma once

#include "engine/engine.hpp"
#include "engine/safetensors.hpp"
#include "examples/llama/hugging_face.hpp"
#include "examples/llama/new_folder.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace llama {

struct SaveOptions {
  std::filesystem::path folder;
  LlamaShape shape;
  const HuggingFaceModel* source = nullptr;  // config.json and tokenizer files come from it
  std::int64_t shard_bytes = 5'000'000'000;  // weights beyond that are split over several files
};

/// Writes a folder that transformers loads: config.json, model.safetensors or shards and their
/// index, and the source's tokenizer files. An older save is replaced at finish(), as a whole.
class HuggingFaceWriter {
 public:
  /// `tensors`: in the order in which write() will get them. Throws sifr::IoError: no space, no
  /// right to write, or a folder that holds something else than a model.
  HuggingFaceWriter(const SaveOptions& options,
                    std::vector<sifr::SafetensorsWriter::Declared> tensors);
  /// The next piece; a sink for Engine::export_weights.
  void write(const sifr::WeightPiece& piece);
  void finish();

 private:
  struct Shard {
    std::string file;
    std::vector<sifr::SafetensorsWriter::Declared> tensors;
  };
  void split(std::vector<sifr::SafetensorsWriter::Declared> tensors, std::int64_t shard_bytes);
  void open_next_shard();
  void write_index() const;
  void write_config(const SaveOptions& options, sifr::DType dtype) const;

  NewFolder folder_;
  std::vector<Shard> shards_;
  std::size_t shard_ = 0;  // that is open, or comes next
  std::int64_t bytes_ = 0;
  std::optional<sifr::SafetensorsWriter> writer_;
};

}  // namespace llama
