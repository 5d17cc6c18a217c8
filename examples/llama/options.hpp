#pragma once

#include "config_schema/hints.hpp"
#include "examples/llama/samples.hpp"
#include "examples/llama/shape.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace llama {

/// The command line. Empty paths: not given.
struct Options {
  std::filesystem::path config;
  std::optional<LlamaShape> shape;  // this or `model`
  std::filesystem::path model;
  std::filesystem::path data;  // may be empty where no step reads it
  std::int64_t steps = 0;      // boundaries
  std::int64_t sequence_length = 256;
  std::int64_t stride = 0;  // 0: sequence_length
  Order order = Order::kSequential;
  std::optional<std::uint64_t> seed;  // unset: the config's
  int threads_as_ranks = 0;           // 0: ranks are processes, told by the environment
  int threads = 1;
  std::optional<std::int64_t> memory_limit = {};  // bytes of a rank
  bool recompute = false;
  bool no_decay_norms = false;
  sifr::Hints hints;

  std::filesystem::path metrics;
  bool hash_weights = false;
  std::filesystem::path save;
  bool save_masters = false;
  std::int64_t save_every = 0;  // steps; 0: at the end only
  std::filesystem::path eval_data;
  std::int64_t eval_every = 0;  // steps; 0: at the end only
  std::optional<std::string> generate;
  std::vector<std::int32_t> generate_tokens;
  std::int64_t generate_count = 200;
  double temperature = 0;
  std::filesystem::path logits;
};

/// What became of the command line: options to run with, or an exit code (0 after --help, 2 after
/// a mistake, which was told on stderr).
struct ParsedOptions {
  std::optional<Options> options;
  int exit_code = 0;
};
[[nodiscard]] ParsedOptions parse_options(int argc, const char* const* argv);

}  // namespace llama
