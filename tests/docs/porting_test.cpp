// What docs/porting.md shows beside the ported trainer.
#include <sifr.hpp>

#include <catch2/catch.hpp>

#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr int kCount = 300;

float as_float(float value) {
  return value;
}
float as_float(sifr::bfloat16 value) {
  return sifr::to_float(value);
}
void add(float& sum, float value) {
  sum += value;
}
void add(sifr::bfloat16& sum, float value) {
  sum = sifr::to_bfloat16(as_float(sum) + value);
}

template <class T>  // float or sifr::bfloat16; y = weight * x
void scale_backward(float* dx, T* dweight, const float* dy, const float* x, const T* weight) {
  for (int i = 0; i < kCount; ++i) {
    dx[i] += as_float(weight[i]) * dy[i];
    add(dweight[i], x[i] * dy[i]);
  }
}

struct Trainer final : sifr::Model {
  sifr::Unit unit;

  void declare(sifr::Units& units) override {
    std::uint64_t number = 0;  // of the parameter: each has a stream of its own
    const sifr::Fill fill = [seed = units.seed(), number](std::int64_t first,
                                                          std::span<float> values) {
      for (float& value : values)
        value = 0.02F * sifr::philox_normal(seed, number, static_cast<std::uint64_t>(first++));
    };
    unit = units.add("scale", {{.name = "scale.weight", .shape = {kCount}, .fill = fill}});
  }

  template <class T>
  std::vector<float> step(sifr::Engine& engine) const {
    const std::vector<float> ones(kCount, 1);
    std::vector<float> dx(kCount);
    {
      const auto weights = engine.weights(unit);
      const auto gradients = engine.gradients(unit);
      scale_backward(dx.data(), gradients.data<T>(0), ones.data(), ones.data(), weights.data<T>(0));
    }
    engine.step();
    return dx;
  }
};

using Saved = std::map<std::string, std::vector<float>>;

Saved save(sifr::Engine& engine) {
  std::map<std::string, std::vector<float>> saved;  // filled on rank 0 alone
  engine.export_weights([&saved](const sifr::WeightPiece& piece) {
    std::vector<float>& whole = saved[std::string(piece.name)];  // holds piece.first elements
    for (std::int64_t i = 0; i < piece.values.count; ++i) {
      whole.push_back(piece.values.dtype == sifr::DType::kFloat32
                          ? piece.values.as<float>()[i]
                          : sifr::to_float(piece.values.as<sifr::bfloat16>()[i]));
    }
  });
  return saved;
}

template <class T>
void check_training(const std::string& more) {
  const sifr::Config config = sifr::parse_config(
      R"({"train_micro_batch_size_per_gpu": 1, "optimizer": {"type": "AdamW"}, )" + more +
          R"("zero_optimization": {"stage": 3}})",
      "ds_config.json");
  std::mutex mutex;
  std::vector<float> before;
  Saved of_rank_one;
  std::vector<std::vector<float>> flows;
  const auto train = [&](sifr::Engine& engine, const Trainer& trainer) {
    Saved saved = save(engine);
    std::vector<float> flow = trainer.step<T>(engine);
    const std::scoped_lock lock(mutex);
    flows.push_back(std::move(flow));
    if (engine.rank() == 0) before = saved.at("scale.weight");
    if (engine.rank() == 1) of_rank_one = saved;
  };
  auto contexts = sifr::Context::threads(2);
  const auto run_rank = [&](std::size_t rank) {
    try {
      sifr::Context mine = std::move(contexts[rank]);  // its end tells the others that it left
      Trainer trainer;
      auto engine = sifr::Engine::initialize(trainer, config, {.context = &mine});
      train(engine, trainer);
    } catch (const sifr::Error& error) {
      std::fprintf(stderr, "rank %zu: %s\n", rank, error.message());
    }
  };
  {
    std::vector<std::jthread> ranks;
    for (std::size_t rank = 0; rank < contexts.size(); ++rank)
      ranks.emplace_back(run_rank, rank);
  }
  CHECK(flows.size() == 2);
  CHECK(of_rank_one.empty());
  for (const std::vector<float>& flow : flows)
    CHECK(flow == before);
  CHECK(before.at(7) == Approx(0.02F * sifr::philox_normal(1234, 0, 7)).epsilon(0.01));
}

TEST_CASE("the fragments of docs/porting.md train and save, in fp32 and bf16", "[docs]") {
  check_training<float>("");
  check_training<sifr::bfloat16>(R"("bf16": {"enabled": true}, )");
}

}  // namespace
