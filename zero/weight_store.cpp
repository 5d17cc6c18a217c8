#include "zero/weight_store.hpp"

#include "zero/after_compute.hpp"

namespace sifr {

WeightStore::WeightStore(const Layout& layout,
                         const ZeroOptions& options,
                         Communicator& communicator)
    : layout_(layout),
      options_(options),
      communicator_(communicator),
      is_whole_(options.stage < 3),
      memory_(communicator.allocate(is_whole_ ? layout.weight_bytes() : layout.shard_bytes(),
                                    Purpose::kWeights)) {
  std::size_t segments = 0;
  for (const UnitLayout& unit : layout.units())
    segments += unit.segments.size();
  parts_.reserve(segments);
}

std::byte* WeightStore::whole(int unit) const {
  return memory_.data() + layout_.unit(unit).weight_offset;
}

View WeightStore::whole_segment(int unit, int segment) const {
  const SegmentLayout& place = layout_.unit(unit).segments[static_cast<std::size_t>(segment)];
  return {whole(unit) + place.weight_offset, place.count, place.weights};
}

View WeightStore::slice(int unit, int segment) const {
  const SegmentLayout& place = layout_.unit(unit).segments[static_cast<std::size_t>(segment)];
  if (!is_whole_) return {memory_.data() + place.shard_offset, place.slice_count, place.weights};
  return whole_segment(unit, segment)
      .slice(communicator_.rank() * place.slice_count, place.slice_count);
}

void WeightStore::add_parts(int unit, std::byte* whole, std::vector<GatherPart>& parts) const {
  int s = 0;
  for (const SegmentLayout& segment : layout_.unit(unit).segments)
    parts.push_back(
        {slice(unit, s++), {whole + segment.weight_offset, segment.count, segment.weights}});
}

void WeightStore::gather_wholes(Which which, Stream& stream) {
  std::int64_t elements = 0;
  const auto flush = [&] {
    if (parts_.empty()) return;
    communicator_.all_gather(parts_, {"updated weights"}, after_compute(communicator_, stream))
        .wait();
    parts_.clear();
    elements = 0;
  };
  for (int u = 0; u < layout_.unit_count(); ++u) {
    const UnitLayout& unit = layout_.unit(u);
    for (int s = 0; s < static_cast<int>(unit.segments.size()); ++s) {
      const SegmentLayout& segment = unit.segments[static_cast<std::size_t>(s)];
      if (which == Which::kTrainable && !segment.trainable) continue;
      if (elements + segment.count > options_.gather_bucket) flush();
      parts_.push_back({slice(u, s), whole_segment(u, s)});
      elements += segment.count;
    }
  }
  flush();
}

}  // namespace sifr
