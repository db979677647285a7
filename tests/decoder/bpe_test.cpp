#include "decoder/tokenizer/bpe.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "decoder/error.h"
#include "decoder/tokenizer/word_cache.h"

using namespace hone::decoder;

namespace {

using Ids = std::vector<int>;
using TextPairs = std::vector<std::pair<std::string, std::string>>;

Vocabulary vocabulary_of(const std::vector<std::string>& tokens) {
    Vocabulary vocabulary;
    for (const std::string& token : tokens) vocabulary.add(token, static_cast<int>(vocabulary.size()));
    return vocabulary;
}

Bpe bpe_of(const Vocabulary& vocabulary, const TextPairs& pairs, BpeOptions options = {}) {
    const std::vector<std::pair<std::string_view, std::string_view>> views(pairs.begin(), pairs.end());
    return {vocabulary, views, options};
}

Ids encoded(const Bpe& bpe, std::string_view word) {
    Ids ids;
    BpeWorkspace workspace;
    bpe.encode(word, ids, workspace);
    return ids;
}

/// The definition: the pair of the lowest rank that is there, the leftmost of them, again and again.
std::vector<std::string> joined_slowly(std::vector<std::string> parts, const TextPairs& pairs) {
    for (bool again = true; again;) {
        again = false;
        for (const auto& [left, right] : pairs) {
            for (std::size_t i = 0; i + 1 < parts.size() && !again; ++i) {
                if (parts[i] != left || parts[i + 1] != right) continue;
                parts[i] += right;
                parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1);
                again = true;
            }
            if (again) break;
        }
    }
    return parts;
}

/// Merges of earlier tokens, drawn, without one twice.
TextPairs drawn_pairs() {
    std::vector<std::string> tokens{"a", "b", "c"};
    std::set<std::pair<std::string, std::string>> known;
    TextPairs pairs;
    for (int i = *rc::gen::inRange(1, 25); i > 0; --i) {
        const std::pair pair{*rc::gen::elementOf(tokens), *rc::gen::elementOf(tokens)};
        if (pair.first.size() + pair.second.size() > 12 || !known.insert(pair).second) continue;
        pairs.push_back(pair);
        tokens.push_back(pair.first + pair.second);
    }
    return pairs;
}

/// Ids of a word of a, b and c, joined by drawn pairs, against the definition.
void check_joined_by_drawn_pairs(const std::string& word) {
    TextPairs pairs = drawn_pairs();
    if (*rc::gen::arbitrary<bool>()) std::ranges::reverse(pairs);
    std::set<std::string> tokens{"a", "b", "c"};
    for (const auto& [left, right] : pairs) tokens.insert(left + right);
    const Vocabulary vocabulary = vocabulary_of({tokens.begin(), tokens.end()});
    std::vector<std::string> characters;
    for (const char character : word) characters.emplace_back(1, character);
    Ids expected;
    for (const std::string& part : joined_slowly(characters, pairs))
        expected.push_back(*vocabulary.find(part));
    RC_ASSERT(encoded(bpe_of(vocabulary, pairs), word) == expected);
}

}  // namespace

TEST_CASE("words are joined as the definition says, whatever the order of the merges") {
    CHECK(rc::check([] {
        const auto word = *rc::gen::container<std::string>(rc::gen::element('a', 'b', 'c'));
        check_joined_by_drawn_pairs(word);
    }));
}

TEST_CASE("long words, too, are joined as the definition says") {
    CHECK(rc::check([] {
        auto word = *rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::element('a', 'b', 'c')));
        while (word.size() < 400) word += word;
        check_joined_by_drawn_pairs(word);
    }));
}

TEST_CASE("candidates come by rank and place, whatever came before them") {
    CHECK(rc::check([] {
        MergeQueue queue;
        std::set<std::pair<std::uint32_t, std::uint32_t>> expected;
        queue.begin(*rc::gen::element<std::size_t>(10, 1000));
        for (int step = *rc::gen::inRange(0, 200); step > 0; --step) {
            if (*rc::gen::inRange(0, 3) > 0) {
                const std::pair drawn{*rc::gen::inRange(0U, 8U), *rc::gen::inRange(0U, 1000U)};
                if (expected.insert(drawn).second) queue.push({drawn.first, drawn.second});
            } else if (!expected.empty()) {
                const auto [rank, position] = *expected.begin();
                RC_ASSERT((queue.pop() == MergeQueue::Candidate{rank, position}));
                expected.erase(expected.begin());
            }
        }
        for (const auto& [rank, position] : expected)
            RC_ASSERT((queue.pop() == MergeQueue::Candidate{rank, position}));
        RC_ASSERT(!queue.pop());
    }));
}

TEST_CASE("characters without a token: none, the unknown token, their bytes") {
    const Vocabulary vocabulary = vocabulary_of({"<unk>", "a", "<0xC3>", "<0xA9>"});
    const std::string word =
        "a\xC3\xA9\xE4\xBD\xA0\xE4\xBD\xA0"
        "a";  // a, e acute, a Chinese character twice, a
    CHECK(encoded(bpe_of(vocabulary, {}), word) == Ids{1, 1});
    CHECK(encoded(bpe_of(vocabulary, {}, {.unknown = 0}), word) == Ids{1, 0, 0, 0, 1});
    CHECK(encoded(bpe_of(vocabulary, {}, {.unknown = 0, .fuse_unknown = true}), word) == Ids{1, 0, 1});
    CHECK(encoded(bpe_of(vocabulary, {}, {.unknown = 0, .fuse_unknown = true, .byte_fallback = true}),
                  word) == Ids{1, 2, 3, 0, 1});
}

TEST_CASE("at byte level words are bytes, and the vocabulary has their characters") {
    const Vocabulary vocabulary = vocabulary_of({"\xC4\xA0", "a",
                                                 "\xC4\xA0"
                                                 "a",
                                                 "\xC3\xBF"});  // space, a, both, byte FF
    const Bpe bpe = bpe_of(vocabulary, {{"\xC4\xA0", "a"}}, {.byte_level = true});
    CHECK(encoded(bpe, " a\xFF") == Ids{2, 3});
}

TEST_CASE("a word that is a token stays whole where merges are ignored") {
    const Vocabulary vocabulary = vocabulary_of({"a", "b", "ab", "aab"});
    CHECK(encoded(bpe_of(vocabulary, {{"a", "b"}}), "aab") == Ids{0, 2});
    CHECK(encoded(bpe_of(vocabulary, {{"a", "b"}}, {.ignore_merges = true}), "aab") == Ids{3});
}

TEST_CASE("text may be cut before marks only where no merge crosses them") {
    const std::string mark = "\xE2\x96\x81";
    const Vocabulary vocabulary = vocabulary_of({mark, "a", mark + "a", "a" + mark, mark + mark});
    CHECK(bpe_of(vocabulary, {{mark, "a"}, {mark, mark}}).cuts_at_marks());
    CHECK_FALSE(bpe_of(vocabulary, {{"a", mark}}).cuts_at_marks());
    CHECK_FALSE(bpe_of(vocabulary, {}, {.ignore_merges = true}).cuts_at_marks());
    CHECK_FALSE(bpe_of(vocabulary_of({"a"}), {}).cuts_at_marks());
}

TEST_CASE("a long run of one character goes through no heap") {
    const Vocabulary vocabulary = vocabulary_of({"a", "aa", "aaaa", "aaaaaaaa"});
    const Bpe bpe = bpe_of(vocabulary, {{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}});
    Ids ids;
    BpeWorkspace workspace;
    bpe.encode(std::string(100'007, 'a'), ids, workspace);
    CHECK(workspace.queue.heaped() == 0);
    Ids expected(12'500, 3);
    expected.insert(expected.end(), {2, 1, 0});
    CHECK(ids == expected);
}

TEST_CASE("a merge of what is no token is refused") {
    const Vocabulary vocabulary = vocabulary_of({"a", "b"});
    CHECK_THROWS_WITH_AS(bpe_of(vocabulary, {{"a", "b"}}),
                         "merge 0 of 'a' and 'b': 'ab' is not in the vocabulary", DecoderError);
    CHECK_THROWS_AS(bpe_of(vocabulary, {{"a", "c"}}), DecoderError);
}

TEST_CASE("a long word takes no time that grows with its square") {
    const Vocabulary vocabulary = vocabulary_of({"a", "aa", "aaaa"});
    CHECK(encoded(bpe_of(vocabulary, {{"a", "a"}, {"aa", "aa"}}), std::string(1'000'000, 'a')).size() ==
          250'000);
}

TEST_CASE("the cache gives what the model gives") {
    WordCache cache(2);
    const auto letters = [](std::string_view word, Ids& ids) {
        for (const char letter : word) ids.push_back(letter);
    };
    CHECK(rc::check([&] {
        const auto word = *rc::gen::container<std::string>(rc::gen::element('a', 'b'));
        for (int i = 0; i < 2 && !word.empty(); ++i) {
            Ids ids{7};
            cache.encode(word, ids, letters);
            Ids expected{7};
            letters(word, expected);
            RC_ASSERT(ids == expected);
        }
    }));
}
