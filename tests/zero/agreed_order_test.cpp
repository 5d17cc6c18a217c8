#include "zero/agreed_order.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace sifr::test {
namespace {

// "La Rb Oc Cd": leases of a, release of b, opening of c, closing of d.
LeaseEvent event(std::string_view text) {
  const auto act = static_cast<LeaseAct>(std::string_view("LROC").find(text[0]));
  return {act, text[1] - 'a'};
}

std::vector<LeaseEvent> events(const std::string& text) {
  std::vector<LeaseEvent> result;
  for (std::size_t i = 0; i + 1 < text.size(); i += 3)
    result.push_back(event(std::string_view(text).substr(i, 2)));
  return result;
}

std::string text_of(std::span<const LeaseEvent> events) {
  std::string text;
  for (const LeaseEvent one : events) {
    if (!text.empty()) text += ' ';
    text += "LROC"[static_cast<int>(one.act)];
    text += static_cast<char>('a' + one.unit);
  }
  return text;
}

// A rank with its order, and what it left out.
struct Rank {
  explicit Rank(const std::string& first, int units = 4) : order(units, events(first)) {
    order.begin();
  }
  void does(const std::string& text) {
    for (const LeaseEvent one : events(text)) {
      order.reach(one, [&](LeaseEvent skipped) {
        left_out.push_back(skipped);
        return true;
      });
    }
  }
  std::string finish() {
    order.finish([&](LeaseEvent skipped) {
      left_out.push_back(skipped);
      return true;
    });
    return text_of(order.done());
  }
  void next_step() {
    order.adopt();
    order.begin();
    left_out.clear();
  }
  AgreedOrder order;
  std::vector<LeaseEvent> left_out;
};

constexpr const char* kForwardBack = "La Ra Lb Rb Lb Ob Cb Rb La Oa Ca Ra";

TEST_CASE("a rank that follows the order leaves nothing out", "[zero]") {
  Rank rank(kForwardBack);
  rank.does(kForwardBack);
  CHECK(rank.order.ahead().empty());
  CHECK(rank.finish() == kForwardBack);
  CHECK(rank.left_out.empty());
}

TEST_CASE("a later unit leaves out those between, in order", "[zero]") {
  Rank rank(kForwardBack);
  rank.does("Lb");
  CHECK(text_of(rank.left_out) == "La Ra");
  CHECK(text_of(rank.order.ahead()) == "Rb Lb Ob Cb Rb La Oa Ca Ra");
  CHECK(rank.finish() == kForwardBack);
}

TEST_CASE("ranks that leave out different units have equal logs", "[zero]") {
  Rank all(kForwardBack);
  all.does(kForwardBack);
  all.finish();
  for (const char* some : {"", "La", "Lb Rb Lb Ob Cb Rb", "La Ra La Oa Ca Ra", "La Oa Ca"}) {
    Rank one(kForwardBack);
    one.does(some);
    one.finish();
    CHECK(one.order.hash() == all.order.hash());
  }
}

TEST_CASE("what does not lie ahead is an extra, and changes the log", "[zero]") {
  Rank all(kForwardBack);
  all.does(kForwardBack);
  all.finish();
  for (const char* other : {"Lb Rb La Ra La", "La Lc", "La Oa Ca Lb", "Lb Ob Cb Ob Cb"}) {
    Rank one(kForwardBack);
    one.does(other);
    one.finish();
    CHECK(one.order.hash() != all.order.hash());
  }
}

TEST_CASE("the first departure from the order is kept, with what the order says there", "[zero]") {
  Rank rank(kForwardBack);
  rank.does("La Ra");
  CHECK_FALSE(rank.order.departure());
  rank.does("Ob La Lc");
  CHECK(rank.order.departure()->made == event("Ob"));
  CHECK(rank.order.departure()->expected == event("Lb"));
  CHECK(text_of(rank.order.own()) == "La Ob La Lc");
  rank.order.begin();
  CHECK_FALSE(rank.order.departure());
  CHECK(rank.order.own().empty());
  rank.does(kForwardBack);
  CHECK_FALSE(rank.order.departure());
  rank.does("La");
  CHECK(rank.order.departure()->made == event("La"));
  CHECK_FALSE(rank.order.departure()->expected);
}

TEST_CASE("releases never skip and do not count in the hash", "[zero]") {
  Rank early(kForwardBack);
  early.does("La Ra Lb Rb Lb Ob Cb Rb La Oa Ca Ra");
  Rank late(kForwardBack);
  late.does("La Lb Ra Lb Rb Ob Cb La Rb Oa Ca Ra");
  CHECK(early.left_out.empty());
  early.finish();
  late.finish();
  CHECK(early.order.hash() == late.order.hash());
}

TEST_CASE("a release moves with its lease, and is recorded once", "[zero]") {
  Rank rank("La Lb Ra Rb");
  rank.does("La Ra Lb Rb");
  CHECK(rank.finish() == "La Ra Lb Rb Ra Rb");
  rank.next_step();
  CHECK(text_of(rank.order.ahead()) == "La Ra Lb Rb");
}

TEST_CASE("a refused event comes later, as an extra", "[zero]") {
  Rank rank("La Ca Lb Cb");
  const auto refuse = [](LeaseEvent skipped) { return skipped.act != LeaseAct::kClose; };
  rank.order.reach(event("Lb"), refuse);
  CHECK(text_of(rank.order.done()) == "La Lb");
  rank.does("Ca");
  CHECK(rank.finish() == "La Lb Ca Cb");
}

TEST_CASE("the last micro-batch of a step becomes the order", "[zero]") {
  Rank rank("La Ra Lb Rb Lc Rc");
  rank.does("Lc Rc Lb Rb La Ra");
  CHECK(rank.finish() == "La Ra Lb Rb Lc Rc Lb Rb La Ra");
  rank.next_step();
  CHECK(text_of(rank.order.ahead()) == "Lc Rc Lb Rb La Ra");
}

TEST_CASE("what any rank used in any micro-batch keeps its place", "[zero]") {
  Rank first("La Ra Lb Rb Lc Rc La Ra");
  Rank second("La Ra Lb Rb Lc Rc La Ra");
  for (int micro = 0; micro < 2; ++micro) {
    first.order.begin();
    second.order.begin();
    first.does(micro == 0 ? "La Ra La Ra" : "La Ra");
    second.does("Lc Rc");
    CHECK(first.finish() == second.finish());
  }
  first.order.merge_uses(second.order.uses());
  second.order.merge_uses(first.order.uses());
  first.next_step();
  second.next_step();
  // b: nobody used it, so it keeps its place; a's second lease was used in the first micro-batch.
  CHECK(text_of(first.order.ahead()) == "La Ra Lb Rb Lc Rc La Ra");
  CHECK(text_of(second.order.ahead()) == text_of(first.order.ahead()));
}

TEST_CASE("a use that nobody makes any more falls out, a unit that nobody uses stays", "[zero]") {
  Rank rank("La Ra La Ra Lb Rb Lb Ob Cb Rb");
  rank.does("La Ra");
  rank.finish();
  rank.next_step();
  CHECK(text_of(rank.order.ahead()) == "La Ra Lb Rb Lb Ob Cb Rb");
}

TEST_CASE("a unit never falls out of the order, wherever an earlier micro-batch used it",
          "[zero]") {
  Rank rank("Lb Ob Cb Rb La Oa Ca Ra");
  rank.does("La Oa Ca Ra Lb Ob Cb Rb");  // b's second places are used
  rank.finish();
  rank.order.begin();
  rank.does("La Oa Ca Ra");  // and b's only ones left out
  rank.finish();
  rank.next_step();
  CHECK(text_of(rank.order.ahead()) == "Lb Ob Cb Rb La Oa Ca Ra");
}

TEST_CASE("a step that was cut short leaves the order as it was", "[zero]") {
  Rank rank(kForwardBack);
  rank.does("La");
  rank.finish();
  rank.order.forget();
  rank.order.begin();
  CHECK(text_of(rank.order.ahead()) == kForwardBack);
  rank.does(kForwardBack);
  rank.finish();
  rank.next_step();
  CHECK(text_of(rank.order.ahead()) == kForwardBack);
}

TEST_CASE("whether some rank closed a unit is known from the merged uses", "[zero][PAR11]") {
  Rank first(kForwardBack);
  Rank second(kForwardBack);
  second.does("Ob Cb");
  CHECK_FALSE(first.order.is_closed_by_some(1));
  first.order.merge_uses(second.order.uses());
  CHECK(first.order.is_closed_by_some(1));
  CHECK_FALSE(first.order.is_closed_by_some(0));
}

TEST_CASE("more uses than bits share the last one", "[zero]") {
  std::string many;
  for (int i = 0; i < 300; ++i)
    many += "La Ra ";
  Rank rank("La Ra");
  rank.does(many);
  rank.finish();
  rank.next_step();
  CHECK(rank.order.ahead().size() == 600);
}

}  // namespace
}  // namespace sifr::test
