#pragma once

#include "engine/engine.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace llama {

/// What one step was, for people and for programs.
struct StepMetrics {
  std::int64_t step = 0;  // from 0
  sifr::StepReport report = {};
  std::int64_t tokens = 0;  // of the step, all ranks
  double seconds = 0;
  sifr::MemoryTable memory = {};  // of this rank
  std::string weights_hash = {};  // empty: not asked for

  [[nodiscard]] double tokens_per_second() const noexcept {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  }
};

/// The line of JSON, without line end. Numbers read back as the same bits; those that are not
/// finite, which JSON cannot say, are null.
[[nodiscard]] std::string to_json(const StepMetrics& metrics);

/// A file of such lines, made anew. Throws sifr::IoError.
class MetricsFile {
 public:
  explicit MetricsFile(const std::filesystem::path& path);
  /// The line is in the file when this returns.
  void write(const StepMetrics& metrics);

 private:
  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace llama
