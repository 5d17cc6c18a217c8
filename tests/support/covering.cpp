#include "tests/support/covering.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

namespace sifr::test {
namespace {

constexpr int kOpen = -1;  // an axis without a value yet

/// Axis and value index of both sides, the lower axis first.
using Pair = std::array<int, 4>;
using Pairs = std::set<Pair>;

Pair pair_of(int axis, int value, int other_axis, int other_value) {
  if (axis < other_axis) return {axis, value, other_axis, other_value};
  return {other_axis, other_value, axis, value};
}

int find_axis(const std::vector<Axis>& axes, std::string_view name) {
  const auto has_name = [&](const Axis& axis) { return axis.name == name; };
  const auto found = std::find_if(axes.begin(), axes.end(), has_name);
  if (found == axes.end()) throw std::invalid_argument("no axis " + std::string(name));
  return static_cast<int>(found - axes.begin());
}

int find_value(const Axis& axis, const std::string& value) {
  const auto found = std::find(axis.values.begin(), axis.values.end(), value);
  if (found == axis.values.end())
    throw std::invalid_argument("axis " + axis.name + " has no value " + value);
  return static_cast<int>(found - axis.values.begin());
}

/// Builds runs one by one, each from a pair that no run has yet.
class Builder {
 public:
  Builder(const std::vector<Axis>& axes, const std::vector<Forbidden>& forbidden) : axes_(axes) {
    for (const Forbidden& one : forbidden) {
      const int axis = find_axis(axes, one.axis);
      const int other = find_axis(axes, one.other_axis);
      forbidden_.insert(
          pair_of(axis,
                  find_value(axes[static_cast<std::size_t>(axis)], one.value),
                  other,
                  find_value(axes[static_cast<std::size_t>(other)], one.other_value)));
    }
    for (int a = 0; a < axis_count(); ++a) {
      for (int b = a + 1; b < axis_count(); ++b)
        open_pairs(a, b);
    }
  }

  [[nodiscard]] std::size_t open_count() const { return open_.size(); }

  std::optional<std::vector<int>> next_run() {
    if (open_.empty()) return {};
    const Pair pair = *open_.begin();
    std::vector<int> run(axes_.size(), kOpen);
    run[static_cast<std::size_t>(pair[0])] = pair[1];
    run[static_cast<std::size_t>(pair[2])] = pair[3];
    if (!complete(run)) {
      throw std::invalid_argument("no run can hold both " + value_text(pair[0], pair[1]) + " and " +
                                  value_text(pair[2], pair[3]));
    }
    for (int axis = 0; axis < axis_count(); ++axis) {
      for (int other = axis + 1; other < axis_count(); ++other) {
        open_.erase(pair_of(axis, at(run, axis), other, at(run, other)));
      }
    }
    return run;
  }

 private:
  [[nodiscard]] int axis_count() const { return static_cast<int>(axes_.size()); }
  [[nodiscard]] int value_count(int axis) const {
    return static_cast<int>(axes_[static_cast<std::size_t>(axis)].values.size());
  }
  static int at(const std::vector<int>& run, int axis) {
    return run[static_cast<std::size_t>(axis)];
  }
  [[nodiscard]] std::string value_text(int axis, int value) const {
    const Axis& named = axes_[static_cast<std::size_t>(axis)];
    return named.name + "=" + named.values[static_cast<std::size_t>(value)];
  }

  void open_pairs(int a, int b) {
    for (int i = 0; i < value_count(a); ++i) {
      for (int j = 0; j < value_count(b); ++j) {
        if (!forbidden_.contains(pair_of(a, i, b, j))) open_.insert(pair_of(a, i, b, j));
      }
    }
  }

  /// How many uncovered pairs the value makes with those already chosen; -1 if one is forbidden.
  [[nodiscard]] int gain(const std::vector<int>& run, int axis, int value) const {
    int count = 0;
    for (int other = 0; other < axis_count(); ++other) {
      if (other == axis || at(run, other) == kOpen) continue;
      const Pair pair = pair_of(axis, value, other, at(run, other));
      if (forbidden_.contains(pair)) return -1;
      if (open_.contains(pair)) ++count;
    }
    return count;
  }

  /// Chooses the open axes' values, the most useful first; goes back where a choice leaves none.
  bool complete(std::vector<int>& run) const {
    const auto open = std::find(run.begin(), run.end(), kOpen);
    if (open == run.end()) return true;
    const int axis = static_cast<int>(open - run.begin());
    std::vector<std::pair<int, int>> choices;  // (−gain, value): the first of equals wins
    for (int value = 0; value < value_count(axis); ++value) {
      if (const int useful = gain(run, axis, value); useful >= 0)
        choices.emplace_back(-useful, value);
    }
    std::sort(choices.begin(), choices.end());
    for (const auto& [useful, value] : choices) {
      run[static_cast<std::size_t>(axis)] = value;
      if (complete(run)) return true;
    }
    run[static_cast<std::size_t>(axis)] = kOpen;
    return false;
  }

  const std::vector<Axis>& axes_;
  Pairs forbidden_;
  Pairs open_;
};

}  // namespace

Run::Run(const std::vector<Axis>& axes, std::vector<int> values)
    : axes_(&axes), values_(std::move(values)) {}

const std::string& Run::operator[](std::string_view axis) const {
  const auto index = static_cast<std::size_t>(find_axis(*axes_, axis));
  return (*axes_)[index].values[static_cast<std::size_t>(values_[index])];
}

std::string Run::text() const {
  std::string text;
  for (const Axis& axis : *axes_)
    text += (text.empty() ? "" : " ") + axis.name + "=" + (*this)[axis.name];
  return text;
}

CoveringDesign::CoveringDesign(const std::vector<Axis>& axes,
                               const std::vector<Forbidden>& forbidden)
    : axes_(&axes) {
  Builder builder(axes, forbidden);
  pairs_ = builder.open_count();
  while (auto values = builder.next_run())
    runs_.emplace_back(axes, std::move(*values));
}

std::size_t CoveringDesign::covered() const {
  Pairs met;
  for (const Run& run : runs_) {
    const std::vector<int>& values = run.values();
    for (std::size_t a = 0; a < values.size(); ++a) {
      for (std::size_t b = a + 1; b < values.size(); ++b)
        met.insert({static_cast<int>(a), values[a], static_cast<int>(b), values[b]});
    }
  }
  return met.size();
}

std::string CoveringDesign::text() const {
  return std::to_string(runs_.size()) + " runs cover " + std::to_string(covered()) + " of " +
         std::to_string(pairs_) + " pairs of " + std::to_string(axes_->size()) + " axes";
}

}  // namespace sifr::test
