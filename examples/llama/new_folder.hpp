#pragma once

#include <filesystem>
#include <string_view>

namespace llama {

/// A model folder that takes its name as a whole: files are written to a temporary folder beside
/// it, and commit() puts that in its place. Until then, whatever goes wrong, an older save under
/// this name is untouched. Throws sifr::IoError.
///
///   .NAME.partial-PID-N --files…--> commit: fsync, exchanged with NAME, the older one removed
///                            └───── destructor without commit: removed
class NewFolder {
 public:
  /// An existing `folder` must be empty or hold a whole saved model and nothing else, since all
  /// that it holds goes away.
  explicit NewFolder(const std::filesystem::path& folder);
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  ~NewFolder();

  /// Where to write the files.
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return temporary_; }
  /// Throws unless the process may write a file of that many bytes.
  void require_limit(std::string_view name, std::int64_t bytes) const;
  /// Throws unless that many bytes are free.
  void require_space(std::int64_t bytes) const;
  /// Throws where the folder holds tokenizer files that were not written or copied anew.
  void require_no_loss() const;
  void write_text(std::string_view name, std::string_view text) const;
  void copy(const std::filesystem::path& from) const;
  void commit();

 private:
  std::filesystem::path folder_;
  std::filesystem::path temporary_;  // empty once it has its name
};

/// Puts `folder` in the place of `older` by two renames, for file systems that cannot exchange: a
/// kill between them leaves the older one as NAME.older. Throws sifr::IoError; then nothing has
/// changed.
void replace_by_renames(const std::filesystem::path& folder, const std::filesystem::path& older);

/// The absolute name of a model folder. Throws sifr::IoError for what can be none, such as "/".
[[nodiscard]] std::filesystem::path model_folder(const std::filesystem::path& path);

/// Whether a save writes a file of this name: config, weights, their index, tokenizer.
[[nodiscard]] bool is_model_file(std::string_view name);
/// Whether it is one that is copied along from the source of the weights.
[[nodiscard]] bool is_tokenizer_file(std::string_view name);

}  // namespace llama
