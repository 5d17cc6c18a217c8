#pragma once

#include "../device/dtype.hpp"
#include "../sifr_error.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

namespace sifr {

class Engine;
namespace detail {
class EngineState;
[[noreturn]] SIFR_API void throw_other_batch(const std::type_info& own,
                                             const std::type_info& asked);
}  // namespace detail

/// Writes elements [first, first + values.size()) of a parameter's initial value. Pure in the
/// index: any stretch may be asked for, on any rank, in any order, more than once. Empty: zeros.
using Fill = std::function<void(std::int64_t first, std::span<float> values)>;

struct Parameter {
  std::string name = {};
  std::vector<std::int64_t> shape = {};  // row-major; {} is one element, a 0 in it is none
  Fill fill = {};
  bool decay = true;           // weight decay applies
  bool trainable = true;       // false: frozen, weights and nothing else
  bool keep_fp32 = false;      // stored in fp32 though the model computes in 16 bits
  bool fp32_gradient = false;  // its wire too, unless communication_data_type says otherwise
  float lr_scale = 1;          // multiplies the learning rate
};

/// Parameters that are gathered, used and released together, usually one transformer block. A
/// value; it belongs to the engine whose declare made it, and is told from any other's, even once
/// that one has ended.
class Unit {
 public:
  Unit() = default;
  [[nodiscard]] int index() const noexcept { return index_; }

 private:
  friend class Units;
  friend class detail::EngineState;
  using Names = std::shared_ptr<const std::vector<std::string>>;
  Unit(Names names, int index) noexcept : names_(std::move(names)), index_(index) {}
  Names names_;  // of all units of its model; shared by these alone
  int index_ = -1;
};

/// Where a model declares its units, in the order in which its forward uses them.
class SIFR_API Units {
 public:
  /// Names are unique over the model. `gradient_leases`: how many gradients leases the unit sees in
  /// one micro-batch; its gradient is complete, and may be reduced, when that many have ended. 2
  /// for a tied embedding. Throws UsageError.
  Unit add(std::string name, std::vector<Parameter> parameters, int gradient_leases = 1);
  /// What weights are stored in unless a parameter keeps fp32.
  [[nodiscard]] DType compute_dtype() const noexcept { return compute_dtype_; }
  /// The configuration's "sifr": {"seed"}, for fills.
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }

  struct Declared {
    std::string name = {};
    std::vector<Parameter> parameters = {};
    int gradient_leases = 1;
  };
  [[nodiscard]] const std::vector<Declared>& declared() const noexcept { return declared_; }

 private:
  friend class detail::EngineState;
  Units(DType compute_dtype, std::uint64_t seed)
      : names_(std::make_shared<std::vector<std::string>>()),
        compute_dtype_(compute_dtype),
        seed_(seed) {}
  std::shared_ptr<std::vector<std::string>> names_;
  DType compute_dtype_;
  std::uint64_t seed_;
  std::vector<Declared> declared_;
};

/// A non-owning, type-checked view of the trainer's own batch; the batch must outlive forward and
/// backward.
class Batch {
 public:
  template <class T>
  Batch(const T& own) noexcept
      : own_(&own), type_(&typeid(T)) {}  // NOLINT(google-explicit-constructor)
  /// Throws UsageError if T is not the type it was made from.
  template <class T>
  [[nodiscard]] const T& as() const {
    if (*type_ != typeid(T)) detail::throw_other_batch(*type_, typeid(T));
    return *static_cast<const T*>(own_);
  }

 private:
  const void* own_;
  const std::type_info* type_;
};

/// A micro-batch's loss on one rank. The update divides the sum of all gradients by the sum of all
/// weights: mean losses with weight 1 give the mean over micro-batches and ranks; summed losses
/// with token counts give the mean over tokens.
struct Loss {
  double sum = 0;
  double weight = 1;
  Loss() = default;
  Loss(double sum_of_losses,
       double weight_of_sum = 1) noexcept  // NOLINT(google-explicit-constructor)
      : sum(sum_of_losses), weight(weight_of_sum) {}
};

/// What a trainer implements. Only `declare` is needed: forward and backward serve engine.forward()
/// and backward().
class SIFR_API Model {
 public:
  Model() = default;
  Model(const Model&) = default;
  Model& operator=(const Model&) = default;
  virtual ~Model() = default;
  /// Names, shapes and fills; no memory is taken yet. Called once, by Engine::initialize.
  virtual void declare(Units& units) = 0;
  virtual Loss forward(Engine& engine, const Batch& batch);
  /// `loss_gradient`: d(objective)/d(Loss::sum), to start the chain rule with.
  virtual void backward(Engine& engine, float loss_gradient);
};

}  // namespace sifr
