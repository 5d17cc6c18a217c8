#pragma once

#include "examples/llama/file_descriptor.hpp"

#include <filesystem>

namespace llama {

/// Held by the one run that saves into a folder: a lock on the file .NAME.lock beside it, which the
/// system ends with the process, and which is removed with the lock.
class SaveLock {
 public:
  /// Makes the folder's parents, and removes what killed saves left beside the folder. Throws
  /// sifr::IoError, also where another run holds the lock.
  explicit SaveLock(const std::filesystem::path& folder);
  SaveLock(const SaveLock&) = delete;
  SaveLock& operator=(const SaveLock&) = delete;
  ~SaveLock();

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
};

}  // namespace llama
