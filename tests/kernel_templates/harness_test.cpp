// What inputs are filled with, as far as it is plain C++ (kernel_templates/harness/permutation.cuh).
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <vector>

#include "kernel_templates/harness/permutation.cuh"

using hone::harness::permuted;
using hone::harness::Word;

TEST_CASE("a permutation has every number once, whatever the seed and the count") {
    CHECK(rc::check("every number once", [] {
        const auto elements = *rc::gen::inRange<Word>(1, 5000);
        const auto seed = *rc::gen::arbitrary<Word>();
        std::vector<bool> seen(elements, false);
        for (Word i = 0; i < elements; ++i) {
            const Word at = permuted(seed, i, elements);
            RC_ASSERT(at < elements);
            RC_ASSERT(!seen[at]);
            seen[at] = true;
        }
    }));
}

TEST_CASE("permutations of two seeds differ, and hardly a number stays at its place") {
    constexpr Word elements = 4096;
    int in_place = 0;
    int equal = 0;
    for (Word i = 0; i < elements; ++i) {
        in_place += permuted(1, i, elements) == i ? 1 : 0;
        equal += permuted(1, i, elements) == permuted(2, i, elements) ? 1 : 0;
    }
    CHECK(in_place < 20);
    CHECK(equal < 20);
}
