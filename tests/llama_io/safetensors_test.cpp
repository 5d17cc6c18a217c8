#include "engine/safetensors.hpp"

#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <vector>

using namespace sifr;
using Catch::Matchers::Contains;

namespace {

std::string file_text(std::string_view json, std::string_view data) {
  const std::uint64_t length = json.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes.append(json).append(data);
}

std::string error_of(const TemporaryFolder& folder, const std::string& bytes) {
  write_file(folder / "bad.safetensors", bytes);
  try {
    const SafetensorsFile file(folder / "bad.safetensors");
  } catch (const IoError& error) {
    return error.message();
  }
  return "no error";
}

template <class T>
ConstView view_of(const std::vector<T>& values) {
  return {reinterpret_cast<const std::byte*>(values.data()),
          static_cast<std::int64_t>(values.size()),
          kDTypeOf<T>};
}

std::vector<float> read_all(const SafetensorsFile& file, std::string_view name) {
  const SafetensorsTensor* tensor = file.find(name);
  std::vector<float> values(static_cast<std::size_t>(tensor->count));
  file.read(*tensor, 0, values);
  return values;
}

double half_to_double(std::uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31U);
  const auto fraction = static_cast<double>(bits & 1023U);
  double value =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) value = fraction == 0 ? INFINITY : NAN;
  return bits >> 15 != 0 ? -value : value;
}

}  // namespace

TEST_CASE("a safetensors file written in pieces reads back equal", "[safetensors]") {
  const TemporaryFolder folder;
  const std::vector<float> a = {1, -0.0F, 0x1p-149F, std::numeric_limits<float>::infinity(), 5, 6};
  const std::vector<bfloat16> b = {to_bfloat16(1.5F), to_bfloat16(-3)};
  SafetensorsWriter writer(folder / "x.safetensors",
                           {{"a", DType::kFloat32, {2, 3}},
                            {"empty", DType::kFloat32, {4, 0}},
                            {"b", DType::kBFloat16, {2}},
                            {"also empty", DType::kBFloat16, {0}}},
                           {{"format", "pt"}});
  writer.write("a", 0, view_of(a).slice(0, 2));
  writer.write("a", 2, view_of(a).slice(2, 4));
  writer.write("empty", 0, {});
  writer.write("b", 0, view_of(b));
  writer.finish();

  const SafetensorsFile file(folder / "x.safetensors");
  CHECK(folder.count() == 1);
  CHECK(file.metadata().at("format") == "pt");
  REQUIRE(file.tensors().size() == 4);
  CHECK(file.find("a")->shape == std::vector<std::int64_t>{2, 3});
  CHECK(std::memcmp(file.find("a")->bytes.data(), a.data(), a.size() * 4) == 0);
  CHECK(read_all(file, "b") == std::vector<float>{1.5F, -3});
  CHECK(file.find("empty")->count == 0);
  CHECK(file.find("c") == nullptr);
  std::vector<float> middle(2);
  file.read(*file.find("a"), 4, middle);
  CHECK(middle == std::vector<float>{5, 6});
  CHECK_THROWS_AS(file.read(*file.find("a"), 5, middle), UsageError);
  CHECK_THROWS_AS(file.read(*file.find("a"), -1, middle), UsageError);
}

TEST_CASE("half precision widens exactly, all 65536 values", "[safetensors]") {
  const TemporaryFolder folder;
  std::vector<float16> halves;
  for (std::uint32_t bits = 0; bits < 65536; ++bits)
    halves.push_back({static_cast<std::uint16_t>(bits)});
  SafetensorsWriter writer(folder / "h.safetensors", {{"h", DType::kFloat16, {65536}}});
  writer.write("h", 0, view_of(halves));
  writer.finish();
  const auto values = read_all(SafetensorsFile(folder / "h.safetensors"), "h");
  std::size_t wrong = 0;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const double expected = half_to_double(bits);
    const float value = values[bits];
    const bool equal = std::isnan(expected) ? std::isnan(value)
                                            : static_cast<double>(value) == expected &&
                                                  std::signbit(value) == std::signbit(expected);
    wrong += equal ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("malformed safetensors files are refused with what is wrong", "[safetensors]") {
  const TemporaryFolder folder;
  const auto refused = [&](std::string_view json) {
    return error_of(folder, file_text(json, std::string(16, '\0')));
  };
  CHECK_THAT(error_of(folder, ""), Contains("too few for a header"));
  CHECK_THAT(error_of(folder, "1234567"), Contains("too few for a header"));
  CHECK_THAT(error_of(folder, std::string(8, '\xFF')), Contains("claim a header of"));
  CHECK_THAT(error_of(folder, file_text("{}", "").substr(0, 9)), Contains("truncated"));
  CHECK_THAT(refused("[]"), Contains("does not start with '{'"));
  CHECK_THAT(refused("{"), Contains("not JSON"));
  CHECK_THAT(refused("{\"\xFF\":1}"), Contains("not JSON"));
  CHECK_THAT(refused("{}"), Contains("describes 0 bytes of data, but the file has 16"));
  CHECK_THAT(refused(R"({"a":1})"), Contains("'a' by no object"));
  CHECK_THAT(refused(R"({"__metadata__":{"x":1}})"), Contains("metadata 'x'"));
  CHECK_THAT(refused(std::string(100000, '{')), Contains("not JSON"));
  CHECK_THAT(refused(R"({"a":{"dtype":"F32","shape":)" + std::string(100000, '[')),
             Contains("deeply"));
}

TEST_CASE("a tensor that contradicts the file is refused by name", "[safetensors]") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& tensors) {
    return error_of(folder, file_text("{" + tensors + "}", std::string(16, '\0')));
  };
  const auto a = [&](const std::string& shape, const std::string& offsets) {
    return refused(R"("a":{"dtype":"F32","shape":[)" + shape + R"(],"data_offsets":[)" + offsets +
                   "]}");
  };
  const auto pair = [&](const std::string& second) {
    return refused(R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)" + second);
  };
  CHECK(a("4", "0,16") == "no error");
  CHECK_THAT(a("4.5", "0,16"), Contains("whole numbers"));
  CHECK_THAT(a("-4", "0,16"), Contains("whole numbers"));
  CHECK_THAT(a("5", "0,16"), Contains("16 bytes, but its 5 elements of F32 take 20"));
  CHECK_THAT(a("5", "0,20"), Contains("truncated?"));
  CHECK_THAT(a("4", "16,0"), Contains("bytes 16 to 0"));
  CHECK_THAT(a("4", "0"), Contains("not two numbers"));
  CHECK_THAT(a("4294967296,4294967296", "0,16"), Contains("more elements than any file"));
  CHECK_THAT(refused(R"("a":{"dtype":"F32","shape":[4]})"), Contains("no list data_offsets"));
  CHECK_THAT(refused(R"("a":{"shape":[4],"data_offsets":[0,16]})"), Contains("no dtype"));
  CHECK_THAT(refused(R"("a":{"dtype":"F32","shape":[4],"data_offsets":[0,16],"stride":1})"),
             Contains("'stride'"));
  CHECK_THAT(pair(R"("a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]})"),
             Contains("'a' twice"));
  CHECK_THAT(pair(R"("b":{"dtype":"F32","shape":[3],"data_offsets":[4,16]})"),
             Contains("'b' at byte 4, which overlaps"));
  CHECK_THAT(pair(R"("b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]})"),
             Contains("leaves a hole"));
}

TEST_CASE("tensors of other dtypes are listed, and refused by name when read", "[safetensors]") {
  const TemporaryFolder folder;
  write_file(folder / "x",
             file_text(R"({"n":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
                       R"("f":{"dtype":"F6_NEW","shape":[5],"data_offsets":[8,12]}})",
                       std::string(12, '\1')));
  const SafetensorsFile file(folder / "x");
  CHECK(file.find("f")->bytes.size() == 4);
  std::vector<float> one(1);
  CHECK_THROWS_WITH(file.read(*file.find("n"), 0, one), Contains("'n' in I64"));
  CHECK_THROWS_WITH(file.read(*file.find("f"), 0, one), Contains("'f' in F6_NEW"));
}

TEST_CASE("the writer refuses other orders, sizes and dtypes", "[safetensors]") {
  const TemporaryFolder folder;
  const std::vector<float> four = {1, 2, 3, 4};
  const auto declare = [&](std::vector<SafetensorsWriter::Declared> tensors) {
    return SafetensorsWriter(folder / "x", std::move(tensors));
  };
  CHECK_THROWS_WITH(declare({{"a", DType::kFloat32, {1}}, {"a", DType::kFloat32, {1}}}),
                    Contains("'a' is taken"));
  CHECK_THROWS_WITH(declare({{"a", DType::kFloat32, {-1}}}), Contains("negative"));
  CHECK_THROWS_WITH(declare({{"\xFF", DType::kFloat32, {1}}}), Contains("UTF-8"));
  SafetensorsWriter writer = declare({{"a", DType::kFloat32, {4}}, {"b", DType::kBFloat16, {2}}});
  CHECK_THROWS_WITH(writer.write("b", 0, view_of(four)),
                    Contains("the turn is 'a' from element 0"));
  CHECK_THROWS_WITH(writer.write("a", 1, view_of(four)),
                    Contains("the turn is 'a' from element 0"));
  writer.write("a", 0, view_of(four).slice(0, 3));
  CHECK_THROWS_WITH(writer.write("a", 3, view_of(four)), Contains("has 1 more of F32"));
  CHECK_THROWS_WITH(writer.finish(), Contains("'a' has 3 of its 4 elements"));
  writer.write("a", 3, view_of(four).slice(3, 1));
  CHECK_THROWS_WITH(writer.write("b", 0, view_of(four).slice(0, 1)), Contains("of F32 for 'b'"));
}

TEST_CASE("an unfinished or impossible save leaves the older file alone", "[safetensors][CKP14]") {
  const TemporaryFolder folder;
  write_file(folder / "x", "older");
  { const SafetensorsWriter writer(folder / "x", {{"a", DType::kFloat32, {4}}}); }
  CHECK(read_file(folder / "x") == "older");
  const std::int64_t too_many = std::int64_t{1} << 58;
  CHECK_THROWS_AS(SafetensorsWriter(folder / "x", {{"a", DType::kFloat32, {too_many}}}), IoError);
  CHECK(read_file(folder / "x") == "older");
  CHECK(folder.count() == 1);
  CHECK_THROWS_AS(SafetensorsWriter(folder / "absent/x", {{"a", DType::kFloat32, {1}}}), IoError);
}

TEST_CASE("what is no regular file is not replaced by one", "[safetensors]") {
  const TemporaryFolder folder;
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(SafetensorsWriter(folder / "pipe", {{"a", DType::kFloat32, {1}}}),
                    Contains("pipe: exists and is not a regular file"));
  CHECK(std::filesystem::is_fifo(folder / "pipe"));
  CHECK(folder.count() == 1);
}

TEST_CASE("a limit on the size of files is an error before the first byte", "[safetensors]") {
  const TemporaryFolder folder;
  write_file(folder / "x", "older");
  rlimit former = {};
  getrlimit(RLIMIT_FSIZE, &former);
  const rlimit small = {.rlim_cur = 100, .rlim_max = former.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  int number = 0;
  std::string text;
  try {
    const SafetensorsWriter writer(folder / "x", {{"a", DType::kFloat32, {25}}});
  } catch (const IoError& error) {
    number = error.error_number();
    text = error.message();
  }
  setrlimit(RLIMIT_FSIZE, &former);
  CHECK(number == EFBIG);
  CHECK_THAT(text,
             Contains((folder / "x").string() + ": cannot be written: needs ") &&
                 Contains("a file may have 100 (ulimit -f): File too large"));
  CHECK(read_file(folder / "x") == "older");
  CHECK(folder.count() == 1);
}

TEST_CASE("a file that cannot be read is an IoError with path and cause", "[safetensors]") {
  CHECK_THROWS_WITH(SafetensorsFile("/nowhere/x"),
                    Contains("/nowhere/x") && Contains("No such file"));
  CHECK_THROWS_WITH(SafetensorsFile("/dev/full"), Contains("/dev/full: is not a regular file"));
  const TemporaryFolder folder;
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(SafetensorsFile(folder / "pipe"), Contains("pipe: is not a regular file"));
}
