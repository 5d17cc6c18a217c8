#include "config_schema/detail/json_tree.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace sifr::detail {
namespace {

constexpr std::size_t kDeepest = 64;
constexpr std::size_t kLongestMessage = 300;

// Reads characters for nlohmann's lexer and leaves behind how many it took.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::size_t* count) : at_(at), count_(count) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*count_;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  std::size_t* count_;
};

// nlohmann's events become nodes. Its DOM would drop keys written twice and has no positions.
class TreeBuilder {
 public:
  TreeBuilder(const SourceText& source, const std::size_t& consumed, Problems& problems)
      : source_(source), consumed_(consumed), problems_(problems), cursor_(source.json()) {}

  bool null() { return leaf(JsonNode::Kind::kNull, "null"); }
  bool boolean(bool value) { return leaf(JsonNode::Kind::kBool, value ? "true" : "false"); }
  bool number_integer(std::int64_t /*value*/) { return number(); }
  bool number_unsigned(std::uint64_t /*value*/) { return number(); }
  bool number_float(double /*value*/, const std::string& /*text*/) { return number(); }
  bool string(std::string& value) { return leaf(JsonNode::Kind::kString, std::move(value)); }
  bool binary(std::vector<std::uint8_t>& /*value*/) { return false; }  // never in JSON text
  bool start_object(std::size_t /*size*/) { return open(JsonNode::Kind::kObject); }
  bool start_array(std::size_t /*size*/) { return open(JsonNode::Kind::kArray); }
  bool key(std::string& value) {
    JsonMember member;
    member.key = std::move(value);
    member.position = next_position();
    stack_.back().members.push_back(std::move(member));
    return true;
  }
  bool end_object() {
    refuse_duplicates(stack_.back());
    return close();
  }
  bool end_array() { return close(); }
  bool parse_error(std::size_t offset, const std::string& token, const std::exception& error);

  JsonNode take_root() { return std::move(root_); }

 private:
  bool leaf(JsonNode::Kind kind, std::string text) {
    JsonNode node;
    node.kind = kind;
    node.position = next_position();
    node.text = std::move(text);
    return place(std::move(node));
  }
  bool number();
  bool open(JsonNode::Kind kind);
  bool close();
  bool place(JsonNode node);
  std::size_t next_token();
  Position next_position() { return cursor_.advance_to(next_token()); }
  std::string pointer() const;
  void refuse_duplicates(const JsonNode& object);

  const SourceText& source_;
  const std::size_t& consumed_;  // by the lexer: the end of the last token
  Problems& problems_;
  PositionCursor cursor_;
  std::size_t token_end_ = 0;
  std::vector<JsonNode> stack_;
  JsonNode root_;
};

// Where the token starts that the lexer has just read.
std::size_t TreeBuilder::next_token() {
  const std::size_t start = source_.json().find_first_not_of(" \t\r\n,:", token_end_);
  token_end_ = std::max(consumed_, token_end_);
  return std::min(start, source_.json().size());
}

bool TreeBuilder::number() {
  const std::size_t start = next_token();
  const std::string& json = source_.json();
  token_end_ = std::min(json.find_first_not_of("+-.0123456789eE", start), json.size());
  JsonNode node;
  node.kind = JsonNode::Kind::kNumber;
  node.position = cursor_.advance_to(start);
  node.text = json.substr(start, token_end_ - start);
  return place(std::move(node));
}

bool TreeBuilder::open(JsonNode::Kind kind) {
  JsonNode node;
  node.kind = kind;
  node.position = next_position();
  if (stack_.size() == kDeepest) {
    problems_.add("", node.position, fmt::format("more than {} levels of nesting", kDeepest));
    return false;
  }
  stack_.push_back(std::move(node));
  return true;
}

bool TreeBuilder::close() {
  (void)next_token();
  JsonNode node = std::move(stack_.back());
  stack_.pop_back();
  return place(std::move(node));
}

bool TreeBuilder::place(JsonNode node) {
  if (stack_.empty()) {
    root_ = std::move(node);
  } else if (JsonNode& parent = stack_.back(); parent.is(JsonNode::Kind::kObject)) {
    parent.members.back().value = std::move(node);
  } else {
    parent.elements.push_back(std::move(node));
  }
  return true;
}

// Of the value that is being read.
std::string TreeBuilder::pointer() const {
  std::string result;
  for (const JsonNode& open : stack_) {
    if (open.is(JsonNode::Kind::kArray)) {
      result += fmt::format("/{}", open.elements.size());
    } else if (!open.members.empty()) {
      result = join_pointer(result, open.members.back().key);
    }
  }
  return result;
}

void TreeBuilder::refuse_duplicates(const JsonNode& object) {
  std::vector<const JsonMember*> order;
  order.reserve(object.members.size());
  for (const JsonMember& member : object.members)
    order.push_back(&member);
  std::stable_sort(
      order.begin(), order.end(), [](const auto* a, const auto* b) { return a->key < b->key; });
  std::string parent;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order[i]->key != order[i - 1]->key) continue;
    if (parent.empty()) {
      parent = pointer();
      parent.resize(parent.size() - join_pointer("", object.members.back().key).size());
    }
    problems_.add(join_pointer(parent, order[i]->key),
                  order[i]->position,
                  fmt::format("\"{}\" is written twice, first in line {}; remove one",
                              printable(order[i]->key),
                              order[i - 1]->position.line));
  }
}

bool TreeBuilder::parse_error(std::size_t offset,
                              const std::string& /*token*/,
                              const std::exception& error) {
  // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while …"
  std::string text = error.what();
  if (const std::size_t start = text.find("syntax error"); start != std::string::npos) {
    text.erase(0, start);
  } else if (const std::size_t close = text.find("] "); close != std::string::npos) {
    text.erase(0, close + 2);
  }
  problems_.add(
      pointer(), source_.position(offset == 0 ? 0 : offset - 1), printable(text, kLongestMessage));
  return false;
}

}  // namespace

const JsonNode* JsonNode::find(std::string_view key) const {
  const auto found = std::find_if(
      members.begin(), members.end(), [&](const JsonMember& member) { return member.key == key; });
  return found == members.end() ? nullptr : &found->value;
}

std::string JsonNode::described() const {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return text;
    case Kind::kNumber:
      return fmt::format("the number {}", printable(text));
    case Kind::kString:
      return fmt::format("the string \"{}\"", printable(text));
    case Kind::kArray:
      return "a list";
    case Kind::kObject:
      return "an object";
  }
  return {};
}

JsonNode parse_tree(const SourceText& source, Problems& problems) {
  const char* begin = source.json().data();
  std::size_t consumed = 0;
  TreeBuilder builder(source, consumed, problems);
  const bool is_read =
      nlohmann::json::sax_parse(CountingIterator(begin, &consumed),
                                CountingIterator(begin + source.json().size(), nullptr),
                                &builder);
  JsonNode root = builder.take_root();
  if (is_read && root.is(JsonNode::Kind::kObject)) return root;
  if (is_read) {
    problems.add("", root.position, "a config is an object, {…}, but this is " + root.described());
  }
  JsonNode empty;
  empty.kind = JsonNode::Kind::kObject;
  return empty;
}

}  // namespace sifr::detail
