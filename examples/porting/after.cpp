// before.cpp on sifr: the layers and their order are the same, the memory of weights and gradients
// is the engine's.
#include "./language.hpp"
#include <sifr.hpp>

#include <cstdio>
#include <cstring>

struct Trainer final : sifr::Model {
  sifr::Unit embedding;
  sifr::Unit layers[kLayers];
  Rows rows[kLayers + 1];           // the input of each layer, and the last one's output
  Rows active[kLayers];             // after tanh
  Rows row_gradients[kLayers + 1];  // of `rows`
  std::array<std::array<float, kVocabulary>, kTokens> probability;

  void declare(sifr::Units& units) override {
    const sifr::Fill fill = [](std::int64_t first, std::span<float> values) {
      for (float& value : values)
        value = initial_value(first++);
    };
    const std::int64_t vocabulary = kVocabulary, channels = kChannels;
    embedding =
        units.add("embedding",
                  {{.name = "embedding.weight", .shape = {vocabulary, channels}, .fill = fill}},
                  2);
    for (int l = 0; l < kLayers; ++l) {
      const std::string name = "layers." + std::to_string(l);
      layers[l] =
          units.add(name,
                    {{.name = name + ".weight", .shape = {channels, channels}, .fill = fill},
                     {.name = name + ".bias", .shape = {channels}}});
    }
  }

  sifr::Loss forward(sifr::Engine& engine, const sifr::Batch& batch) override {
    const int first = batch.as<int>();
    {
      const auto weights = engine.weights(embedding);
      for (int t = 0; t < kTokens; ++t) {
        const float* row = weights.data<float>(0) + row_of(token_at(first + t));
        std::memcpy(rows[0][t].data(), row, sizeof(rows[0][t]));
      }
    }
    for (int l = 0; l < kLayers; ++l) {
      const auto weights = engine.weights(layers[l]);
      layer_forward(
          rows[l + 1], active[l], rows[l], weights.data<float>(0), weights.data<float>(1));
    }
    const auto weights = engine.weights(embedding);
    return head_forward(probability, rows[kLayers], weights.data<float>(0), first);
  }

  void backward_from(sifr::Engine& engine, int first, float loss_gradient) {
    std::memset(row_gradients, 0, sizeof(row_gradients));
    {
      const auto weights = engine.weights(embedding);
      const auto gradients = engine.gradients(embedding);
      head_backward(row_gradients[kLayers],
                    gradients.data<float>(0),
                    probability,
                    rows[kLayers],
                    weights.data<float>(0),
                    first,
                    loss_gradient);
    }
    for (int l = kLayers - 1; l >= 0; --l) {
      const auto weights = engine.weights(layers[l]);
      const auto gradients = engine.gradients(layers[l]);
      layer_backward(row_gradients[l],
                     gradients.data<float>(0),
                     gradients.data<float>(1),
                     row_gradients[l + 1],
                     active[l],
                     rows[l],
                     weights.data<float>(0));
    }
    const auto gradients = engine.gradients(embedding);
    for (int t = 0; t < kTokens; ++t) {
      float* row = gradients.data<float>(0) + row_of(token_at(first + t));
      for (int c = 0; c < kChannels; ++c)
        row[c] += row_gradients[0][t][c];
    }
  }
};

int main(int argc, char** argv) try {
  if (argc != 2 || argv[1][0] == '-') {
    const bool is_help = argc == 2 && std::strcmp(argv[1], "--help") == 0;
    std::fputs("usage: porting_after ds_config.json\n", is_help ? stdout : stderr);
    return is_help ? 0 : 2;
  }
  Trainer trainer;
  auto engine = sifr::Engine::initialize(trainer, argv[1]);
  for (int step = 0; step < 60; ++step) {
    const int first = (step * engine.size() + engine.rank()) * kTokens;
    engine.forward(first);
    trainer.backward_from(engine, first, engine.loss_gradient());
    const sifr::StepReport report = engine.step();
    if (step % 10 == 9) {
      const auto evaluation = engine.evaluate();
      const sifr::Loss held_out = trainer.forward(engine, 7);
      if (engine.rank() == 0)
        std::printf("step %d: loss %.9g, held out %.9g\n", step, report.loss, held_out.sum);
    }
  }
} catch (const sifr::Error& error) {
  std::fprintf(stderr, "%s\n", error.message());
  return 1;
}
