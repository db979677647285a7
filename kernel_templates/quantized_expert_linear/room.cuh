// What the workspace of a call holds. Plain C++ that plans and kernels include alike.
#pragma once

namespace hone::quantized_expert_linear {

/// Results by pair that are to be combined, then codes of x by place, then their scales.
struct Room {
    long long codes_at = 0;
    long long scales_at = 0;
    long long bytes = 0;
};

/// `groups`: scales of a row of x, 0 where x is multiplied as it is; `result_bytes`: those of a place's
/// results, 0 where nothing is combined. Each part begins at a multiple of 256 bytes.
constexpr Room room_of(long long places, long long in, long long groups, long long result_bytes) {
    const auto whole = [](long long bytes) { return (bytes + 255) / 256 * 256; };
    const long long results = places * result_bytes;
    if (groups == 0) return {.codes_at = 0, .scales_at = 0, .bytes = results};
    const long long codes_at = whole(results);
    const long long scales_at = whole(codes_at + places * in);
    return {.codes_at = codes_at, .scales_at = scales_at, .bytes = scales_at + places * groups * 4};
}

}  // namespace hone::quantized_expert_linear
