#include "examples/llama/outputs.hpp"

#include "examples/llama/new_folder.hpp"
#include "sifr_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

namespace llama {
namespace {

namespace fs = std::filesystem;

struct NamedPath {
  const char* option;
  fs::path path;
};

/// Without links; the path as it is where that cannot be told.
fs::path without_links(const fs::path& path) {
  std::error_code unknown;
  const fs::path result = fs::weakly_canonical(fs::absolute(path), unknown);
  return unknown ? fs::absolute(path).lexically_normal() : result;
}

/// Where the name itself stands, even if it is a link to elsewhere.
fs::path place_of(const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  return without_links(whole.parent_path()) / whole.filename();
}

bool is_same(const fs::path& a, const fs::path& b) {
  std::error_code unknown;
  return without_links(a) == without_links(b) || fs::equivalent(a, b, unknown);
}

bool is_within(const fs::path& path, const fs::path& folder) {
  fs::path outer = without_links(folder);
  if (!outer.has_filename()) outer = outer.parent_path();  // written with a slash at its end
  return std::mismatch(outer.begin(), outer.end(), path.begin(), path.end()).first == outer.end();
}

void add(std::vector<NamedPath>& all, const char* option, const fs::path& path) {
  if (!path.empty()) all.push_back({option, path});
}

/// The files that are read.
std::vector<NamedPath> inputs_of(const Options& options) {
  std::vector<NamedPath> inputs;
  add(inputs, "--config", options.config);
  add(inputs, "--data", options.data);
  add(inputs, "--eval-data", options.eval_data);
  return inputs;
}

void add_model(std::vector<NamedPath>& inputs, const fs::path& folder) {
  std::error_code unknown;  // a folder that cannot be read is told when it is
  for (const auto& entry : fs::directory_iterator(folder, unknown)) {
    if (is_model_file(entry.path().filename().string())) add(inputs, "--model", entry.path());
  }
}

void require_apart(const NamedPath& output, const std::vector<NamedPath>& others) {
  for (const NamedPath& other : others) {
    if (!is_same(output.path, other.path)) continue;
    throw sifr::UsageError(
        fmt::format("{} would overwrite {}, the file of {}; give it another name",
                    output.option,
                    other.path.string(),
                    other.option));
  }
}

void require_outside(const fs::path& save, const std::vector<NamedPath>& files) {
  for (const NamedPath& file : files) {
    if (!is_within(place_of(file.path), save) && !is_within(without_links(file.path), save))
      continue;
    throw sifr::UsageError(
        fmt::format("--save replaces {} as a whole, and {}, the file of {}, is in it; "
                    "choose another folder or move the file",
                    save.string(),
                    file.path.string(),
                    file.option));
  }
}

}  // namespace

void require_separate_outputs(const Options& options) {
  std::vector<NamedPath> outputs;
  add(outputs, "--metrics", options.metrics);
  add(outputs, "--logits", options.logits);
  std::vector<NamedPath> files = inputs_of(options);
  if (!options.save.empty()) {
    require_outside(options.save, files);
    require_outside(options.save, outputs);
  }
  if (!options.model.empty()) add_model(files, options.model);
  for (const NamedPath& output : outputs) {
    require_apart(output, files);
    files.push_back(output);
  }
}

}  // namespace llama
