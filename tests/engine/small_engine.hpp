#pragma once

// A small model and its engine, for tests of the engine's rules: units of one parameter each, whose
// gradient is whatever the test says.

#include "sifr.hpp"
#include "tests/support/run_ranks.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sifr::test {

struct SmallConfig {
  int stage = 0;
  bool overlap = false;
  bool is_bf16 = false;
  std::int64_t accumulation = 1;
  double clip = 0;
  /// Further keys of the objects named; each with its comma behind it.
  std::string top = {};
  std::string zero = {};
  std::string sifr = {};
  /// Almost plain gradient descent with lr 1: the step is lr·g/(|g| + eps).
  std::string optimizer =
      R"({"type": "AdamW", "params": {"lr": 1e6, "betas": [0, 0], "eps": 1e6, "weight_decay": 0}})";
};
[[nodiscard]] Config make_config(const SmallConfig& small);

struct SmallUnit {
  std::string name;
  std::int64_t count = 300;
  int gradient_leases = 1;
  bool trainable = true;
};

class SmallModel : public Model {
 public:
  explicit SmallModel(std::vector<SmallUnit> units = {{"a"}, {"b"}, {"c"}});
  void declare(Units& units) override;
  [[nodiscard]] Unit unit(int index) const { return units_.at(static_cast<std::size_t>(index)); }
  [[nodiscard]] Unit unit(const std::string& name) const;

  [[nodiscard]] static float initial_value(std::int64_t index) {
    return 1 + 0.001F * static_cast<float>(index);
  }
  /// Leases and releases every unit's weights in the order of declaration.
  void read(Engine& engine) const;
  /// Leases a unit's weights and gradients and adds `gradient` to every element.
  void add(Engine& engine, const std::string& unit, float gradient) const;
  /// `read`, then `add` for every trainable unit, last first.
  void run(Engine& engine, float gradient) const;

 private:
  std::vector<SmallUnit> declared_;
  std::vector<Unit> units_;
};

/// Contexts of a group of threads that say nothing.
[[nodiscard]] std::vector<Context> quiet_contexts(int ranks, const Limits& limits = {});

/// One parameter of an engine of one rank, or on rank 0 of a group: its fp32 masters.
[[nodiscard]] std::vector<float> masters(Engine& engine, const std::string& parameter);

/// "CommError: text", by the exception's type; without the expression that a check ends with.
[[nodiscard]] std::string describe(const std::exception_ptr& error);

/// What an action throws, described; empty: nothing.
[[nodiscard]] std::string error_of(const std::function<void()>& action);

/// Runs `body` for each rank of a new group of threads, on its own model and engine. Each rank
/// leaves the group when its body ends, however it ends. What the bodies threw, described, by rank.
using RankBody = std::function<void(Engine& engine, SmallModel& model)>;
[[nodiscard]] std::vector<std::string> errors_of_ranks(int ranks,
                                                       const SmallConfig& config,
                                                       const RankBody& body,
                                                       const SmallModel& model = SmallModel());

/// The same for a body that must not throw; returns what it returned on rank 0.
[[nodiscard]] std::string on_ranks(
    int ranks,
    const SmallConfig& config,
    const std::function<std::string(Engine& engine, SmallModel& model)>& body,
    const SmallModel& model = SmallModel());

}  // namespace sifr::test
