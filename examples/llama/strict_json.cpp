#include "examples/llama/strict_json.hpp"

#include "engine/io_error.hpp"

#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

namespace llama {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDeepestNesting = 64;

/// What is asked at each step of the parser.
class Strictness {
 public:
  explicit Strictness(const std::filesystem::path& path) : path_(path) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    // What writes or compares the values calls itself for each level.
    if (depth > kDeepestNesting)
      throw sifr::IoError(path_, fmt::format("nests deeper than {} levels", kDeepestNesting));
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end) keys_.pop_back();
    if (event == Json::parse_event_t::key && !keys_.back().insert(parsed.get<std::string>()).second)
      throw sifr::IoError(path_, fmt::format("has the key {} twice in one object", parsed.dump()));
    return true;
  }

 private:
  const std::filesystem::path& path_;
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
};

}  // namespace

Json parse_strict_json(std::string_view json, const std::filesystem::path& path) {
  Strictness strictness(path);
  const auto look = [&strictness](int depth, Json::parse_event_t event, const Json& parsed) {
    return strictness(depth, event, parsed);
  };
  try {
    return Json::parse(json, look);
  } catch (const Json::exception& error) {
    throw sifr::IoError(path, fmt::format("is not JSON: {}", error.what()));
  }
}

}  // namespace llama
