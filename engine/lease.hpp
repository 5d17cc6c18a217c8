#pragma once

#include "../device/dtype.hpp"
#include "./model.hpp"

#include <cstdint>

namespace sifr {

struct ParameterLayout;

/// A scoped right to use a unit's memory. Move-only. The end of the scope hands the memory back; it
/// never throws and never waits for other ranks. A lease ends before its engine does. Parameters
/// are counted in the order in which their unit declares them.
class SIFR_API Lease {
 public:
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  Lease& operator=(Lease&&) = delete;
  /// Elements of a parameter, without padding.
  [[nodiscard]] std::int64_t count(int parameter) const;
  [[nodiscard]] DType dtype(int parameter) const;
  [[nodiscard]] Unit unit() const noexcept { return unit_; }

 protected:
  friend class detail::EngineState;
  Lease(detail::EngineState* engine, const Unit& unit) noexcept : engine_(engine), unit_(unit) {}
  Lease(Lease&& other) noexcept;
  ~Lease() = default;
  [[nodiscard]] const ParameterLayout& place(int parameter) const;
  detail::EngineState* engine_;  // null once moved from or ended
  Unit unit_;
};

/// A unit's whole weights, read only. Valid until the scope ends; then they may be freed.
class SIFR_API Weights : public Lease {
 public:
  Weights(Weights&&) noexcept = default;
  Weights& operator=(Weights&&) = delete;
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;
  ~Weights();
  /// Row-major elements; 512-byte aligned. T: float, sifr::bfloat16. UsageError if T is not the
  /// parameter's dtype.
  template <class T>
  [[nodiscard]] const T* data(int parameter) const& {
    return static_cast<const T*>(checked(parameter, kDTypeOf<T>));
  }
  [[nodiscard]] const void* raw(int parameter) const& {
    return checked(parameter, dtype(parameter));
  }
  /// Of a temporary, which ends before the pointer is used: give the lease a name.
  template <class T>
  const T* data(int parameter) const&& = delete;
  const void* raw(int parameter) const&& = delete;

 private:
  friend class detail::EngineState;
  using Lease::Lease;
  [[nodiscard]] const void* checked(int parameter, DType dtype) const;
};

/// A unit's gradient buffers, all zero at the micro-batch's first lease; add into them. They are
/// handed to the reduction when the unit's last gradients lease of the micro-batch ends.
class SIFR_API Gradients : public Lease {
 public:
  Gradients(Gradients&&) noexcept = default;
  Gradients& operator=(Gradients&&) = delete;
  Gradients(const Gradients&) = delete;
  Gradients& operator=(const Gradients&) = delete;
  /// Leaving the scope by an exception reduces nothing and fails the engine, as abandon() does.
  ~Gradients();
  /// Row-major elements; 512-byte aligned. UsageError for a frozen parameter, or if T is not the
  /// gradient's dtype.
  template <class T>
  [[nodiscard]] T* data(int parameter) const& {
    return static_cast<T*>(checked(parameter, kDTypeOf<T>));
  }
  /// Any element type, for code that dispatches at run time; see gradient_dtype.
  [[nodiscard]] void* raw(int parameter) const& {
    return checked(parameter, gradient_dtype(parameter));
  }
  /// As for Weights.
  template <class T>
  T* data(int parameter) const&& = delete;
  void* raw(int parameter) const&& = delete;
  [[nodiscard]] DType gradient_dtype(int parameter) const;
  /// False for frozen parameters.
  [[nodiscard]] bool has(int parameter) const;
  /// True at the micro-batch's first lease of the unit: the buffers are zero, so writing may
  /// replace adding.
  [[nodiscard]] bool is_first() const noexcept { return is_first_; }
  /// Gives this micro-batch's gradient up: the engine is failed, as by an exception. For code that
  /// reports errors otherwise.
  void abandon() noexcept;

 private:
  friend class detail::EngineState;
  Gradients(detail::EngineState* engine, const Unit& unit, bool is_first) noexcept;
  [[nodiscard]] void* checked(int parameter, DType dtype) const;
  bool is_first_;
  int exceptions_;  // std::uncaught_exceptions() at the start
};

}  // namespace sifr
