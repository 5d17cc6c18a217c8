#include "config_schema/detail/renamed_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace sifr::detail {
namespace {

using Kind = JsonNode::Kind;

struct Renamed {
  std::string_view section;  // empty: the top level
  std::string_view from;
  std::string_view to;
  bool is_outdated;  // false: a second name of equal standing
};

constexpr Renamed kRenamed[] = {
    {"", "bfloat16", "bf16", true},
    {"aio", "thread_count", "intra_op_parallelism", true},
    {"zero_optimization", "prefetch_bucket_size", "stage3_prefetch_bucket_size", false},
    {"zero_optimization",
     "param_persistence_threshold",
     "stage3_param_persistence_threshold",
     false},
    {"zero_optimization",
     "model_persistence_threshold",
     "stage3_model_persistence_threshold",
     false},
    {"zero_optimization", "max_live_parameters", "stage3_max_live_parameters", false},
    {"zero_optimization", "max_reuse_distance", "stage3_max_reuse_distance", false},
    {"zero_optimization",
     "module_granularity_threshold",
     "stage3_module_granularity_threshold",
     false},
    {"zero_optimization",
     "use_all_reduce_for_fetch_params",
     "stage3_use_all_reduce_for_fetch_params",
     false},
    {"zero_optimization", "allgather_sequential", "stage3_allgather_sequential", false},
    {"zero_optimization",
     "gather_16bit_weights_on_model_save",
     "stage3_gather_16bit_weights_on_model_save",
     false},
    {"zero_optimization",
     "stage3_gather_fp16_weights_on_model_save",
     "stage3_gather_16bit_weights_on_model_save",
     true},
    {"zero_optimization", "allgather_size", "allgather_bucket_size", true},
};

JsonMember* find_member(JsonNode& object, std::string_view key) {
  const auto found = std::find_if(object.members.begin(),
                                  object.members.end(),
                                  [&](const JsonMember& member) { return member.key == key; });
  return found == object.members.end() ? nullptr : &*found;
}

JsonNode* find_object(JsonNode& root, std::string_view key) {
  if (key.empty()) return &root;
  JsonMember* member = find_member(root, key);
  return member != nullptr && member->value.is(Kind::kObject) ? &member->value : nullptr;
}

JsonNode object_with(std::string_view key, Kind kind, std::string_view text, Position position) {
  JsonNode value;
  value.kind = kind;
  value.text = text;
  value.position = position;
  JsonNode object;
  object.kind = Kind::kObject;
  object.position = position;
  object.members.push_back({std::string(key), position, std::move(value)});
  return object;
}

class Modernizer {
 public:
  Modernizer(JsonNode& root, Problems& problems, std::vector<std::string>& notices)
      : root_(root), problems_(problems), notices_(notices) {}

  void rename(const Renamed& renamed) {
    JsonNode* section = find_object(root_, renamed.section);
    JsonMember* old = section == nullptr ? nullptr : find_member(*section, renamed.from);
    if (old == nullptr) return;
    const std::string parent = renamed.section.empty() ? "" : join_pointer("", renamed.section);
    if (find_member(*section, renamed.to) != nullptr) {
      refuse_both(*section, parent, renamed.from, renamed.to);
      return;
    }
    if (renamed.is_outdated) tell_outdated(join_pointer(parent, renamed.from), renamed.to);
    old->key = renamed.to;
  }

  // "cpu_offload": true is "offload_optimizer": {"device": "cpu"}.
  void rename_cpu_offload(std::string_view from, std::string_view to) {
    JsonNode* zero = find_object(root_, "zero_optimization");
    JsonMember* old = zero == nullptr ? nullptr : find_member(*zero, from);
    if (old == nullptr || !old->value.is(Kind::kBool)) return;
    if (find_member(*zero, to) != nullptr) {
      refuse_both(*zero, "/zero_optimization", from, to);
      return;
    }
    const bool is_on = old->value.text == "true";
    const std::string replacement =
        fmt::format(R"({}": {{"device": "{}"}})", to, is_on ? "cpu" : "none");
    tell_outdated(join_pointer("/zero_optimization", from), replacement);
    old->key = to;
    old->value = object_with("device", Kind::kString, is_on ? "cpu" : "none", old->value.position);
  }

  // "zero_optimization": true was stage 1.
  void rename_zero_switch() {
    JsonMember* zero = find_member(root_, "zero_optimization");
    if (zero == nullptr || !zero->value.is(Kind::kBool)) return;
    const std::string_view stage = zero->value.text == "true" ? "1" : "0";
    tell_outdated("/zero_optimization",
                  fmt::format(R"(zero_optimization": {{"stage": {}}})", stage));
    zero->value = object_with("stage", Kind::kNumber, stage, zero->value.position);
  }

 private:
  void tell_outdated(const std::string& pointer, std::string_view to) {
    const bool is_plain = to.find('"') == std::string_view::npos;
    notices_.push_back(
        fmt::format("{} is outdated; write \"{}{} instead", pointer, to, is_plain ? "\"" : ""));
  }

  void refuse_both(JsonNode& section,
                   const std::string& parent,
                   std::string_view from,
                   std::string_view to) {
    JsonMember* old = find_member(section, from);
    problems_.add(
        join_pointer(parent, from),
        old->position,
        fmt::format("\"{}\" is another name of \"{}\", which is there too; remove one", from, to));
    section.members.erase(section.members.begin() + (old - section.members.data()));
  }

  JsonNode& root_;
  Problems& problems_;
  std::vector<std::string>& notices_;
};

}  // namespace

void modernize(JsonNode& root, Problems& problems, std::vector<std::string>& notices) {
  Modernizer modernizer(root, problems, notices);
  modernizer.rename_zero_switch();
  for (const Renamed& renamed : kRenamed)
    modernizer.rename(renamed);
  modernizer.rename_cpu_offload("cpu_offload", "offload_optimizer");
  modernizer.rename_cpu_offload("cpu_offload_param", "offload_param");
}

}  // namespace sifr::detail
