// Any bytes are a config or a ConfigError; what was read is written as JSON that reads back the
// same. The first byte chooses whether the hints are given.

#include "config_schema/batch_plan.hpp"
#include "config_schema/config.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

sifr::Hints some_hints() {
  sifr::Hints hints;
  hints.micro_batch = 4;
  hints.accumulation = 2;
  hints.lr = 1e-3;
  hints.betas = {0.9, 0.95};
  hints.eps = 1e-8;
  hints.weight_decay = 0.1;
  hints.max_grad_norm = 1;
  hints.warmup_steps = 10;
  hints.total_steps = 100;
  hints.hidden_size = 4096;
  hints.precision = "bf16";
  return hints;
}

void read(std::string_view json, const sifr::Hints& hints) {
  const sifr::Config config = sifr::parse_config(json, "fuzz.json", hints);
  const std::string written = sifr::to_json(config);
  (void)sifr::describe(config);
  // No ConfigError may come from here: it would end the fuzzer as a crash.
  sifr::Config again;
  try {
    again = sifr::parse_config(written, "written.json");
  } catch (const sifr::ConfigError&) {
    std::abort();
  }
  if (sifr::to_json(again) != written) std::abort();
  (void)sifr::resolve_batch(config, 3);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view json(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    read(json, data[0] % 2 == 0 ? sifr::Hints{} : some_hints());
  } catch (const sifr::ConfigError& error) {
    if (error.problems().empty()) std::abort();
  }
  return 0;
}
