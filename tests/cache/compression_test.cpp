#include "cache/compression.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace hone::cache;

namespace {

using Bytes = std::vector<std::byte>;

/// From noise to one byte over and over: copies of earlier parts between random bytes.
Bytes some_bytes(std::mt19937& random) {
    Bytes bytes;
    const std::size_t size = random() % (random() % 4 == 0 ? 200'000 : 300);
    const unsigned symbols = 1 + random() % 256;
    while (bytes.size() < size) {
        const std::size_t run = 1 + random() % (random() % 8 == 0 ? 3000 : 20);
        const bool copy = !bytes.empty() && random() % 2 == 0;
        const std::size_t from = copy ? random() % bytes.size() : 0;
        for (std::size_t i = 0; i < run; ++i)
            bytes.push_back(copy ? bytes[from + i] : static_cast<std::byte>(random() % symbols));
    }
    return bytes;
}

Bytes bytes_of(std::initializer_list<int> values) {
    Bytes bytes;
    for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
    return bytes;
}

}  // namespace

TEST_CASE("what was compressed comes back, and grows by little at worst") {
    std::mt19937 random(4);
    for (int i = 0; i < 1500; ++i) {
        const Bytes bytes = some_bytes(random);
        const Bytes block = compress(bytes);
        CHECK(decompress(block, bytes.size()) == bytes);
        CHECK(block.size() <= bytes.size() + bytes.size() / 255 + 16);
        CHECK_FALSE(decompress(block, bytes.size() + 1));
        if (!bytes.empty()) CHECK_FALSE(decompress(block, bytes.size() - 1));
    }
    CHECK(compress(Bytes(100'000)).size() < 500);
}

TEST_CASE("a block that another LZ4 made is read") {
    // Token 0x35: three literals, a match of 4 + 5 at distance 3; then five literals, as the format demands.
    const Bytes block = bytes_of({0x35, 'a', 'b', 'c', 3, 0, 0x50, 'v', 'w', 'x', 'y', 'z'});
    const std::string text = "abcabcabcabcvwxyz";
    const auto bytes = decompress(block, text.size());
    REQUIRE(bytes);
    CHECK(std::ranges::equal(*bytes, text, {}, [](std::byte b) { return static_cast<char>(b); }));
}

TEST_CASE("damaged blocks never read or write beside their memory") {
    std::mt19937 random(7);
    for (int i = 0; i < 3000; ++i) {
        const Bytes bytes = some_bytes(random);
        Bytes block = compress(bytes);
        for (int flips = 0; flips < 3; ++flips)
            block[random() % block.size()] ^= static_cast<std::byte>(1U << random() % 8);
        if (random() % 3 == 0) block.resize(random() % block.size());
        const auto back = decompress(block, bytes.size());
        if (back) CHECK(back->size() == bytes.size());
    }
    CHECK_FALSE(decompress({}, std::size_t{1} << 60));
    CHECK_FALSE(decompress(bytes_of({0x0f, 1, 0}), 4));       // a match before anything is there
    CHECK_FALSE(decompress(bytes_of({0x10, 1, 0, 0}), 100));  // distance 0
}
