// Prints a hash of a model's loss and gradients in both dtypes. Built twice, with the loops copied
// for every level of vectors and for the lowest level alone: the same text, or the copies compute
// different bits.
#include "tests/llama/plain_training.hpp"

#include <bit>
#include <cstdint>
#include <cstdio>
#include <random>

namespace {

using namespace llama;

const LlamaShape kShape = {.hidden = 96,
                           .layers = 2,
                           .heads = 6,
                           .kv_heads = 2,
                           .head_size = 16,
                           .intermediate = 200,
                           .vocab = 301,
                           .tied = true};
const Extent kExtent = {2, 77};

void add_to(std::uint64_t& hash, std::uint64_t value) {
  hash = (hash ^ value) * 1099511628211U;  // FNV-1a, a value at a time
}

std::uint64_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

template <class T>
void print(const char* name) {
  test::PlainTraining<T> training(kShape, kExtent, {});
  std::mt19937 random(5);
  for (std::size_t i = 0; i < training.model().parameters().size(); ++i) {
    std::vector<float> values(training.master(i).size());
    for (float& value : values)
      value = static_cast<float>(random() % 2001) / 2000.0F - 0.5F;
    training.set(i, values);
  }
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(kExtent.rows * (kExtent.length + 1)));
  for (std::int32_t& token : tokens)
    token = static_cast<std::int32_t>(random() % 301);
  std::uint64_t hash = 14695981039346656037U;
  add_to(hash, std::bit_cast<std::uint64_t>(training.run({tokens, kExtent})));
  for (std::size_t i = 0; i < training.model().parameters().size(); ++i) {
    for (const T gradient : training.model().gradients(i))
      add_to(hash, bits_of(widen(gradient)));
  }
  std::printf("%s %016llx\n", name, static_cast<unsigned long long>(hash));
}

}  // namespace

int main() {
  print<float>("fp32");
  print<sifr::bfloat16>("bf16");
}
