// Random numbers that the host and every GPU draw alike. Plain C++: kernels and the host's tests include it.
#pragma once

namespace hone {

/// The upper half of a product.
inline unsigned high_product(unsigned a, unsigned b) {
    return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}

/// 64 random bits for a seed and a counter: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random
/// numbers: as easy as 1, 2, 3; 2011), the first two words of block `counter` under the key `seed`.
inline unsigned long long random_bits(unsigned long long seed, unsigned long long counter) {
    unsigned key[2] = {static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32)};
    unsigned word[4] = {static_cast<unsigned>(counter), static_cast<unsigned>(counter >> 32), 0, 0};
    for (int round = 0; round < 10; ++round) {
        const unsigned high[2] = {high_product(0xD2511F53U, word[0]), high_product(0xCD9E8D57U, word[2])};
        const unsigned low[2] = {0xD2511F53U * word[0], 0xCD9E8D57U * word[2]};
        word[0] = high[1] ^ word[1] ^ key[0];
        word[1] = low[1];
        word[2] = high[0] ^ word[3] ^ key[1];
        word[3] = low[0];
        key[0] += 0x9E3779B9U;
        key[1] += 0xBB67AE85U;
    }
    return static_cast<unsigned long long>(word[1]) << 32 | word[0];
}

}  // namespace hone
