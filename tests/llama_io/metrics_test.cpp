#include "examples/llama/metrics.hpp"

#include "engine/io_error.hpp"
#include "examples/llama/progress.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <limits>

using namespace llama;

namespace {

StepMetrics some_metrics() {
  StepMetrics metrics{.step = 7, .tokens = 100, .seconds = 0.3};
  metrics.report.outcome = sifr::Outcome::kUpdated;
  metrics.report.loss = 0.1 + 0.2;
  metrics.report.gradient_norm = std::numeric_limits<double>::denorm_min();
  metrics.report.lr = 1e-3;
  metrics.memory.rows[0][0] = {.now = 5, .peak = 6};
  metrics.memory.totals[0] = {.now = 5, .peak = 9};
  return metrics;
}

}  // namespace

TEST_CASE("numbers of a metrics line read back as the same bits", "[llama][metrics]") {
  const StepMetrics metrics = some_metrics();
  const auto json = nlohmann::json::parse(to_json(metrics));
  CHECK(json["step"] == 7);
  CHECK(json["loss"].get<double>() == metrics.report.loss);
  CHECK(json["gradient_norm"].get<double>() == metrics.report.gradient_norm);
  CHECK(json["lr"].get<double>() == metrics.report.lr);
  CHECK(json["tokens_per_second"].get<double>() == metrics.tokens_per_second());
  CHECK(json["updated"] == true);
  CHECK(json["memory"]["device"]["by_purpose"]["weights"] == 5);
  CHECK(json["memory"]["device"]["peak"] == 9);
  CHECK_FALSE(json.contains("weights_hash"));
}

TEST_CASE("what JSON cannot say is null, and a skipped step is no update", "[llama][metrics]") {
  StepMetrics metrics = some_metrics();
  metrics.report.loss = std::numeric_limits<double>::quiet_NaN();
  metrics.report.gradient_norm = -std::numeric_limits<double>::infinity();
  metrics.report.outcome = sifr::Outcome::kSkipped;
  metrics.weights_hash = "00ff";
  const auto json = nlohmann::json::parse(to_json(metrics));
  CHECK(json["loss"].is_null());
  CHECK(json["gradient_norm"].is_null());
  CHECK(json["updated"] == false);
  CHECK(json["weights_hash"] == "00ff");
}

TEST_CASE("a metrics file is made anew and complete after every line", "[llama][metrics]") {
  const TemporaryFolder folder;
  write_file(folder / "m", "an older run\n");
  MetricsFile file(folder / "m");
  CHECK(read_file(folder / "m").empty());
  file.write(some_metrics());
  CHECK(read_file(folder / "m") == to_json(some_metrics()) + "\n");
  CHECK_THROWS_AS(MetricsFile(folder / "none/m"), sifr::IoError);
  MetricsFile full("/dev/full");
  CHECK_THROWS_AS(full.write(some_metrics()), sifr::IoError);
}

TEST_CASE("durations are written for people", "[llama][metrics]") {
  CHECK(format_duration(0) == "0:00");
  CHECK(format_duration(59.6) == "1:00");
  CHECK(format_duration(3723) == "1:02:03");
  CHECK(format_duration(-1) == "0:00");
}

TEST_CASE("a progress line tells the speed since the line before", "[llama][metrics]") {
  using namespace std::chrono_literals;
  Progress progress(100);
  StepMetrics metrics = some_metrics();
  const auto line = [&](std::int64_t step, double seconds, std::chrono::milliseconds at) {
    metrics.step = step;
    metrics.seconds = seconds;
    return progress.line(metrics, Progress::Clock::time_point(at));
  };
  using Catch::Matchers::Contains;
  CHECK_THAT(line(0, 0.5, 10s), Contains("step 1/100") && Contains(" 200 tokens/s"));
  CHECK(line(1, 0.5, 11s).empty());
  CHECK_THAT(line(2, 1.5, 12s), Contains(" 100 tokens/s") && Contains("ETA 1:37"));
  CHECK_THAT(line(3, 4, 16s), Contains(" 25 tokens/s") && Contains("ETA 6:24"));
  CHECK_THAT(line(99, 1, 16s), Contains("step 100/100") && Contains("ETA 0:00"));
}
