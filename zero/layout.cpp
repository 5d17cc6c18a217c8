#include "zero/layout.hpp"

#include <algorithm>
#include <string_view>

namespace sifr {

namespace {

// The unit's segments in order of their first parameter, filled with the parameters' places.
void form_segments(UnitLayout& unit) {
  for (int p = 0; p < static_cast<int>(unit.parameters.size()); ++p) {
    ParameterLayout& parameter = unit.parameters[static_cast<std::size_t>(p)];
    const ParameterSpec& spec = parameter.spec;
    auto segment =
        std::find_if(unit.segments.begin(), unit.segments.end(), [&](const SegmentLayout& s) {
          return s.weights == spec.weights && s.trainable == spec.trainable &&
                 s.gradients == spec.gradients;
        });
    if (segment == unit.segments.end()) {
      unit.segments.push_back(
          {.weights = spec.weights, .gradients = spec.gradients, .trainable = spec.trainable});
      segment = unit.segments.end() - 1;
    }
    parameter.segment = static_cast<int>(segment - unit.segments.begin());
    parameter.first = segment->count;
    segment->parameters.push_back(p);
    segment->count = round_up(segment->count + spec.count, kQuantum);
  }
}

// FNV-1a: short, and only a comparison between ranks of one program.
void mix(std::uint64_t& hash, std::string_view bytes) {
  for (const char byte : bytes)
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3U;
  hash = (hash ^ 0xFFU) * 0x100000001B3U;
}
void mix(std::uint64_t& hash, std::int64_t value) {
  mix(hash, std::to_string(value));
}

}  // namespace

Layout::Layout(const std::vector<UnitSpec>& units, int group_size) : group_size_(group_size) {
  units_.resize(units.size());
  for (std::size_t u = 0; u < units.size(); ++u)
    place(units_[u], units[u]);
  arena_count_ = round_up(arena_count_, kArenaPadding);
}

void Layout::place(UnitLayout& unit, const UnitSpec& spec) {
  unit.name = spec.name;
  unit.gradient_leases = spec.gradient_leases;
  for (const ParameterSpec& parameter : spec.parameters) {
    unit.parameters.push_back({.spec = parameter, .index = parameter_count_++});
    unit.elements += parameter.count;
  }
  form_segments(unit);
  unit.weight_offset = weight_bytes_;
  unit.sum_first = trainable_count_;
  for (SegmentLayout& segment : unit.segments) {
    segment.count = round_up(segment.count, group_size_ * kQuantum);
    segment.slice_count = segment.count / group_size_;
    segment.weight_offset = unit.weight_bytes;
    segment.shard_offset = shard_bytes_;
    unit.weight_bytes += segment.count * size_of(segment.weights);
    shard_bytes_ += segment.slice_count * size_of(segment.weights);
    if (!segment.trainable) continue;
    segment.gradient_offset = unit.gradient_bytes;
    segment.arena_first = arena_count_;
    segment.sum_first = unit.sum_count;
    unit.gradient_bytes += segment.count * size_of(segment.gradients);
    unit.sum_count += segment.count;
    arena_count_ += segment.slice_count;
    trainable_count_ += segment.count;
  }
  weight_bytes_ += unit.weight_bytes;
  gradient_bytes_ += unit.gradient_bytes;
}

std::vector<Stretch> Layout::stretches(int unit,
                                       int segment,
                                       std::int64_t first,
                                       std::int64_t last) const {
  std::vector<Stretch> all;
  for_each_stretch(
      unit, segment, first, last, [&](const Stretch& stretch) { all.push_back(stretch); });
  return all;
}

std::uint64_t Layout::fingerprint() const {
  std::uint64_t hash = 0xCBF29CE484222325U;
  mix(hash, group_size_);
  for (const UnitLayout& unit : units_) {
    mix(hash, unit.name);
    mix(hash, unit.gradient_leases);
    for (const ParameterLayout& parameter : unit.parameters) {
      const ParameterSpec& spec = parameter.spec;
      mix(hash, spec.name);
      for (const std::int64_t extent : spec.shape)
        mix(hash, extent);
      mix(hash,
          static_cast<std::int64_t>(spec.weights) * 16 +
              static_cast<std::int64_t>(spec.gradients) * 4 + (spec.trainable ? 2 : 0) +
              (spec.decay ? 1 : 0));
      mix(hash, std::to_string(spec.lr_scale));
    }
  }
  return hash;
}

}  // namespace sifr
