#include "examples/llama/metrics.hpp"

#include "engine/io_error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>

namespace llama {
namespace {

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.17g}", value) : "null";
}

std::string to_json(const sifr::MemoryTable& table, sifr::Tier tier) {
  std::string purposes;
  for (std::size_t i = 0; i < sifr::kPurposeCount; ++i) {
    const auto purpose = static_cast<sifr::Purpose>(i);
    purposes += fmt::format(
        "{}\"{}\":{}", i == 0 ? "" : ",", sifr::name_of(purpose), table.row(tier, purpose).now);
  }
  return fmt::format("{{\"now\":{},\"peak\":{},\"by_purpose\":{{{}}}}}",
                     table.total(tier).now,
                     table.total(tier).peak,
                     purposes);
}

}  // namespace

std::string to_json(const StepMetrics& metrics) {
  const sifr::StepReport& report = metrics.report;
  std::string line = fmt::format("{{\"step\":{},\"loss\":{},\"gradient_norm\":{},\"lr\":{}",
                                 metrics.step,
                                 number(report.loss),
                                 number(report.gradient_norm),
                                 number(report.lr));
  line += fmt::format(",\"loss_scale\":{},\"updated\":{},\"tokens\":{}",
                      number(report.loss_scale),
                      report.outcome == sifr::Outcome::kUpdated,
                      metrics.tokens);
  line += fmt::format(",\"tokens_per_second\":{},\"step_seconds\":{}",
                      number(metrics.tokens_per_second()),
                      number(metrics.seconds));
  line += fmt::format(",\"memory\":{{\"device\":{},\"host\":{}}}",
                      to_json(metrics.memory, sifr::Tier::kDevice),
                      to_json(metrics.memory, sifr::Tier::kHost));
  if (!metrics.weights_hash.empty())
    line += fmt::format(",\"weights_hash\":\"{}\"", metrics.weights_hash);
  return line + "}";
}

MetricsFile::MetricsFile(const std::filesystem::path& path)
    : path_(path), file_(path, std::ios::trunc) {
  if (!file_) throw sifr::IoError(path_, "cannot be created", errno);
}

void MetricsFile::write(const StepMetrics& metrics) {
  file_ << to_json(metrics) << '\n' << std::flush;
  if (!file_) throw sifr::IoError(path_, "cannot be written", errno);
}

}  // namespace llama
