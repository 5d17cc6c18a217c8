#pragma once

// Covering designs: few runs in which every two values of different axes meet at least once. Two
// settings that only fail together are then found without running all combinations.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sifr::test {

struct Axis {
  std::string name;
  std::vector<std::string> values;
};

/// Two values that never meet in a run, such as stage 3 and reductions at the boundary.
struct Forbidden {
  std::string axis;
  std::string value;
  std::string other_axis;
  std::string other_value;
};

/// One value of each axis.
class Run {
 public:
  Run(const std::vector<Axis>& axes, std::vector<int> values);
  /// The value of the axis of that name. Throws std::out_of_range if there is none.
  [[nodiscard]] const std::string& operator[](std::string_view axis) const;
  /// "stage=3 overlap=on", for messages.
  [[nodiscard]] std::string text() const;
  /// The index of each axis's value.
  [[nodiscard]] const std::vector<int>& values() const noexcept { return values_; }

 private:
  const std::vector<Axis>* axes_;
  std::vector<int> values_;
};

/// The same runs on every machine. `axes` outlives the design.
class CoveringDesign {
 public:
  /// Throws std::invalid_argument for an unknown name, and if some value can meet no value of
  /// another axis.
  explicit CoveringDesign(const std::vector<Axis>& axes,
                          const std::vector<Forbidden>& forbidden = {});

  [[nodiscard]] const std::vector<Run>& runs() const noexcept { return runs_; }
  /// Pairs of values that may meet.
  [[nodiscard]] std::size_t pairs() const noexcept { return pairs_; }
  /// Those that do, counted from the runs.
  [[nodiscard]] std::size_t covered() const;
  /// "14 runs cover 120 of 120 pairs of 7 axes".
  [[nodiscard]] std::string text() const;

 private:
  const std::vector<Axis>* axes_;
  std::vector<Run> runs_;
  std::size_t pairs_ = 0;
};

}  // namespace sifr::test
