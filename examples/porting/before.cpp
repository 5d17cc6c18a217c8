// A trainer as one writes it by hand for one device. after.cpp is the same on sifr; docs/porting.md
// tells the way.
#include "./language.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

struct Layer {
  float* weight;  // [kChannels][kChannels]
  float* bias;    // [kChannels]
};

// The embedding serves twice: it makes the first layer's input and, transposed, the logits.
struct Tensors {
  std::vector<float> memory;
  float* embedding;  // [kVocabulary][kChannels]
  Layer layers[kLayers];

  Tensors() : memory(kVocabulary * kChannels + kLayers * (kChannels * kChannels + kChannels)) {
    embedding = memory.data();
    float* next = embedding + row_of(kVocabulary);
    for (Layer& layer : layers) {
      layer = {next, next + row_of(kChannels)};
      next += row_of(kChannels) + kChannels;
    }
  }
};

struct Trainer {
  Tensors weights, gradients, m, v;
  Rows rows[kLayers + 1];           // the input of each layer, and the last one's output
  Rows active[kLayers];             // after tanh
  Rows row_gradients[kLayers + 1];  // of `rows`
  std::array<std::array<float, kVocabulary>, kTokens> probability;

  Trainer() {
    for (int i = 0; i < kVocabulary * kChannels; ++i)
      weights.embedding[i] = initial_value(i);
    for (Layer& layer : weights.layers) {
      for (int i = 0; i < kChannels * kChannels; ++i)
        layer.weight[i] = initial_value(i);
    }
  }

  float forward(int first) {
    for (int t = 0; t < kTokens; ++t) {
      const float* row = weights.embedding + row_of(token_at(first + t));
      std::memcpy(rows[0][t].data(), row, sizeof(rows[0][t]));
    }
    for (int l = 0; l < kLayers; ++l) {
      layer_forward(
          rows[l + 1], active[l], rows[l], weights.layers[l].weight, weights.layers[l].bias);
    }
    return head_forward(probability, rows[kLayers], weights.embedding, first);
  }

  void zero_gradients() {
    std::fill(gradients.memory.begin(), gradients.memory.end(), 0.0F);
    std::memset(row_gradients, 0, sizeof(row_gradients));
  }

  void backward(int first) {
    head_backward(row_gradients[kLayers],
                  gradients.embedding,
                  probability,
                  rows[kLayers],
                  weights.embedding,
                  first,
                  1);
    for (int l = kLayers - 1; l >= 0; --l) {
      layer_backward(row_gradients[l],
                     gradients.layers[l].weight,
                     gradients.layers[l].bias,
                     row_gradients[l + 1],
                     active[l],
                     rows[l],
                     weights.layers[l].weight);
    }
    for (int t = 0; t < kTokens; ++t) {
      float* row = gradients.embedding + row_of(token_at(first + t));
      for (int c = 0; c < kChannels; ++c)
        row[c] += row_gradients[0][t][c];
    }
  }

  void update(int k) {  // AdamW
    const double lr = 0.01, beta1 = 0.9, beta2 = 0.999;
    const auto a = static_cast<float>(lr / (1 - std::pow(beta1, k)));
    const auto q = static_cast<float>(std::sqrt(1 - std::pow(beta2, k)));
    for (std::size_t i = 0; i < weights.memory.size(); ++i) {
      const float g = gradients.memory[i];
      float& m1 = m.memory[i];
      float& v1 = v.memory[i];
      m1 = static_cast<float>(beta1) * m1 + static_cast<float>(1 - beta1) * g;
      v1 = static_cast<float>(beta2) * v1 + static_cast<float>(1 - beta2) * g * g;
      weights.memory[i] -= a * (m1 / (std::sqrt(v1) / q + 1e-8F));
    }
  }
};

int main(int argc, char** argv) {
  if (argc > 1) {
    const bool is_help = argc == 2 && std::strcmp(argv[1], "--help") == 0;
    std::fputs("usage: porting_before, without arguments\n", is_help ? stdout : stderr);
    return is_help ? 0 : 2;
  }
  Trainer trainer;
  for (int step = 0; step < 60; ++step) {
    const int first = step * kTokens;
    const float loss = trainer.forward(first);
    trainer.zero_gradients();
    trainer.backward(first);
    trainer.update(step + 1);
    if (step % 10 == 9) {
      std::printf("step %d: loss %.9g, held out %.9g\n",
                  step,
                  static_cast<double>(loss),
                  static_cast<double>(trainer.forward(7)));
    }
  }
}
