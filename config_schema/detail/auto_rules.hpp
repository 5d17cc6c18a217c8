#pragma once

#include "config_schema/hints.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

namespace sifr::detail {

/// What "auto" becomes; monostate: the key stays unset and is computed from others.
using Resolved = std::variant<std::monostate, bool, std::int64_t, double, std::array<double, 2>>;

/// How one key's "auto" is resolved.
struct AutoRule {
  std::string_view hint;     ///< the hint that it needs; empty: none
  std::string_view formula;  ///< for the reference page
  bool binds;  ///< the hint also fills a missing key and must agree with a written one
  std::optional<Resolved> (*value)(const Hints&);
};

extern const AutoRule kAutoTrainBatch;
extern const AutoRule kAutoMicroBatch;
extern const AutoRule kAutoAccumulation;
extern const AutoRule kAutoClipping;
extern const AutoRule kAutoLr;
extern const AutoRule kAutoBetas;
extern const AutoRule kAutoEps;
extern const AutoRule kAutoWeightDecay;
extern const AutoRule kAutoWarmupMinLr;
extern const AutoRule kAutoWarmupMaxLr;
extern const AutoRule kAutoWarmupSteps;
extern const AutoRule kAutoTotalSteps;
extern const AutoRule kAutoFp16;
extern const AutoRule kAutoBf16;
extern const AutoRule kAutoReduceBucket;
extern const AutoRule kAutoPrefetchBucket;
extern const AutoRule kAutoPersistence;

}  // namespace sifr::detail
