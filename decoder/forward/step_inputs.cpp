#include "decoder/forward/step_inputs.h"

#include <algorithm>

namespace hone::decoder {
namespace {

constexpr std::int64_t alignment = 256;

/// Gives out places one after the other.
class Places {
  public:
    template <class T>
    T* take(std::byte* base, std::int64_t count) {
        T* place = reinterpret_cast<T*>(base + next_);
        const auto bytes = count * static_cast<std::int64_t>(sizeof(T));
        next_ += (bytes + alignment - 1) / alignment * alignment;
        return place;
    }
    [[nodiscard]] std::int64_t size() const { return next_; }

  private:
    std::int64_t next_ = 0;
};

std::int64_t block_bytes(std::int64_t tokens, std::int64_t sequences, std::int64_t pages_a_sequence) {
    constexpr std::int64_t arrays = 13;
    return 8 * (2 * sequences) + 4 * (7 * sequences + 1 + 3 * tokens + sequences * pages_a_sequence) +
           arrays * alignment;
}

}  // namespace

StepInputs::StepInputs(const Gpu& gpu, std::int64_t tokens, std::int64_t sequences,
                       std::int64_t pages_a_sequence)
    : gpu_(gpu),
      tokens_(tokens),
      sequences_(sequences),
      pages_a_sequence_(pages_a_sequence),
      host_memory_(gpu.driver(), static_cast<std::size_t>(block_bytes(tokens, sequences, pages_a_sequence))),
      device_memory_(gpu.driver(), host_memory_.size()),
      host_(arrays_from(host_memory_.data())),
      device_(arrays_from(device_memory_.data())) {
    std::ranges::fill(host_memory_.span(), std::byte{0});
}

StepInputs::Arrays StepInputs::arrays_from(std::byte* base) const {
    Places places;
    Arrays arrays;
    arrays.seed = places.take<std::int64_t>(base, sequences_);
    arrays.counter = places.take<std::int64_t>(base, sequences_);
    arrays.temperature = places.take<float>(base, sequences_);
    arrays.top_k = places.take<std::int32_t>(base, sequences_);
    arrays.top_p = places.take<float>(base, sequences_);
    arrays.min_p = places.take<float>(base, sequences_);
    arrays.q_starts = places.take<std::int32_t>(base, sequences_ + 1);
    arrays.kv_lengths = places.take<std::int32_t>(base, sequences_);
    arrays.last_rows = places.take<std::int32_t>(base, sequences_);
    arrays.ids = places.take<std::int32_t>(base, tokens_);
    arrays.positions = places.take<std::int32_t>(base, tokens_);
    arrays.slots = places.take<std::int32_t>(base, tokens_);
    arrays.pages = places.take<std::int32_t>(base, sequences_ * pages_a_sequence_);
    return arrays;
}

void StepInputs::send(std::int64_t sequences) const {
    const auto* end = host_.pages + sequences * pages_a_sequence_;
    const auto bytes =
        static_cast<std::size_t>(reinterpret_cast<const std::byte*>(end) - host_memory_.data());
    runtime::check(
        gpu_.driver(),
        gpu_.driver().cuMemcpyHtoDAsync(device_memory_.address(), host_memory_.data(), bytes, gpu_.stream()),
        "copying a step's inputs to the GPU");
}

}  // namespace hone::decoder
