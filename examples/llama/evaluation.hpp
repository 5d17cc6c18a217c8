#pragma once

#include "examples/llama/llama_model.hpp"
#include "examples/llama/samples.hpp"

#include <cstdint>
#include <filesystem>

namespace llama {

/// Collective, between steps: the mean loss over all tokens of all samples, in micro-batches of at
/// most `rows` samples that the ranks take in turn. Equal on every rank. Where a rank cannot read
/// its samples it throws sifr::IoError and the others PeerFailed.
[[nodiscard]] double held_out_loss(sifr::Engine& engine,
                                   Llama& model,
                                   const Samples& samples,
                                   std::int64_t rows);

/// Collective, between steps: the logits of sample 0, as the tensor "logits" [position][vocab] of a
/// safetensors file that rank 0 writes.
void write_logits(sifr::Engine& engine,
                  Llama& model,
                  const Samples& samples,
                  const std::filesystem::path& path);

}  // namespace llama
