#include "examples/llama/new_folder.hpp"

#include "device/memory.hpp"
#include "engine/io_error.hpp"
#include "examples/llama/input_file.hpp"

#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <string>
#include <system_error>
#include <unistd.h>

namespace llama {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 10> kTokenizerFiles = {"tokenizer.json",
                                                              "tokenizer_config.json",
                                                              "tokenizer.model",
                                                              "special_tokens_map.json",
                                                              "added_tokens.json",
                                                              "vocab.json",
                                                              "merges.txt",
                                                              "chat_template.jinja",
                                                              "chat_template.json",
                                                              "generation_config.json"};

bool is_shard(std::string_view name) {
  constexpr std::string_view kPattern = "model-00000-of-00000.safetensors";
  if (name.size() != kPattern.size()) return false;
  return std::equal(name.begin(), name.end(), kPattern.begin(), [](char letter, char expected) {
    return expected == '0' ? letter >= '0' && letter <= '9' : letter == expected;
  });
}

[[noreturn]] void refuse_loss(const fs::path& folder, const std::string& name) {
  throw sifr::IoError(
      folder,
      fmt::format("holds '{}', which is no part of a saved model and would be lost; "
                  "choose another folder or move it away",
                  name));
}

void require_model_folder(const fs::path& folder) {
  const auto status = fs::symlink_status(folder);
  if (!fs::exists(status)) return;
  if (!fs::is_directory(status))
    throw sifr::IoError(folder, "exists and is not a folder; choose another name");
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || !is_model_file(name)) refuse_loss(folder, name);
  }
  const bool has_weights = fs::exists(folder / "model.safetensors") ||
                           fs::exists(folder / "model.safetensors.index.json");
  if (!fs::is_empty(folder) && !(has_weights && fs::exists(folder / "config.json")))
    throw sifr::IoError(folder,
                        "holds files, but no whole saved model, and they would be lost; choose "
                        "another folder or move them away");
}

/// A folder beside `folder` that nobody has, hidden.
fs::path create_beside(const fs::path& folder) {
  constexpr int kAttempts = 100;
  fs::create_directories(folder.parent_path());
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    fs::path path =
        folder.parent_path() /
        fmt::format(".{}.partial-{}-{}", folder.filename().string(), ::getpid(), attempt);
    if (fs::create_directory(path)) return path;
  }
  throw sifr::IoError(folder, "cannot be created", EEXIST);
}

void make_durable(const fs::path& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0 || ::fsync(file.number()) != 0)
    throw sifr::IoError(path, "cannot be made durable", errno);
}

// Leaves no moment in which neither is there.
void exchange(const fs::path& folder, const fs::path& older) {
  if (::renameat2(AT_FDCWD, folder.c_str(), AT_FDCWD, older.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS && errno != EXDEV)
    throw sifr::IoError(older, "cannot be given its name", errno);
  replace_by_renames(folder, older);
}

}  // namespace

bool is_tokenizer_file(std::string_view name) {
  return std::find(kTokenizerFiles.begin(), kTokenizerFiles.end(), name) != kTokenizerFiles.end();
}

bool is_model_file(std::string_view name) {
  return name == "config.json" || name == "model.safetensors" || is_shard(name) ||
         name == "model.safetensors.index.json" || is_tokenizer_file(name);
}

fs::path model_folder(const fs::path& path) {
  fs::path folder = fs::absolute(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // written with a slash at its end
  if (!folder.has_filename()) throw sifr::IoError(path, "is not a name for a model folder");
  return folder;
}

NewFolder::NewFolder(const fs::path& folder) : folder_(model_folder(folder)) {
  try {
    require_model_folder(folder_);
    temporary_ = create_beside(folder_);
  } catch (const fs::filesystem_error& error) {
    throw sifr::IoError(folder, "cannot be made a model folder", error.code().value());
  }
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void NewFolder::require_limit(std::string_view name, std::int64_t bytes) const {
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  if (static_cast<rlim_t>(bytes) <= limit.rlim_cur) return;
  throw sifr::IoError(
      folder_ / name,
      fmt::format("cannot be written: needs {} bytes, a file may have {} (ulimit -f)",
                  bytes,
                  limit.rlim_cur),
      EFBIG);
}

void NewFolder::require_space(std::int64_t bytes) const {
  std::error_code unknown;
  const auto space = fs::space(temporary_, unknown);
  if (unknown || space.available >= static_cast<std::uintmax_t>(bytes)) return;
  throw sifr::IoError(folder_,
                      fmt::format("cannot be written: needs {}, {} are free",
                                  sifr::mib(bytes),
                                  sifr::mib(static_cast<std::int64_t>(space.available))),
                      ENOSPC);
}

void NewFolder::require_no_loss() const {
  if (!fs::exists(folder_)) return;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    if (is_tokenizer_file(name) && !fs::exists(temporary_ / name)) refuse_loss(folder_, name);
  }
}

void NewFolder::write_text(std::string_view name, std::string_view text) const {
  const fs::path path = temporary_ / name;
  std::FILE* file = std::fopen(path.c_str(), "wbe");
  if (file == nullptr) throw sifr::IoError(folder_ / name, "cannot be created", errno);
  bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  is_written = std::fflush(file) == 0 && is_written;
  const int error = errno;
  std::fclose(file);
  if (!is_written) throw sifr::IoError(folder_ / name, "cannot be written", error);
  make_durable(path);
}

void NewFolder::copy(const fs::path& from) const {
  // Not by copy_file, which calls a full disk an input/output error.
  write_text(from.filename().string(), text_of(from));
}

void NewFolder::commit() {
  make_durable(temporary_);
  const bool is_replacing = fs::exists(folder_);
  if (is_replacing) {
    exchange(temporary_, folder_);
  } else if (::rename(temporary_.c_str(), folder_.c_str()) != 0) {
    throw sifr::IoError(folder_, "cannot be given its name", errno);
  }
  make_durable(folder_.parent_path());
  std::error_code ignored;
  if (is_replacing) fs::remove_all(temporary_, ignored);
  temporary_.clear();
}

void replace_by_renames(const fs::path& folder, const fs::path& older) {
  const fs::path aside = older.string() + ".older";
  if (::rename(older.c_str(), aside.c_str()) != 0)
    throw sifr::IoError(older, "cannot be moved aside", errno);
  if (::rename(folder.c_str(), older.c_str()) != 0) {
    const int error = errno;
    ::rename(aside.c_str(), older.c_str());
    throw sifr::IoError(older, "cannot be given its name", error);
  }
  std::error_code ignored;
  fs::remove_all(aside, ignored);
}

}  // namespace llama
