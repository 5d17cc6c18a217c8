#include "examples/llama/save_lock.hpp"

#include "engine/io_error.hpp"
#include "examples/llama/new_folder.hpp"

#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <string>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace llama {
namespace {

namespace fs = std::filesystem;

/// The lock's file, locked; none where its holder removed it in between, so that a lock on it is no
/// lock on the name.
FileDescriptor try_to_lock(const fs::path& path, const fs::path& folder) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (file.number() < 0) throw sifr::IoError(path, "cannot be created", errno);
  if (::flock(file.number(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) throw sifr::IoError(path, "cannot be locked", errno);
    throw sifr::IoError(
        folder, "another run saves into it; give --save another folder or wait for its end");
  }
  struct stat held = {};
  struct stat named = {};
  const bool is_named = ::fstat(file.number(), &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
                        held.st_ino == named.st_ino && held.st_dev == named.st_dev;
  return is_named ? std::move(file) : FileDescriptor();
}

/// Whether the name is prefix, digits, '-', digits: a process and its attempt.
bool is_partial_name(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return false;
  const std::string_view rest = name.substr(prefix.size());
  return rest.find_first_not_of("0123456789-") == rest.npos &&
         std::count(rest.begin(), rest.end(), '-') == 1 && !rest.starts_with('-') &&
         !rest.ends_with('-');
}

bool is_unfinished_model(const fs::path& folder) {
  const auto is_of_save = [](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    return entry.is_regular_file() &&
           is_model_file(name.substr(0, name.find(".partial-")));  // of a file not yet complete
  };
  return fs::is_directory(fs::symlink_status(folder)) &&
         std::all_of(fs::directory_iterator(folder), fs::directory_iterator(), is_of_save);
}

/// Only under the lock: nobody else is saving then.
void remove_remains(const fs::path& folder) {
  const std::string prefix = fmt::format(".{}.partial-", folder.filename().string());
  std::vector<fs::path> remains;
  for (const auto& entry : fs::directory_iterator(folder.parent_path())) {
    if (is_partial_name(entry.path().filename().string(), prefix) &&
        is_unfinished_model(entry.path()))
      remains.push_back(entry.path());
  }
  std::error_code ignored;
  for (const fs::path& path : remains)
    fs::remove_all(path, ignored);
}

}  // namespace

SaveLock::SaveLock(const fs::path& path) {
  const fs::path folder = model_folder(path);
  try {
    fs::create_directories(folder.parent_path());
    path_ = folder.parent_path() / fmt::format(".{}.lock", folder.filename().string());
    while (file_.number() < 0)
      file_ = try_to_lock(path_, path);
    remove_remains(folder);
  } catch (const fs::filesystem_error& error) {
    throw sifr::IoError(path, "cannot be made a model folder", error.code().value());
  }
}

SaveLock::~SaveLock() {
  struct stat status = {};
  const bool is_empty = ::fstat(file_.number(), &status) == 0 && status.st_size == 0;
  if (is_empty) ::unlink(path_.c_str());  // while it is locked
}

}  // namespace llama
