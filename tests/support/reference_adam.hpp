#pragma once

#include <cmath>

namespace sifr::test {

/// One element of Adam as Kingma and Ba (2014) write it, AdamW as Loshchilov and Hutter (2017):
/// fp32, one operation after another. Shares nothing with the library.
struct ReferenceAdam {
  float factor, beta1, one_minus_beta1, beta2, one_minus_beta2, step_size, root_correction, eps,
      decay, l2;

  void update(float sum, float& w, float& m, float& v) const {
    float g = sum * factor;
    if (l2 == 0) {
      w = w * decay;
    } else {
      const float penalty = l2 * w;
      g = g + penalty;
    }
    const float old_m = beta1 * m;
    const float new_m = one_minus_beta1 * g;
    m = old_m + new_m;
    const float old_v = beta2 * v;
    const float scaled = one_minus_beta2 * g;
    const float new_v = scaled * g;
    v = old_v + new_v;
    const float root = std::sqrt(v) / root_correction;
    const float direction = m / (root + eps);
    const float change = step_size * direction;
    w = w - change;
  }
};

}  // namespace sifr::test
