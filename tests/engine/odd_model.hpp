#pragma once

// A model of odd sizes whose gradients are a plain formula of its weights, so that a stale weight
// or a lost gradient changes what follows: prime counts, an empty and a frozen parameter, one
// parameter larger than a bucket, a tied unit with two gradient leases, a unit that rank 1 never
// uses, one used only in the second micro-batch.

#include "sifr.hpp"
#include "tests/support/reference_zero.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sifr::test {

struct OddParameter {
  std::string name;
  std::int64_t count = 0;
  bool trainable = true;
  bool decay = true;
  bool keep_fp32 = false;
  float lr_scale = 1;
};
struct OddUnit {
  std::string name;
  std::vector<OddParameter> parameters;
  int gradient_leases = 1;
};

/// Where a gradient is asked for.
struct OddPlace {
  int rank = 0;
  std::int64_t step = 0;
  std::int64_t micro = 0;
};

class OddModel : public Model {
 public:
  [[nodiscard]] static const std::vector<OddUnit>& units();
  [[nodiscard]] static float initial_value(int parameter, std::int64_t index);
  /// The gradient of one element, of use 0 or 1, given its weight.
  [[nodiscard]] static float gradient(
      float weight, int parameter, std::int64_t index, const OddPlace& place, int use);
  [[nodiscard]] static bool is_used(int unit, const OddPlace& place);

  void declare(Units& units) override;
  /// One micro-batch's leases, forward and backward.
  void run(Engine& engine, const OddPlace& place);
  [[nodiscard]] Unit unit(int index) const { return units_[static_cast<std::size_t>(index)]; }

  /// The plain reference with the same initial values, and the gradients of one step for it.
  [[nodiscard]] static ReferenceZero make_reference(const ReferenceOptions& options, bool is_bf16);
  [[nodiscard]] static ReferenceGradients reference_gradients(const ReferenceZero& reference,
                                                              int ranks,
                                                              std::int64_t step,
                                                              std::int64_t accumulation,
                                                              bool is_bf16);

 private:
  void backward_unit(Engine& engine, int unit, const OddPlace& place, int use);
  std::vector<Unit> units_;
};

}  // namespace sifr::test
