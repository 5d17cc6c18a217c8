#include "examples/llama/samples.hpp"

#include "device/philox.hpp"
#include "engine/io_error.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <limits>

namespace llama {
namespace {

constexpr std::uint32_t kFeistelRounds = 6;
constexpr std::uint32_t kShuffle = 0x53687566;  // what these random words are for

std::uint64_t low_bits(int bits) noexcept {
  return (std::uint64_t{1} << bits) - 1;
}

}  // namespace

std::int64_t sample_index(const SamplePlace& place, const SampleSplit& split) noexcept {
  const std::int64_t micro_batch = place.step * split.accumulation + place.micro_batch;
  return (micro_batch * split.ranks + place.rank) * split.rows + place.row;
}

std::int64_t token_count(std::int64_t rows, std::int64_t sequence_length) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (rows <= kMost / (sequence_length + 1)) return rows * (sequence_length + 1);
  throw sifr::UsageError(
      fmt::format("a micro-batch of {} samples of {} tokens has more than {} tokens: lower "
                  "train_micro_batch_size_per_gpu or --sequence-length",
                  rows,
                  sequence_length + 1,
                  kMost));
}

std::int64_t shuffled_index(std::int64_t index,
                            std::int64_t count,
                            std::uint64_t seed,
                            std::uint64_t round) noexcept {
  const auto limit = static_cast<std::uint64_t>(count);
  const int half_bits = (static_cast<int>(std::bit_width(limit - 1)) + 1) / 2;
  if (half_bits == 0) return 0;

  const std::array<std::uint32_t, 2> key = {static_cast<std::uint32_t>(seed),
                                            static_cast<std::uint32_t>(seed >> 32)};
  auto value = static_cast<std::uint64_t>(index);
  do {
    std::uint64_t left = value >> half_bits;
    std::uint64_t right = value & low_bits(half_bits);
    for (std::uint32_t pass = 0; pass < kFeistelRounds; ++pass) {
      const auto words = sifr::philox({static_cast<std::uint32_t>(right),
                                       kShuffle + pass,
                                       static_cast<std::uint32_t>(round),
                                       static_cast<std::uint32_t>(round >> 32)},
                                      key);
      const std::uint64_t mixed = left ^ (words[0] & low_bits(half_bits));
      left = right;
      right = mixed;
    }
    value = left << half_bits | right;
  } while (value >= limit);
  return static_cast<std::int64_t>(value);
}

Samples::Samples(const TokenFile& file, const SampleOptions& options)
    : file_(&file),
      options_(options),
      count_((file.count() - options.sequence_length - 1) / options.stride + 1) {
  if (file.count() < options.sequence_length + 1) {
    throw sifr::IoError(file.path(),
                        fmt::format("has {} tokens, too few for one sample of sequence length {}, "
                                    "which takes {}; give a longer file or a smaller "
                                    "--sequence-length",
                                    file.count(),
                                    options.sequence_length,
                                    options.sequence_length + 1));
  }
}

void Samples::read(std::int64_t index, std::span<std::int32_t> tokens) const {
  const std::int64_t round = index / count_;
  std::int64_t sample = index % count_;
  if (options_.order == Order::kShuffled)
    sample = shuffled_index(sample, count_, options_.seed, static_cast<std::uint64_t>(round));
  file_->read(sample * options_.stride, tokens);
}

}  // namespace llama
