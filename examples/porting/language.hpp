#pragma once

// What both trainers share: sizes, text, initial values, and the arithmetic of one layer.
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>

constexpr int kVocabulary = 128;  // bytes of ASCII
constexpr int kChannels = 32;
constexpr int kLayers = 2;
constexpr int kTokens = 64;  // of one micro-batch

using Rows = std::array<std::array<float, kChannels>, kTokens>;

inline constexpr std::string_view kText =
    "In the beginning God created the heaven and the earth. And the earth was without form, and "
    "void; "
    "and darkness was upon the face of the deep. And the Spirit of God moved upon the face of the "
    "waters. ";

/// Where a token's row begins in the embedding.
inline std::ptrdiff_t row_of(int token) {
  return std::ptrdiff_t{token} * kChannels;
}

inline int token_at(int index) {
  return kText[static_cast<std::size_t>(index) % kText.size()];
}

/// The initial value of an element follows from its index alone.
inline float initial_value(long index) {
  return 0.1F * std::sin(12.9898F * static_cast<float>(index + 1));
}

/// out = in + tanh(in · weight + bias)
inline void layer_forward(
    Rows& out, Rows& active, const Rows& in, const float* weight, const float* bias) {
  for (int t = 0; t < kTokens; ++t) {
    for (int c = 0; c < kChannels; ++c) {
      float sum = bias[c];
      for (int k = 0; k < kChannels; ++k)
        sum += in[t][k] * weight[k * kChannels + c];
      active[t][c] = std::tanh(sum);
      out[t][c] = in[t][c] + active[t][c];
    }
  }
}

/// Adds to every gradient.
inline void layer_backward(Rows& in_gradient,
                           float* weight_gradient,
                           float* bias_gradient,
                           const Rows& out_gradient,
                           const Rows& active,
                           const Rows& in,
                           const float* weight) {
  for (int t = 0; t < kTokens; ++t) {
    for (int c = 0; c < kChannels; ++c) {
      in_gradient[t][c] += out_gradient[t][c];
      const float g = out_gradient[t][c] * (1 - active[t][c] * active[t][c]);
      bias_gradient[c] += g;
      for (int k = 0; k < kChannels; ++k) {
        weight_gradient[k * kChannels + c] += in[t][k] * g;
        in_gradient[t][k] += weight[k * kChannels + c] * g;
      }
    }
  }
}

/// The mean cross-entropy of predicting token t + 1; leaves the probabilities.
inline float head_forward(std::array<std::array<float, kVocabulary>, kTokens>& probability,
                          const Rows& in,
                          const float* embedding,
                          int first) {
  float loss = 0;
  for (int t = 0; t < kTokens; ++t) {
    float total = 0;
    for (int v = 0; v < kVocabulary; ++v) {
      float logit = 0;
      for (int c = 0; c < kChannels; ++c)
        logit += in[t][c] * embedding[v * kChannels + c];
      probability[t][v] = std::exp(logit);
      total += probability[t][v];
    }
    for (float& p : probability[t])
      p /= total;
    loss -= std::log(probability[t][token_at(first + t + 1)]) / kTokens;
  }
  return loss;
}

/// Adds to every gradient.
inline void head_backward(Rows& in_gradient,
                          float* embedding_gradient,
                          const std::array<std::array<float, kVocabulary>, kTokens>& probability,
                          const Rows& in,
                          const float* embedding,
                          int first,
                          float loss_gradient) {
  for (int t = 0; t < kTokens; ++t) {
    for (int v = 0; v < kVocabulary; ++v) {
      const float is_next = v == token_at(first + t + 1) ? 1 : 0;
      const float g = (probability[t][v] - is_next) * loss_gradient / kTokens;
      for (int c = 0; c < kChannels; ++c) {
        embedding_gradient[v * kChannels + c] += g * in[t][c];
        in_gradient[t][c] += g * embedding[v * kChannels + c];
      }
    }
  }
}
