// A trainer as a user of the package writes it: one parameter of four elements is pulled to 1.
#include <sifr.hpp>

#include <cmath>
#include <cstdio>

namespace {

constexpr int kElements = 4;

struct Pull final : sifr::Model {
  void declare(sifr::Units& units) override {
    unit = units.add("pull", {{.name = "x", .shape = {kElements}}});
  }
  sifr::Loss forward(sifr::Engine& engine, const sifr::Batch& batch) override {
    const auto weights = engine.weights(unit);
    double loss = 0;
    for (int i = 0; i < kElements; ++i)
      loss += std::pow(weights.data<float>(0)[i] - batch.as<float>(), 2);
    return loss;
  }
  void backward(sifr::Engine& engine, float loss_gradient) override {
    const auto weights = engine.weights(unit);
    const auto gradients = engine.gradients(unit);
    for (int i = 0; i < kElements; ++i) {
      gradients.data<float>(0)[i] += loss_gradient * 2 * (weights.data<float>(0)[i] - 1);
    }
  }
  sifr::Unit unit;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  Pull model;
  auto engine = sifr::Engine::initialize(model, argv[1]);
  sifr::StepReport report;
  for (int step = 0; step < 50; ++step) {
    const float target = 1;
    engine.forward(target);
    engine.backward();
    report = engine.step();
  }
  std::printf("sifr %d: loss %g after %d updates\n",
              SIFR_VERSION,
              report.loss,
              static_cast<int>(report.updates));
  return report.updates == 50 && report.loss < 0.1 ? 0 : 1;
} catch (const sifr::Error& error) {
  std::fprintf(stderr, "%s\n", error.message());
  return 1;
}
