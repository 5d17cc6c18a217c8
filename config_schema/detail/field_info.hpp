#pragma once

#include "config_schema/config.hpp"
#include "config_schema/detail/auto_rules.hpp"

#include <array>
#include <limits>
#include <span>
#include <string_view>

namespace sifr::detail {

/// The values that a number may take.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool excludes_min = false;
  bool excludes_max = false;

  [[nodiscard]] bool has(double value) const {
    return (excludes_min ? value > min : value >= min) &&
           (excludes_max ? value < max : value <= max);
  }
};
inline constexpr Range kAnyNumber = {};
inline constexpr Range kCount = {1};
inline constexpr Range kNotNegative = {0};
inline constexpr Range kPositive = {0, std::numeric_limits<double>::infinity(), true};
/// What the update computes with in fp32.
inline constexpr Range kFp32 = {0, std::numeric_limits<float>::max()};

/// What is told about a key once, for all who visit the sections: reader, writers, reference page.
struct FieldInfo {
  std::string_view key;
  std::string_view meaning;
  Range range = kAnyNumber;
  const AutoRule* auto_rule = nullptr;
  bool auto_is_default =
      false;            ///< an "auto" that no rule resolves becomes the default, with a notice
  bool applies = true;  ///< false: the key belongs to another type of its section
  bool ignores_case = false;  ///< of a named value
  std::span<const std::string_view> unsupported =
      {};                           ///< names that DeepSpeed has and sifr has not yet
  std::string_view unit = {};       ///< of its number, for people
  std::string_view unset = "none";  ///< what a null means, for people
};

/// A section of the file.
struct GroupInfo {
  std::string_view key;
  std::string_view example;        ///< shown where something else than an object stands
  bool reads_text_values = false;  ///< DeepSpeed takes "8" for 8 and "true" for true here
};

/// A named value of an enumeration.
template <class E>
struct Name {
  E value;
  std::string_view text;
};

template <class E>
inline constexpr std::array<Name<E>, 0> kNames = {};
template <>
inline constexpr auto kNames<WireDType> = std::to_array<Name<WireDType>>(
    {{WireDType::kFp32, "fp32"}, {WireDType::kBf16, "bf16"}, {WireDType::kFp16, "fp16"}});
template <>
inline constexpr auto kNames<OptimizerType> = std::to_array<Name<OptimizerType>>(
    {{OptimizerType::kAdam, "Adam"}, {OptimizerType::kAdamW, "AdamW"}});
template <>
inline constexpr auto kNames<SchedulerType> =
    std::to_array<Name<SchedulerType>>({{SchedulerType::kWarmupLR, "WarmupLR"},
                                        {SchedulerType::kWarmupDecayLR, "WarmupDecayLR"},
                                        {SchedulerType::kWarmupCosineLR, "WarmupCosineLR"}});
template <>
inline constexpr auto kNames<WarmupType> =
    std::to_array<Name<WarmupType>>({{WarmupType::kLog, "log"}, {WarmupType::kLinear, "linear"}});
template <>
inline constexpr auto kNames<Strictness> =
    std::to_array<Name<Strictness>>({{Strictness::kError, "error"}, {Strictness::kWarn, "warn"}});
template <>
inline constexpr auto kNames<ReduceAt> = std::to_array<Name<ReduceAt>>(
    {{ReduceAt::kMicroBatch, "micro_batch"}, {ReduceAt::kBoundary, "boundary"}});
template <>
inline constexpr auto kNames<NonFinite> =
    std::to_array<Name<NonFinite>>({{NonFinite::kStop, "stop"}, {NonFinite::kSkip, "skip"}});

/// The name of an enumerator.
template <class E>
[[nodiscard]] constexpr std::string_view name_of(E value) {
  for (const Name<E>& name : kNames<E>) {
    if (name.value == value) return name.text;
  }
  return {};
}

}  // namespace sifr::detail
