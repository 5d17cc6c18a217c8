#include "examples/llama/data.hpp"

#include "engine/io_error.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

using namespace llama;
using Catch::Matchers::Contains;

namespace {

std::string header(std::int32_t magic, std::int32_t version, std::int32_t count) {
  std::string bytes(1024, '\0');
  const std::int32_t words[3] = {magic, version, count};
  std::memcpy(bytes.data(), words, sizeof(words));
  return bytes;
}

template <class Token>
std::string raw(const std::vector<Token>& tokens) {
  return {reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(Token)};
}

std::vector<std::int32_t> all_of(const TokenFile& file) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(file.count()));
  file.read(0, tokens);
  return tokens;
}

std::string error_of(const std::filesystem::path& path,
                     const std::string& bytes,
                     std::int64_t vocab) {
  write_file(path, bytes);
  try {
    const TokenFile file(path, vocab);
  } catch (const sifr::IoError& error) {
    return error.message();
  }
  return "no error";
}

}  // namespace

TEST_CASE("the bytes of a text are its tokens", "[llama][data]") {
  const TemporaryFolder folder;
  write_file(folder / "x.txt", "Az\xFF\n");
  const TokenFile file(folder / "x.txt", 256);
  CHECK(all_of(file) == std::vector<std::int32_t>{65, 122, 255, 10});
  std::vector<std::int32_t> middle(2);
  file.read(1, middle);
  CHECK(middle == std::vector<std::int32_t>{122, 255});
}

TEST_CASE("both widths of llm.c's format are read", "[llama][data]") {
  const TemporaryFolder folder;
  write_file(folder / "a.bin", header(20240520, 1, 3) + raw<std::uint16_t>({1, 65535, 7}));
  CHECK(all_of(TokenFile(folder / "a.bin", 65536)) == std::vector<std::int32_t>{1, 65535, 7});
  write_file(folder / "b", header(20240801, 7, 2) + raw<std::uint32_t>({70000, 0}));
  CHECK(all_of(TokenFile(folder / "b", 128256)) == std::vector<std::int32_t>{70000, 0});
  write_file(folder / "b", header(20240801, 1, 2) + raw<std::uint32_t>({70000, 0}));
  CHECK(all_of(TokenFile(folder / "b", 128256)) == std::vector<std::int32_t>{70000, 0});
}

TEST_CASE("a file that is no data is refused with what to change", "[llama][data]") {
  const TemporaryFolder folder;
  const auto bin = folder / "x.bin";
  const auto text = folder / "x.txt";
  CHECK_THAT(error_of(text, "", 256), Contains("x.txt: is empty"));
  CHECK_THAT(error_of(text, raw<std::uint16_t>({5, 6, 7}), 256),
             Contains("byte 1 is 0") && Contains("20240520"));
  CHECK_THAT(error_of(bin, "some bytes without header", 256), Contains("ends in .bin"));
  CHECK_THAT(error_of(text, "words", 49152), Contains("vocab=256, but the model has 49152"));
  CHECK_THAT(error_of(bin, header(20240520, 1, 2) + "xx", 65536),
             Contains("file of 1028 bytes, but it has 1026"));
  CHECK_THAT(error_of(bin, header(20240520, 1, -1), 256), Contains("-1 tokens"));
  CHECK_THAT(error_of(bin, header(20240520, 2, 1) + raw<std::uint16_t>({4}), 256),
             Contains("has version 2 of the format 20240520") && Contains("only version 1"));
  CHECK_THAT(error_of(bin, header(20240801, 8, 1) + raw<std::uint32_t>({4}), 256),
             Contains("has version 8 of the format 20240801") && Contains("only version 7"));
  CHECK_THAT(error_of(bin, header(20240520, 0, 1) + raw<std::uint16_t>({4}), 256),
             Contains("has version 0"));
  CHECK_THAT(error_of(bin, header(20240520, 1, 0).substr(0, 100), 256), Contains("cut short?"));
  CHECK_THAT(error_of(bin, header(20240520, 1, 2) + raw<std::uint16_t>({4, 256}), 256),
             Contains("token 256 at place 1, but the model's vocabulary has 256"));
  CHECK_THAT(error_of(bin, header(20240801, 7, 1) + raw<std::uint32_t>({4000000000U}), 256),
             Contains("token 4000000000 at place 0"));
  CHECK_THROWS_WITH(TokenFile(folder / "none", 256), Contains("No such file"));
  CHECK_THROWS_WITH(TokenFile(folder.path(), 256), Contains("is not a regular file"));
  CHECK_THROWS_WITH(TokenFile("/dev/zero", 256), Contains("/dev/zero: is not a regular file"));
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(TokenFile(folder / "pipe", 256), Contains("pipe: is not a regular file"));
}

TEST_CASE("a file that changes after it was opened is an error", "[llama][data]") {
  const TemporaryFolder folder;
  const auto path = folder / "x.bin";
  write_file(path, header(20240520, 1, 9000) + raw(std::vector<std::uint16_t>(9000, 5)));
  const TokenFile file(path, 6);
  CHECK(all_of(file) == std::vector<std::int32_t>(9000, 5));
  std::filesystem::resize_file(path, 1024 + 2 * 8500);
  std::vector<std::int32_t> tokens(8500);
  file.read(0, tokens);
  CHECK_THROWS_WITH(file.read(1, tokens), Contains("x.bin: has no byte 18024 any more"));
  write_file(path, header(20240520, 1, 1) + raw<std::uint16_t>({7}));
  CHECK_THROWS_WITH(file.read(0, std::span(tokens).first(1)), Contains("holds token 7 at place 0"));
}

TEST_CASE("a text is read once at opening", "[llama][data]") {
  const auto bytes_read = [] {  // by this process, so far
    std::istringstream io(read_file("/proc/self/io"));
    std::string name;
    std::int64_t bytes = 0;
    io >> name >> bytes;
    return bytes;
  };
  const TemporaryFolder folder;
  constexpr std::int64_t kBytes = 1 << 20;
  write_file(folder / "x.txt", std::string(kBytes, 'x'));
  const std::int64_t before = bytes_read();
  const TokenFile file(folder / "x.txt", 256);
  const std::int64_t read = bytes_read() - before;
  CHECK(read >= kBytes);
  CHECK(read < kBytes + kBytes / 2);
}

TEST_CASE("unigram entropy counts single tokens", "[llama][data]") {
  const TemporaryFolder folder;
  write_file(folder / "x.txt", "aabc");
  CHECK(unigram_entropy(TokenFile(folder / "x.txt", 256), 256) == Approx(1.5 * std::log(2.0)));
  write_file(folder / "y.txt", std::string(5000, 'z'));
  CHECK(unigram_entropy(TokenFile(folder / "y.txt", 256), 256) == 0);
}
