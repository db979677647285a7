// Random numbers and permutations as functions of an index: what the harness fills inputs with. Plain C++,
// for kernels and tests alike.
#pragma once

namespace hone::harness {

using Word = unsigned long long;

constexpr Word mix(Word x) {  // splitmix64
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

/// A permutation of 0 to elements - 1: four rounds of a Feistel network over the next even number of bits,
/// walked on until the result is below `elements` (Black and Rogaway, "Ciphers with arbitrary finite
/// domains").
constexpr Word permuted(Word seed, Word index, Word elements) {
    int half = 1;
    while ((Word{1} << (2 * half)) < elements) ++half;
    const Word mask = (Word{1} << half) - 1;
    do {
        Word left = index >> half;
        Word right = index & mask;
        for (int round = 0; round < 4; ++round) {
            const Word mixed = left ^ (mix(seed + (static_cast<Word>(round) << 32) + right) & mask);
            left = right;
            right = mixed;
        }
        index = left << half | right;
    } while (index >= elements);
    return index;
}

}  // namespace hone::harness
