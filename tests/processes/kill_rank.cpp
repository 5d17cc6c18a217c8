// A rank that trains until it, another rank or the launcher is killed in a given phase.
//
//   kill_rank PHASE VICTIM DELAY_US MARK     VICTIM: a rank, or "launcher"; MARK: a file for the
//   time of the kill
//
// Once the victim is in the phase for DELAY_US, it writes the monotonic clock to MARK and kills.
// The others end by an error, print it, and leave with code 1.
#include "comm/launch_environment.hpp"
#include "tests/engine/odd_model.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <unistd.h>

namespace {

using sifr::test::OddModel;

// The phase that the training thread is in, for the thread that kills.
class Killer {
 public:
  Killer(std::string phase, bool is_victim, bool kills_launcher, int delay_us, std::string mark)
      : phase_(std::move(phase)),
        is_victim_(is_victim),
        kills_launcher_(kills_launcher),
        delay_us_(delay_us),
        mark_(std::move(mark)) {}

  void enter(const std::string& phase) {
    if (phase != phase_ || !is_victim_ || started_) return;
    started_ = true;
    std::thread([this] {
      std::this_thread::sleep_for(std::chrono::microseconds(delay_us_));
      const auto now = std::chrono::steady_clock::now().time_since_epoch();
      std::ofstream(mark_) << std::chrono::duration<double>(now).count() << std::endl;
      kill(kills_launcher_ ? getppid() : getpid(), SIGKILL);
    }).detach();
  }

 private:
  std::string phase_;
  bool is_victim_;
  bool kills_launcher_;
  int delay_us_;
  std::string mark_;
  bool started_ = false;
};

void train(Killer& killer) {
  killer.enter("rendezvous");
  auto context = sifr::Context::from_environment({.log = [](sifr::Level, std::string_view) {}});
  killer.enter("arenas");
  OddModel model;
  auto engine = sifr::Engine::initialize(model,
                                         sifr::parse_config(R"({"train_micro_batch_size_per_gpu": 1,
    "gradient_accumulation_steps": 2, "optimizer": {"type": "AdamW", "params": {"lr": 0.01}},
    "zero_optimization": {"stage": 3, "reduce_bucket_size": 1000, "stage3_max_live_parameters": 6000}})",
                                                            "kill"),
                                         {.context = &context});
  for (std::int64_t step = 0;; ++step) {
    for (std::int64_t micro = 0; micro < 2; ++micro) {
      if (step >= 3) killer.enter(micro == 0 ? "forward" : "reduce");
      model.run(engine, {context.rank(), step, micro});
      if (step >= 3 && micro == 1) killer.enter("update");
      engine.step();
    }
    if (step >= 3) killer.enter("export");
    engine.export_weights([](const sifr::WeightPiece&) {});
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const std::string victim = argv[2];
  const int rank = sifr::LaunchEnvironment::from_environment().rank;
  const bool is_launcher = victim == "launcher";
  Killer killer(argv[1],
                is_launcher ? rank == 0 : std::to_string(rank) == victim,
                is_launcher,
                std::atoi(argv[3]),
                argv[4]);
  try {
    train(killer);
  } catch (const sifr::Error& error) {
    std::printf("ended: %s\n", error.message());
    return 1;
  }
}
