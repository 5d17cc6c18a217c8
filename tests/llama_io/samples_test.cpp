#include "examples/llama/samples.hpp"

#include "engine/io_error.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>
#include <vector>

using namespace llama;
using Catch::Matchers::Contains;

namespace {

std::vector<std::int64_t> permutation(std::int64_t count, std::uint64_t seed, std::uint64_t round) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(shuffled_index(i, count, seed, round));
  return values;
}

std::string alphabet() {
  std::string text(26, 'a');
  std::iota(text.begin(), text.end(), 'a');
  return text;
}

std::string text_of(const Samples& samples, std::int64_t index) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(samples.sequence_length()) + 1);
  samples.read(index, tokens);
  return {tokens.begin(), tokens.end()};
}

}  // namespace

TEST_CASE("a micro-batch has no more tokens than int32 counts", "[llama][data]") {
  CHECK(token_count(4, 256) == 4 * 257);
  CHECK(token_count(1, 2147483646) == 2147483647);
  CHECK_THROWS_WITH(token_count(2000000000, 256),
                    Contains("2000000000 samples of 257 tokens") &&
                        Contains("train_micro_batch_size_per_gpu or --sequence-length"));
  CHECK_THROWS_AS(token_count(1, 2147483647), sifr::UsageError);
}

TEST_CASE("a shuffle is a permutation at every size", "[llama][data]") {
  for (const std::int64_t count : {1, 2, 3, 4, 5, 7, 16, 17, 64, 65, 1000, 4097}) {
    const auto values = permutation(count, 42, 3);
    const std::set<std::int64_t> distinct(values.begin(), values.end());
    CHECK(distinct.size() == static_cast<std::size_t>(count));
    CHECK(*distinct.begin() == 0);
    CHECK(*distinct.rbegin() == count - 1);
  }
}

TEST_CASE("a shuffle differs by seed and round, and repeats for equal ones", "[llama][data]") {
  const auto values = permutation(1000, 1, 0);
  CHECK(values == permutation(1000, 1, 0));
  CHECK(values != permutation(1000, 2, 0));
  CHECK(values != permutation(1000, 1, 1));
  CHECK(values != permutation(1000, 1 | std::uint64_t{1} << 40, 0));
  CHECK(values != permutation(1000, 1, std::uint64_t{1} << 40));
}

TEST_CASE("a shuffle spreads elements evenly over places", "[llama][data]") {
  // Where element 0 of 10 goes in 5000 rounds: 500 times to each place, with deviation 21.
  std::vector<int> times(10);
  for (std::uint64_t round = 0; round < 5000; ++round)
    ++times[static_cast<std::size_t>(shuffled_index(0, 10, 9, round))];
  for (const int count : times)
    CHECK(std::abs(count - 500) < 110);
}

TEST_CASE("samples start a stride apart and begin again after the last", "[llama][data]") {
  const TemporaryFolder folder;
  write_file(folder / "x.txt", alphabet());
  const TokenFile file(folder / "x.txt", 256);
  const Samples apart(file, {.sequence_length = 4, .stride = 4});
  CHECK(apart.count() == 6);  // (26 - 5) / 4 + 1
  CHECK(text_of(apart, 0) == "abcde");
  CHECK(text_of(apart, 5) == "uvwxy");
  CHECK(text_of(apart, 6) == "abcde");
  const Samples overlapping(file, {.sequence_length = 23, .stride = 1});
  CHECK(overlapping.count() == 3);
  CHECK(text_of(overlapping, 2) == alphabet().substr(2));
  CHECK(Samples(file, {.sequence_length = 25, .stride = 25}).count() == 1);
  CHECK_THROWS_WITH(Samples(file, {.sequence_length = 26, .stride = 26}),
                    Contains("26 tokens") && Contains("takes 27") && Contains("--sequence-length"));
}

TEST_CASE("every round of a shuffled order reads every sample once", "[llama][data]") {
  const TemporaryFolder folder;
  write_file(folder / "x.txt", alphabet());
  const TokenFile file(folder / "x.txt", 256);
  const Samples samples(file,
                        {.sequence_length = 1, .stride = 1, .order = Order::kShuffled, .seed = 5});
  std::vector<std::vector<std::string>> rounds(3);
  for (std::int64_t i = 0; i < 75; ++i)
    rounds[static_cast<std::size_t>(i / 25)].push_back(text_of(samples, i));
  CHECK(rounds[0] != rounds[1]);
  CHECK(rounds[1] != rounds[2]);
  for (auto& round : rounds) {
    std::sort(round.begin(), round.end());
    CHECK(round.front() == "ab");
    CHECK(std::unique(round.begin(), round.end()) == round.end());
  }
}

TEST_CASE("a step reads the same samples however it is split", "[llama][data]") {
  const auto samples_of_step = [](std::int64_t step, const SampleSplit& split) {
    std::vector<std::int64_t> indices;
    for (std::int64_t a = 0; a < split.accumulation; ++a)
      for (std::int64_t r = 0; r < split.ranks; ++r)
        for (std::int64_t b = 0; b < split.rows; ++b)
          indices.push_back(sample_index({step, a, r, b}, split));
    return indices;
  };
  const auto whole = samples_of_step(2, {.accumulation = 1, .ranks = 1, .rows = 12});
  CHECK(whole.front() == 24);
  CHECK(whole == samples_of_step(2, {.accumulation = 3, .ranks = 2, .rows = 2}));
  CHECK(whole == samples_of_step(2, {.accumulation = 1, .ranks = 4, .rows = 3}));
}
