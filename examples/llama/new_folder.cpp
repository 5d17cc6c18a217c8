#include "examples/llama/new_folder.hpp"

#include "device/memory.hpp"
#include "engine/io_error.hpp"
#include "examples/llama/mapped_file.hpp"

#include <fmt/format.h>
#include <linux/fs.h>
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

void require_model_folder(const fs::path& folder) {
  const auto status = fs::symlink_status(folder);
  if (!fs::exists(status)) return;
  if (!fs::is_directory(status))
    throw sifr::IoError(folder, "exists and is not a folder; choose another name");
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || !is_model_file(name)) {
      throw sifr::IoError(
          folder,
          fmt::format("holds '{}', which is no part of a saved model and would be lost; "
                      "choose another folder or move it away",
                      name));
    }
  }
}

void make_durable(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int error = file < 0 || ::fsync(file) != 0 ? errno : 0;
  if (file >= 0) ::close(file);
  if (error != 0) throw sifr::IoError(path, "cannot be made durable", error);
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
  // Those of an interrupted save end in .partial-….
  const bool is_weights =
      name.starts_with("model") &&
      (name.ends_with(".safetensors") || name.find(".safetensors.partial-") != name.npos);
  return is_weights || name == "config.json" || name == "model.safetensors.index.json" ||
         is_tokenizer_file(name);
}

NewFolder::NewFolder(const fs::path& folder) : folder_(fs::absolute(folder).lexically_normal()) {
  if (!folder_.has_filename()) folder_ = folder_.parent_path();  // written with a slash at its end
  if (!folder_.has_filename()) throw sifr::IoError(folder, "is not a name for a model folder");
  try {
    require_model_folder(folder_);
    const fs::path partial = folder_.string() + ".partial";
    require_model_folder(partial);
    fs::remove_all(partial);
    fs::create_directories(partial);
    temporary_ = partial;
  } catch (const fs::filesystem_error& error) {
    throw sifr::IoError(folder, "cannot be made a model folder", error.code().value());
  }
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
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
  const MappedFile file(from);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  write_text(from.filename().string(), text);
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
  std::error_code ignored;  // remains go with the next save
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
