#include "tests/matrix/same_bits.hpp"

#include "device/device.hpp"
#include "device/kernels.hpp"
#include "tests/engine/odd_model.hpp"
#include "tests/matrix/carry_out.hpp"
#include "tests/support/covering.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <sched.h>
#include <vector>

namespace sifr::test {
namespace {

/// The figures mean something: the training moves, stays finite, is clipped in some steps only.
void check_sanity(const Figures& figures, const std::string& text) {
  INFO(text << "\n" << to_text(figures));
  CHECK(figures.start != figures.end);
  const auto is_finite = [](double value) { return std::isfinite(value); };
  CHECK(std::all_of(figures.losses.begin(), figures.losses.end(), is_finite));
  CHECK(std::all_of(figures.gradient_norms.begin(), figures.gradient_norms.end(), is_finite));
  const auto is_clipped = [](double norm) { return norm > kTrainingClip; };
  CHECK(std::any_of(figures.gradient_norms.begin(), figures.gradient_norms.end(), is_clipped));
  CHECK_FALSE(
      std::all_of(figures.gradient_norms.begin(), figures.gradient_norms.end(), is_clipped));
}

/// Compares the trainings of one class, each with the first.
class Comparison {
 public:
  explicit Comparison(const NumberClass& numbers) : numbers_(numbers) {}

  void run(const std::string& settings) {
    const std::string text = numbers_.text() + " " + settings;
    const Figures figures = carry_out(text);
    if (!first_) {
      first_ = figures;
      first_text_ = settings;
      check_sanity(figures, text);
      if (numbers_.model == "odd") compare_with_reference(figures, text);
    }
    if (figures == *first_) return;
    FAIL_CHECK("[red] the runs differ:\n"
               << text << "\n  " << to_text(figures) << "\n"
               << first_text_ << "\n  " << to_text(*first_));
  }

 private:
  void compare_with_reference(const Figures& figures, const std::string& text) const {
    Figures reference = reference_figures(numbers_);
    reference.losses = figures.losses;  // the odd model has none
    if (figures == reference) return;
    FAIL_CHECK("[red] the reference differs:\n"
               << text << "\n  " << to_text(figures) << "\nreference\n  " << to_text(reference));
  }

  NumberClass numbers_;
  std::optional<Figures> first_;
  std::string first_text_;
};

bool can_pin(int ranks) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return sched_getaffinity(0, sizeof(cores), &cores) == 0 && ranks <= CPU_COUNT(&cores);
}

std::vector<Axis> axes_of(const NumberClass& numbers) {
  const bool at_boundary = numbers.reduce_at == "boundary";
  // Ranks without a core for each are not bound: then no run may count as pinned.
  const std::vector<std::string> pinned = can_pin(numbers.ranks)
                                              ? std::vector<std::string>{"no", "yes"}
                                              : std::vector<std::string>{"no"};
  std::vector<Axis> axes = {{"stage",
                             at_boundary ? std::vector<std::string>{"0", "1"}
                                         : std::vector<std::string>{"0", "1", "2", "3"}},
                            {"bucket", {"tiny", "odd", "huge"}},
                            {"prefetch", {"none", "some", "huge"}},
                            {"chunk", {"tiny", "odd", "huge"}},
                            {"window", {"none", "some", "all"}},
                            {"overlap", {"on", "off"}},
                            {"pinned", pinned},
                            {"ranks_are", {"threads", "processes"}}};
  if (numbers.model != "odd") axes.push_back({"recompute", {"no", "yes"}});
  return axes;
}

// Masters enter as fp32, frozen parameters in the dtype in which they are kept.
std::string hash_of(const ReferenceZero& reference, bool is_bf16) {
  kernels::Hash128 hash;
  Stream stream = Stream::caller();
  std::size_t number = 0;
  for (const OddUnit& unit : OddModel::units()) {
    for (const OddParameter& odd : unit.parameters) {
      std::vector<float> values =
          odd.trainable ? reference.master(number) : reference.weight(number);
      const auto count = static_cast<std::int64_t>(values.size());
      View view{reinterpret_cast<std::byte*>(values.data()), count, DType::kFloat32};
      std::vector<bfloat16> narrowed(values.size());
      if (is_bf16 && !odd.trainable) {
        std::transform(values.begin(), values.end(), narrowed.begin(), to_bfloat16);
        view = {reinterpret_cast<std::byte*>(narrowed.data()), count, DType::kBFloat16};
      }
      kernels::hash(view, static_cast<std::int64_t>(number), 0, hash, stream);
      ++number;
    }
  }
  return hash.to_string();
}

}  // namespace

std::string NumberClass::text() const {
  return fmt::format("model={} dtype={} ranks={} accumulation={} reduce_at={}",
                     model,
                     dtype,
                     ranks,
                     accumulation,
                     reduce_at);
}

Coverage& Coverage::operator+=(const Coverage& other) {
  classes += other.classes;
  runs += other.runs;
  covered += other.covered;
  pairs += other.pairs;
  unpinned.insert(other.unpinned.begin(), other.unpinned.end());
  return *this;
}

std::string Coverage::text() const {
  std::string text =
      fmt::format("{} classes: {} runs cover {} of {} pairs", classes, runs, covered, pairs);
  if (!unpinned.empty()) {
    text +=
        fmt::format("; pinned: no effect for {} ranks on this machine", fmt::join(unpinned, ", "));
  }
  return text;
}

Figures reference_figures(const NumberClass& numbers) {
  const bool is_bf16 = numbers.dtype == "bf16";
  ReferenceOptions options{.clip = kTrainingClip, .beta1 = 0.9, .beta2 = 0.95, .weight_decay = 0.1};
  options.reduces_at_boundary = numbers.reduce_at == "boundary";
  ReferenceZero reference = OddModel::make_reference(options, is_bf16);
  Figures figures;
  figures.start = hash_of(reference, is_bf16);
  for (std::int64_t step = 0; step < kTrainingSteps; ++step) {
    const ReferenceGradients gradients = OddModel::reference_gradients(
        reference, numbers.ranks, step, numbers.accumulation, is_bf16);
    figures.gradient_norms.push_back(reference.step(gradients, kTrainingLr).gradient_norm);
  }
  figures.end = hash_of(reference, is_bf16);
  return figures;
}

Coverage check_same_bits(const NumberClass& numbers) {
  const std::vector<Axis> axes = axes_of(numbers);
  const CoveringDesign design(axes);
  CHECK(design.covered() == design.pairs());
  Comparison comparison(numbers);
  for (const Run& run : design.runs())
    comparison.run(run.text());
  Coverage coverage{1, design.runs().size(), design.covered(), design.pairs()};
  if (!can_pin(numbers.ranks)) coverage.unpinned.insert(numbers.ranks);
  return coverage;
}

Coverage check_stages(const NumberClass& numbers) {
  Comparison comparison(numbers);
  const std::vector<std::string> all = {"stage=0",
                                        "stage=1",
                                        "stage=2 bucket=tiny chunk=odd",
                                        "stage=3",
                                        "stage=3 window=none prefetch=some overlap=on"};
  for (const std::string& settings : all)
    comparison.run(settings);
  return {1, all.size(), 0, 0};
}

}  // namespace sifr::test
