// A rank of a training of the odd model, as a process: engine_rank STAGE. It ends with an error
// where its account is not the plan, or where the engine's calls allocate from the third step on.
#include "tests/engine/odd_plan.hpp"
#include "tests/support/count_allocations.hpp"

#include <exception>
#include <iostream>
#include <string>

namespace {

using namespace sifr;
using namespace sifr::test;

void train(const std::string& stage) {
  const Config config =
      parse_config(R"({"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 2,
        "optimizer": {"type": "AdamW", "params": {"lr": 0.01}}, "gradient_clipping": 0.3,
        "bf16": {"enabled": true}, "zero_optimization": {"stage": )" +
                       stage + R"(, "overlap_comm": true, "stage3_max_live_parameters": 6000}})",
                   "engine_rank");
  auto context = Context::from_environment({.log = [](Level, std::string_view) {}});
  OddModel model;
  auto engine = Engine::initialize(model, config, {.context = &context});
  const MemoryPlan plan = plan_of_odd_model(config, context.size());
  check_account_is_plan(engine.memory(), plan);
  Allocations before;
  for (std::int64_t step = 0; step < 6; ++step) {
    if (step == 2) before = allocations_so_far();
    for (std::int64_t micro = 0; micro < 2; ++micro) {
      model.run(engine, {context.rank(), step, micro});
      engine.step();
    }
  }
  const Allocations made = allocations_so_far() - before;
  check_account_is_plan(engine.memory(), plan);
  if (can_count_allocations()) std::cout << "from the third step on: " << made << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  try {
    train(argc > 1 ? argv[1] : "0");
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
