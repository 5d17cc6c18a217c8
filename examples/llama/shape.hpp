#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace llama {

/// The numbers that say which Llama a Llama is, named as on the command line. Throughout the
/// example counts are int64.
struct LlamaShape {
  std::int64_t hidden = 0;     // width of the residual stream
  std::int64_t layers = 0;     // transformer blocks
  std::int64_t heads = 0;      // query heads
  std::int64_t kv_heads = 0;   // key and value heads; query head h uses head h / (heads / kv_heads)
  std::int64_t head_size = 0;  // elements of a head; unset on the command line: hidden / heads
  std::int64_t intermediate = 0;  // width of the feed-forward
  std::int64_t vocab = 0;         // tokens
  bool tied = false;              // the head's matrix is the embedding's
  double rope_theta = 10000;
  double rms_eps = 1e-5;

  [[nodiscard]] std::int64_t query_width() const noexcept { return heads * head_size; }
  [[nodiscard]] std::int64_t kv_width() const noexcept { return kv_heads * head_size; }
  /// Elements of one transformer block.
  [[nodiscard]] std::int64_t block_parameter_count() const noexcept;
  /// Elements of the whole model; a tied matrix counts once.
  [[nodiscard]] std::int64_t parameter_count() const noexcept;
  friend bool operator==(const LlamaShape&, const LlamaShape&) = default;
};

/// Reads 'hidden=64,layers=2,heads=4,kv_heads=2,intermediate=128,vocab=256,tied=0' in any order;
/// head_size, rope_theta and rms_eps may be added. Throws std::invalid_argument that lists
/// everything wrong at once.
[[nodiscard]] LlamaShape parse_shape(std::string_view text);

/// Throws std::invalid_argument that lists everything that no Llama can have: sizes below 1, heads
/// that kv_heads does not divide, an odd head_size, an eps or theta out of its range.
void validate(const LlamaShape& shape);

/// The text that parse_shape reads, all keys written.
[[nodiscard]] std::string to_string(const LlamaShape& shape);

}  // namespace llama
