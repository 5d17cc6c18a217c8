#include "examples/llama/evaluation.hpp"

#include "engine/safetensors.hpp"
#include "examples/llama/failure.hpp"

#include <algorithm>
#include <vector>

namespace llama {

double held_out_loss(sifr::Engine& engine,
                     Llama& model,
                     const Samples& samples,
                     std::int64_t rows) {
  const sifr::Evaluation scope = engine.evaluate();
  const std::int64_t length = samples.sequence_length();
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(rows * (length + 1)));
  double sum = 0;  // of samples' mean losses
  for (std::int64_t round = 0; round < samples.count(); round += rows * engine.size()) {
    const std::int64_t first = round + rows * engine.rank();
    const std::int64_t own = std::clamp<std::int64_t>(samples.count() - first, 0, rows);
    // Leases are collective here: a rank that has no sample left computes one that does not count.
    const std::int64_t computed = std::max<std::int64_t>(own, 1);
    const auto used = std::span(tokens).first(static_cast<std::size_t>(computed * (length + 1)));
    on_all(engine.context(), "--eval-data", [&] {
      for (std::int64_t row = 0; row < computed; ++row) {
        const std::int64_t sample = own == 0 ? 0 : first + row;
        samples.read(sample,
                     used.subspan(static_cast<std::size_t>(row * (length + 1)),
                                  static_cast<std::size_t>(length + 1)));
      }
    });
    const TokenBatch batch{used, {computed, length}};
    sum += model.forward(engine, batch).sum * static_cast<double>(own);
  }
  return engine.context().sum(sum) / static_cast<double>(samples.count());
}

void write_logits(sifr::Engine& engine,
                  Llama& model,
                  const Samples& samples,
                  const std::filesystem::path& path) {
  const std::int64_t length = samples.sequence_length();
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(length) + 1);
  samples.read(0, tokens);
  std::vector<float> logits;
  {
    const sifr::Evaluation scope = engine.evaluate();
    logits = model.logits(engine, std::span(tokens).first(static_cast<std::size_t>(length)));
  }
  on_root(engine.context(), "--logits", [&] {
    const auto count = static_cast<std::int64_t>(logits.size());
    sifr::SafetensorsWriter writer(path,
                                   {{"logits", sifr::DType::kFloat32, {length, count / length}}});
    writer.write("logits",
                 0,
                 {reinterpret_cast<const std::byte*>(logits.data()), count, sifr::DType::kFloat32});
    writer.finish();
  });
}

}  // namespace llama
