#include "config_schema/detail/source_text.hpp"

#include <algorithm>

namespace sifr::detail {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Past the closing quote of the string that opens at `begin`, or the end of the text.
std::size_t end_of_string(std::string_view text, std::size_t begin) {
  std::size_t i = begin + 1;
  while (i < text.size() && text[i] != '"')
    i += text[i] == '\\' ? 2 : 1;
  return std::min(i + 1, text.size());
}

std::size_t end_of_comment(std::string_view text, std::size_t begin) {
  if (text.substr(begin, 2) == "/*") {
    const std::size_t close = text.find("*/", begin + 2);
    return close == std::string_view::npos ? close : close + 2;
  }
  if (text[begin] == '#' || text.substr(begin, 2) == "//") {
    return std::min(text.find('\n', begin), text.size());
  }
  return begin;
}

}  // namespace

Position PositionCursor::advance_to(std::size_t offset) {
  for (; offset_ < std::min(offset, text_.size()); ++offset_) {
    const auto byte = static_cast<unsigned char>(text_[offset_]);
    if (byte == '\n') {
      position_ = {position_.line + 1, 1};
    } else if ((byte & 0xC0U) != 0x80U) {  // 10xxxxxx belongs to the character before it
      ++position_.column;
    }
  }
  return position_;
}

SourceText::SourceText(std::string_view text, Problems& problems) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  json_ = text;
  if (const std::size_t zero = json_.find('\0'); zero != std::string::npos) {
    problems.add("", position(zero), "a NUL byte; a config is a text file in UTF-8");
    return;
  }
  blank_comments_and_commas(problems);
  if (problems.is_empty() && std::all_of(json_.begin(), json_.end(), is_space)) {
    problems.add("", {1, 1}, "the file is empty; the smallest config is {}");
  }
}

std::size_t SourceText::blank_comment(std::size_t begin, Problems& problems) {
  const std::size_t end = end_of_comment(json_, begin);
  if (end == std::string::npos) {
    problems.add("", position(begin), "this comment is never closed; end it with */");
    return json_.size();
  }
  for (std::size_t i = begin; i < end; ++i) {
    if (json_[i] != '\n') json_[i] = ' ';
  }
  return end;
}

void SourceText::blank_comments_and_commas(Problems& problems) {
  char before_comma =
      '[';  // what stood before the last comma: after [ { , : it is a mistake to report
  char last = '[';
  std::size_t comma = 0;
  std::size_t i = 0;
  while (i < json_.size()) {
    const std::size_t after_comment = blank_comment(i, problems);
    if (after_comment > i || is_space(json_[i])) {
      i = std::max(after_comment, i + 1);
      continue;
    }
    const char c = json_[i];
    const bool closes = c == '}' || c == ']';
    if (closes && last == ',' && std::string_view("[{,:").find(before_comma) == std::string::npos) {
      json_[comma] = ' ';
    }
    if (c == ',') {
      before_comma = last;
      comma = i;
    }
    last = c;
    i = c == '"' ? end_of_string(json_, i) : i + 1;
  }
}

}  // namespace sifr::detail
