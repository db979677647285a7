#include "decoder/forward/drawn_tokens.h"

#include <algorithm>
#include <atomic>

namespace hone::decoder {

DrawnTokens::DrawnTokens(const Gpu& gpu, std::int64_t rows)
    : rows_(static_cast<std::size_t>(rows)), memory_(gpu.driver(), turns * rows_) {
    std::ranges::fill(memory_.span(), 0);
}

std::span<std::int32_t> DrawnTokens::of(std::size_t turn) const {
    return memory_.span().subspan(turn * rows_, rows_);
}

void DrawnTokens::expect(std::size_t turn, std::int64_t rows) const {
    std::ranges::fill(of(turn).first(static_cast<std::size_t>(rows)), not_drawn);
}

bool DrawnTokens::are_there(std::size_t turn, std::int64_t rows) const {
    return std::ranges::none_of(of(turn).first(static_cast<std::size_t>(rows)), [](std::int32_t& token) {
        return std::atomic_ref(token).load(std::memory_order_acquire) == not_drawn;
    });
}

}  // namespace hone::decoder
