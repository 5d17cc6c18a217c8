#pragma once

#include "examples/llama/data.hpp"

#include <cstdint>
#include <span>

namespace llama {

enum class Order : std::uint8_t { kSequential, kShuffled };

struct SampleOptions {
  std::int64_t sequence_length = 0;  // T: predictions of a sample, which has T + 1 tokens
  std::int64_t stride = 0;           // tokens from one sample's start to the next one's
  Order order = Order::kSequential;
  std::uint64_t seed = 0;  // of the shuffled order
};

/// Who reads which sample: row `row` of micro-batch `micro_batch` of step `step` on `rank`. The
/// step's samples are the same ones however they are split over micro-batches and ranks.
struct SamplePlace {
  std::int64_t step = 0;
  std::int64_t micro_batch = 0;
  std::int64_t rank = 0;
  std::int64_t row = 0;
};
struct SampleSplit {
  std::int64_t accumulation = 1;
  std::int64_t ranks = 1;
  std::int64_t rows = 1;  // of one rank's micro-batch
};
[[nodiscard]] std::int64_t sample_index(const SamplePlace& place,
                                        const SampleSplit& split) noexcept;

/// Tokens of a micro-batch of `rows` samples. Throws sifr::UsageError beyond int32.
[[nodiscard]] std::int64_t token_count(std::int64_t rows, std::int64_t sequence_length);

/// A bijection of [0, count) that looks random, another one for each (seed, round): element
/// `index` of it. No table: six rounds of a Feistel network over the next even number of bits,
/// with Philox words as its round function, repeated until the value falls below count.
[[nodiscard]] std::int64_t shuffled_index(std::int64_t index,
                                          std::int64_t count,
                                          std::uint64_t seed,
                                          std::uint64_t round) noexcept;

/// The samples of a token file. Sample i is the tokens [i·stride, i·stride + T + 1). Endless: after
/// the last one the next round begins, with another order if shuffled. Thread-safe.
class Samples {
 public:
  /// Throws sifr::IoError if the file is too short for one sample. `file` outlives this.
  Samples(const TokenFile& file, const SampleOptions& options);
  /// Samples of one round.
  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  [[nodiscard]] std::int64_t sequence_length() const noexcept { return options_.sequence_length; }
  /// `tokens` takes sequence_length() + 1.
  void read(std::int64_t index, std::span<std::int32_t> tokens) const;

 private:
  const TokenFile* file_;
  SampleOptions options_;
  std::int64_t count_;
};

}  // namespace llama
