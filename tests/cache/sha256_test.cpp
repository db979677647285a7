#include "cache/sha256.h"

#include <doctest/doctest.h>

#include <string>

using hone::cache::sha256_hex;

// NIST, FIPS 180-4 examples and the CAVP short and long message vectors.
TEST_CASE("SHA-256 gives the digests that NIST publishes") {
    CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK(
        sha256_hex(
            "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrs"
            "mnopqrstnopqrstu") == "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
    CHECK(sha256_hex(std::string(1'000'000, 'a')) ==
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    CHECK(sha256_hex("\xd3") == "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1");
}

TEST_CASE("SHA-256 pads right at every length around a block") {
    // Digests of n bytes 'x', chained; the final value was computed with sha256sum.
    std::string chain;
    for (std::size_t n = 50; n <= 130; ++n) chain += sha256_hex(std::string(n, 'x'));
    CHECK(sha256_hex(chain) == "bfae5272365759c9a8be930eaeaf8ac59f98a0969612db286641d5e114d94e14");
}
