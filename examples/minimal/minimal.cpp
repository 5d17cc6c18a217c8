// The whole use of sifr in one file: a network of two layers learns y = sin(3x).
//
//   build/release/bin/minimal examples/minimal/ds_config.json
//   build/release/bin/sifr run -n 2 -- build/release/bin/minimal examples/minimal/ds_config.json
//
// With one rank it prints: step   0: loss 0.45338 … step 500: loss 0.00006
#include <sifr.hpp>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>

constexpr int kHidden = 32;
constexpr int kPoints = 16;

struct Points {
  std::array<float, kPoints> x, y;
};

// Values up to ±scale that follow from the index alone, so that any rank can fill any part.
sifr::Fill spread(float scale, float seed) {
  return [=](std::int64_t first, std::span<float> values) {
    for (float& value : values)
      value = scale * std::sin(seed * static_cast<float>(++first));
  };
}

class Network final : public sifr::Model {
 public:
  void declare(sifr::Units& units) override {
    hidden_ = units.add("hidden",
                        {{.name = "hidden.weight", .shape = {kHidden}, .fill = spread(3, 12.9F)},
                         {.name = "hidden.bias", .shape = {kHidden}, .fill = spread(2, 78.2F)}});
    output_ = units.add("output",
                        {{.name = "output.weight", .shape = {kHidden}, .fill = spread(0.2F, 37.7F)},
                         {.name = "output.bias", .shape = {1}}});
  }

  sifr::Loss forward(sifr::Engine& engine, const sifr::Batch& batch) override {
    points_ = batch.as<Points>();
    {
      const auto weights = engine.weights(hidden_);  // whole at every stage
      for (int p = 0; p < kPoints; ++p) {
        for (int h = 0; h < kHidden; ++h)
          active_[p][h] =
              std::tanh(weights.data<float>(0)[h] * points_.x[p] + weights.data<float>(1)[h]);
      }
    }  // from here on the memory may serve another layer
    const auto weights = engine.weights(output_);
    float loss = 0;
    for (int p = 0; p < kPoints; ++p) {
      error_[p] = weights.data<float>(1)[0] - points_.y[p];
      for (int h = 0; h < kHidden; ++h)
        error_[p] += weights.data<float>(0)[h] * active_[p][h];
      loss += error_[p] * error_[p] / kPoints;
    }
    return loss;
  }

  void backward(sifr::Engine& engine, float loss_gradient) override {
    std::array<std::array<float, kHidden>, kPoints> flow;
    {
      const auto weights = engine.weights(output_);
      const auto gradients = engine.gradients(output_);  // zeroed: add to them
      for (int p = 0; p < kPoints; ++p) {
        const float g = loss_gradient * 2 * error_[p] / kPoints;
        for (int h = 0; h < kHidden; ++h) {
          gradients.data<float>(0)[h] += g * active_[p][h];
          flow[p][h] = g * weights.data<float>(0)[h] * (1 - active_[p][h] * active_[p][h]);
        }
        gradients.data<float>(1)[0] += g;
      }
    }  // from here on the gradient travels to the ranks that own its parts
    const auto gradients = engine.gradients(hidden_);
    for (int p = 0; p < kPoints; ++p) {
      for (int h = 0; h < kHidden; ++h) {
        gradients.data<float>(0)[h] += flow[p][h] * points_.x[p];
        gradients.data<float>(1)[h] += flow[p][h];
      }
    }
  }

 private:
  sifr::Unit hidden_, output_;
  Points points_ = {};
  std::array<std::array<float, kHidden>, kPoints> active_ = {};
  std::array<float, kPoints> error_ = {};
};

int main(int argc, char** argv) try {
  if (argc != 2 || argv[1][0] == '-') {
    const bool is_help = argc == 2 && std::strcmp(argv[1], "--help") == 0;
    std::fputs("usage: minimal ds_config.json\n", is_help ? stdout : stderr);
    return is_help ? 0 : 2;
  }
  Network network;
  auto engine = sifr::Engine::initialize(network, argv[1]);
  std::mt19937 random(static_cast<unsigned>(engine.rank()));  // each rank has its own points
  for (int step = 0; step <= 500; ++step) {
    Points points;
    for (int p = 0; p < kPoints; ++p) {
      points.x[p] = std::uniform_real_distribution<float>(-1, 1)(random);
      points.y[p] = std::sin(3 * points.x[p]);
    }
    engine.forward(points);
    engine.backward();
    const sifr::StepReport report = engine.step();
    if (engine.rank() == 0 && step % 100 == 0)
      std::printf("step %3d: loss %.5f\n", step, report.loss);
  }
} catch (const sifr::Error& error) {
  std::fprintf(stderr, "%s\n", error.message());
  return 1;
}
