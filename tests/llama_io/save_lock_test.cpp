#include "examples/llama/save_lock.hpp"

#include "engine/io_error.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <optional>

using namespace llama;
using Catch::Matchers::Contains;

TEST_CASE("one run at a time saves into a folder", "[llama][save]") {
  const TemporaryFolder folder;
  std::optional<SaveLock> first(folder / "deep/m");
  CHECK_THROWS_WITH(SaveLock(folder / "deep/m/"), Contains("another run saves into it"));
  CHECK_THROWS_AS(SaveLock(folder / "deep/../deep/m"), sifr::IoError);
  const SaveLock other(folder / "deep/n");
  first.reset();
  const SaveLock next(folder / "deep/m");
}

TEST_CASE("a lock leaves nothing behind and takes nothing away", "[llama][save]") {
  const TemporaryFolder folder;
  { const SaveLock lock(folder / "m"); }
  CHECK(folder.count() == 0);
  write_file(folder / ".m.lock", "mine");
  { const SaveLock lock(folder / "m"); }
  CHECK(read_file(folder / ".m.lock") == "mine");
}

TEST_CASE("what a killed save left goes with the next run, and nothing else", "[llama][save]") {
  const TemporaryFolder folder;
  const auto make = [&](const char* name, const char* file) {
    std::filesystem::create_directories(folder / name);
    write_file(folder / name / file, "…");
  };
  make(".m.partial-123-0", "model.safetensors.partial-123-0");
  make(".m.partial-124-0", "thesis.tex");
  make(".m.partial-old", "config.json");
  make(".mm.partial-123-0", "config.json");
  make("m.partial", "config.json");
  const SaveLock lock(folder / "m");
  CHECK_FALSE(std::filesystem::exists(folder / ".m.partial-123-0"));
  CHECK(folder.count() == 5);  // the four others and the lock
}
