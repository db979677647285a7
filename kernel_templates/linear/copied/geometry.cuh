// Variant copied (kernel.cu): how rows are copied. Plain C++ that both the host's plan and the kernel
// include.
#pragma once

namespace hone::linear::copies {

/// Elements of 16 bytes, which a thread copies.
inline constexpr int chunk = 8;
inline constexpr int threads = 256;

constexpr long long chunks_of(long long in) { return (in + chunk - 1) / chunk; }
/// Elements from the beginning of a copied row to the next one's.
constexpr long long pitch_of(long long in) { return chunks_of(in) * chunk; }

}  // namespace hone::linear::copies
