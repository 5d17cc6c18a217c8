#pragma once

#include "../sifr_error.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sifr {

/// What the trainer knows and a config may leave to it: the values that "auto" stands for, by
/// Hugging Face's formulas. docs/config.md lists which key takes which hint.
///
/// A hint also fills a key that the file does not have, and must agree with one that it has: two
/// different values are a ConfigError. Hints that only size buffers (hidden_size) fill "auto"
/// alone.
struct Hints {
  std::optional<std::int64_t> micro_batch;     ///< samples per rank and micro-batch
  std::optional<std::int64_t> accumulation;    ///< micro-batches per step
  std::optional<double> lr;                    ///< peak learning rate
  std::optional<std::array<double, 2>> betas;  ///< Adam's decay rates
  std::optional<double> eps;                   ///< Adam's epsilon
  std::optional<double> weight_decay;          ///< per step, times lr
  std::optional<double> max_grad_norm;         ///< L2 norm of all gradients; 0: no clipping
  std::optional<std::int64_t> warmup_steps;    ///< steps of the learning rate's warm-up
  std::optional<std::int64_t> total_steps;     ///< steps of the whole training
  std::optional<std::int64_t> hidden_size;     ///< the model's width
  std::optional<std::string> precision;        ///< "fp32", "bf16" or "fp16"
};

/// Sets one hint from text such as "lr=3e-4", "betas=0.9,0.95" or "precision=bf16".
/// Throws UsageError for an unknown name (with the nearest one) or a value that does not fit.
SIFR_API void parse_hint(std::string_view assignment, Hints& hints);

}  // namespace sifr
