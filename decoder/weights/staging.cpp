#include "decoder/weights/staging.h"

#include <algorithm>
#include <utility>

namespace hone::decoder {

struct Staging::Place {
    Place(const runtime::Driver& driver, std::size_t bytes)
        : memory(driver, bytes), stream(runtime::create_stream(driver)) {}

    runtime::PinnedBuffer<std::byte> memory;
    runtime::Stream stream;
};

Staging::Staging(const Gpu& gpu, std::int64_t place_bytes)
    : gpu_(gpu), place_bytes_(static_cast<std::size_t>(place_bytes)) {}

Staging::~Staging() = default;

std::unique_ptr<Staging::Place> Staging::take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return nullptr;
    std::unique_ptr<Place> place = std::move(free_.back());
    free_.pop_back();
    return place;
}

void Staging::send(runtime::DeviceSpan<std::byte> to, const std::function<void(std::span<std::byte>)>& fill) {
    std::unique_ptr<Place> place = take();
    if (!place) place = std::make_unique<Place>(gpu_.driver(), place_bytes_);
    const std::span<std::byte> bytes = place->memory.span().first(to.bytes());
    fill(bytes);
    const runtime::Driver& driver = gpu_.driver();
    const std::string what = fmt::format("copying {} bytes to the GPU", to.bytes());
    runtime::check(
        driver, driver.cuMemcpyHtoDAsync(to.address, bytes.data(), bytes.size(), place->stream.get()), what);
    gpu_.wait_for_load(place->stream.get());
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(place));
}

void Staging::send(runtime::DeviceSpan<std::byte> to, std::span<const std::byte> from) {
    for (std::size_t at = 0; at < from.size(); at += place_bytes_) {
        const std::span<const std::byte> piece = from.subspan(at, std::min(place_bytes_, from.size() - at));
        send(to.subspan(at, piece.size()),
             [&](std::span<std::byte> bytes) { std::ranges::copy(piece, bytes.begin()); });
    }
}

}  // namespace hone::decoder
