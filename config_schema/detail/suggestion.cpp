#include "config_schema/detail/suggestion.hpp"

#include "config_schema/detail/known_keys.hpp"
#include "config_schema/detail/nearest_key.hpp"
#include "config_schema/detail/used_keys.hpp"

#include <algorithm>
#include <cstddef>

namespace sifr::detail {
namespace {

/// What other programs call a key, or people do.
struct Synonym {
  std::string_view name;
  std::string_view pointer;
};

constexpr Synonym kSynonyms[] = {
    {"gradient_clip", "/gradient_clipping"},
    {"gradient_clip_val", "/gradient_clipping"},
    {"grad_clip", "/gradient_clipping"},
    {"clip_grad", "/gradient_clipping"},
    {"clip_grad_norm", "/gradient_clipping"},
    {"max_grad_norm", "/gradient_clipping"},
    {"max_norm", "/gradient_clipping"},
    {"learning_rate", "/optimizer/params/lr"},
    {"max_lr", "/optimizer/params/lr"},
    {"base_lr", "/optimizer/params/lr"},
    {"peak_lr", "/optimizer/params/lr"},
    {"epsilon", "/optimizer/params/eps"},
    {"adam_epsilon", "/optimizer/params/eps"},
    {"beta1", "/optimizer/params/betas"},
    {"beta2", "/optimizer/params/betas"},
    {"adam_beta1", "/optimizer/params/betas"},
    {"adam_beta2", "/optimizer/params/betas"},
    {"wd", "/optimizer/params/weight_decay"},
    {"optim", "/optimizer"},
    {"lr_scheduler", "/scheduler"},
    {"min_lr", "/scheduler/params/warmup_min_lr"},
    {"warmup", "/scheduler/params/warmup_num_steps"},
    {"warmup_steps", "/scheduler/params/warmup_num_steps"},
    {"num_warmup_steps", "/scheduler/params/warmup_num_steps"},
    {"max_steps", "/scheduler/params/total_num_steps"},
    {"total_steps", "/scheduler/params/total_num_steps"},
    {"num_training_steps", "/scheduler/params/total_num_steps"},
    {"batch_size", "/train_batch_size"},
    {"global_batch_size", "/train_batch_size"},
    {"micro_batch", "/train_micro_batch_size_per_gpu"},
    {"micro_batch_size", "/train_micro_batch_size_per_gpu"},
    {"per_device_train_batch_size", "/train_micro_batch_size_per_gpu"},
    {"accumulation", "/gradient_accumulation_steps"},
    {"accumulation_steps", "/gradient_accumulation_steps"},
    {"grad_accum_steps", "/gradient_accumulation_steps"},
    {"gas", "/gradient_accumulation_steps"},
    {"zero", "/zero_optimization"},
    {"zero_stage", "/zero_optimization/stage"},
    {"bfloat_16", "/bf16"},
    {"mixed_precision", "/bf16"},
    {"precision", "/bf16"},
    {"dtype", "/bf16"},
    {"float16", "/fp16"},
    {"half", "/fp16"},
    {"log_every", "/steps_per_print"},
    {"logging_steps", "/steps_per_print"},
    {"timeout", "/sifr/comm_timeout"},
};

using Words = std::vector<std::string>;

// "gradient_clip", "gradient-clip" and "gradientClip" have the same words.
Words words_of(std::string_view key) {
  Words words(1);
  bool was_small = false;
  for (const char c : key) {
    const bool is_large = c >= 'A' && c <= 'Z';
    const bool is_between = c == '_' || c == '-' || c == ' ';
    if (is_between || (is_large && was_small)) words.emplace_back();
    if (!is_between) words.back() += is_large ? static_cast<char>(c - 'A' + 'a') : c;
    was_small = c >= 'a' && c <= 'z';
  }
  return words;
}

// Whether each of `few` begins a word of `many`, in the same order.
bool are_among(const Words& few, const Words& many) {
  auto next = many.begin();
  return std::all_of(few.begin(), few.end(), [&](const std::string& word) {
    next = std::find_if(
        next, many.end(), [&](const std::string& other) { return other.starts_with(word); });
    return next != many.end() && next++ != many.end();
  });
}

// The shortest candidate that has all words of the key, or the longest of whose words it has all.
std::string_view with_same_words(std::string_view key,
                                 const std::vector<std::string_view>& candidates) {
  const Words words = words_of(key);
  std::string_view longer;
  std::string_view shorter;
  int longer_count = 0;
  for (const std::string_view candidate : candidates) {
    const Words others = words_of(candidate);
    if (are_among(words, others)) {
      ++longer_count;
      if (longer.empty() || candidate.size() < longer.size()) longer = candidate;
    } else if (are_among(others, words) && candidate.size() > shorter.size()) {
      shorter = candidate;
    }
  }
  const bool is_clear = words.size() > 1 || (key.size() > 3 && longer_count == 1);
  return !longer.empty() && is_clear ? longer : shorter;
}

std::string_view last_of(std::string_view pointer) {
  return pointer.substr(pointer.rfind('/') + 1);
}

// By its name alone if it is in the section at hand.
std::string as_seen_from(const std::string& parent, std::string_view pointer) {
  const std::string_view section = pointer.substr(0, pointer.rfind('/'));
  return std::string(section == parent ? last_of(pointer) : pointer);
}

std::string_view synonym_of(std::string_view key) {
  const auto* found =
      std::find_if(std::begin(kSynonyms), std::end(kSynonyms), [&](const Synonym& synonym) {
        return words_of(synonym.name) == words_of(key);
      });
  return found == std::end(kSynonyms) ? std::string_view() : found->pointer;
}

// A key of another section: of the same name, else near it, else with its words.
std::string in_other_section(std::string_view key) {
  std::vector<std::string> pointers;
  for (UsedKey& used : used_keys())
    pointers.push_back(std::move(used.pointer));
  const std::size_t used_count = pointers.size();
  for (const KnownKey& known : known_keys())
    pointers.emplace_back(known.pointer);
  for (const std::string& pointer : pointers) {
    if (last_of(pointer) == key) return pointer;
  }
  pointers.resize(used_count);
  std::vector<std::string_view> names;
  names.reserve(used_count);
  for (const std::string& pointer : pointers)
    names.push_back(last_of(pointer));
  std::string_view near = nearest_key(key, names);
  if (near.empty() && words_of(key).size() > 1) near = with_same_words(key, names);
  const auto place = std::find(names.begin(), names.end(), near) - names.begin();
  return near.empty() ? "" : pointers[static_cast<std::size_t>(place)];
}

}  // namespace

std::string suggest_key(std::string_view key,
                        const std::string& parent,
                        const std::vector<std::string_view>& candidates) {
  if (key.size() > kLongestKey) return {};
  if (const std::string_view pointer = synonym_of(key); !pointer.empty())
    return as_seen_from(parent, pointer);
  if (const std::string_view near = nearest_key(key, candidates); !near.empty())
    return std::string(near);
  if (const std::string_view same = with_same_words(key, candidates); !same.empty())
    return std::string(same);
  return in_other_section(key);
}

}  // namespace sifr::detail
