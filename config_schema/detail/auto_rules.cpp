#include "config_schema/detail/auto_rules.hpp"

#include <cmath>

namespace sifr::detail {
namespace {

template <auto Hint>
std::optional<Resolved> the_hint(const Hints& hints) {
  if (!(hints.*Hint)) return std::nullopt;
  return Resolved(*(hints.*Hint));
}

std::optional<Resolved> later(const Hints& /*hints*/) {
  return Resolved(std::monostate{});
}

template <char First>  // of "fp16" or "bf16"
std::optional<Resolved> is_precision(const Hints& hints) {
  if (!hints.precision) return std::nullopt;
  return Resolved(*hints.precision == (First == 'b' ? "bf16" : "fp16"));
}

template <std::int64_t (*Formula)(std::int64_t)>
std::optional<Resolved> of_hidden_size(const Hints& hints) {
  if (!hints.hidden_size) return std::nullopt;
  return Resolved(Formula(*hints.hidden_size));
}

std::int64_t square(std::int64_t hidden) {
  return hidden * hidden;
}
std::int64_t ten_times(std::int64_t hidden) {
  return 10 * hidden;
}
std::int64_t most_of_square(std::int64_t hidden) {
  const auto width = static_cast<double>(hidden);
  return static_cast<std::int64_t>(std::floor(0.9 * width * width));
}

}  // namespace

const AutoRule kAutoTrainBatch = {
    "micro_batch", "micro_batch · accumulation · ranks", false, &later};
const AutoRule kAutoMicroBatch = {
    "micro_batch", "micro_batch", true, &the_hint<&Hints::micro_batch>};
const AutoRule kAutoAccumulation = {
    "accumulation", "accumulation", true, &the_hint<&Hints::accumulation>};
const AutoRule kAutoClipping = {
    "max_grad_norm", "max_grad_norm", true, &the_hint<&Hints::max_grad_norm>};
const AutoRule kAutoLr = {"lr", "lr", true, &the_hint<&Hints::lr>};
const AutoRule kAutoBetas = {"betas", "betas", true, &the_hint<&Hints::betas>};
const AutoRule kAutoEps = {"eps", "eps", true, &the_hint<&Hints::eps>};
const AutoRule kAutoWeightDecay = {
    "weight_decay", "weight_decay", true, &the_hint<&Hints::weight_decay>};
const AutoRule kAutoWarmupMinLr = {
    "", "0", false, [](const Hints&) { return std::optional<Resolved>(Resolved(0.0)); }};
const AutoRule kAutoWarmupMaxLr = {
    "lr", "lr, or the optimizer's lr", false, [](const Hints& hints) {
      return std::optional<Resolved>(hints.lr ? Resolved(*hints.lr) : Resolved(std::monostate{}));
    }};
const AutoRule kAutoWarmupSteps = {
    "warmup_steps", "warmup_steps", true, &the_hint<&Hints::warmup_steps>};
const AutoRule kAutoTotalSteps = {
    "total_steps", "total_steps", true, &the_hint<&Hints::total_steps>};
const AutoRule kAutoFp16 = {"precision", "precision = fp16", true, &is_precision<'f'>};
const AutoRule kAutoBf16 = {"precision", "precision = bf16", true, &is_precision<'b'>};
const AutoRule kAutoReduceBucket = {"hidden_size", "hidden_size²", false, &of_hidden_size<&square>};
const AutoRule kAutoPrefetchBucket = {
    "hidden_size", "⌊0.9 · hidden_size²⌋", false, &of_hidden_size<&most_of_square>};
const AutoRule kAutoPersistence = {
    "hidden_size", "10 · hidden_size", false, &of_hidden_size<&ten_times>};

}  // namespace sifr::detail
