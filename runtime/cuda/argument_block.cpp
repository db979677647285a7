#include "runtime/cuda/argument_block.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <stdexcept>

namespace hone::runtime {
namespace {

// A narrow parameter is the low bytes of its eight.
static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(Scalar) == 8 && sizeof(CUtensorMap) == 128 && alignof(CUtensorMap) % 64 == 0);

const void* source_of(KernelArg::Kind kind, std::size_t index, const ArgumentSources& sources) noexcept {
    switch (kind) {
        case KernelArg::Kind::pointer: return &sources.call.pointers[index];
        case KernelArg::Kind::scalar:
        case KernelArg::Kind::narrow:
        case KernelArg::Kind::real: return &sources.call.scalars[index];
        case KernelArg::Kind::tensor_map: return &sources.maps[index];
        case KernelArg::Kind::value:
        case KernelArg::Kind::narrow_value: break;
    }
    return &sources.values[index];
}

}  // namespace

ArgumentLayout::ArgumentLayout(const Kernel& kernel) {
    if (kernel.args.size() > places_.size())
        throw std::logic_error(fmt::format("kernel {} takes {} arguments; allowed: {}", kernel.name,
                                           kernel.args.size(), places_.size()));
    for (std::size_t i = 0; i < kernel.args.size(); ++i) {
        const KernelArg& arg = kernel.args[i];
        const std::size_t at = (bytes_ + arg.alignment() - 1) / arg.alignment() * arg.alignment();
        add(i, arg, at);
        bytes_ = at + arg.bytes();
    }
}

void ArgumentLayout::add(std::size_t parameter, const KernelArg& arg, std::size_t at) {
    places_[parameter] = {static_cast<std::uint16_t>(at), static_cast<std::uint8_t>(arg.bytes())};
    if (run_count_ > 0 && arg.bytes() == 8) {
        Run& last = runs_[run_count_ - 1];
        const bool is_next = last.kind == arg.kind && last.index + last.bytes / 8 == arg.index;
        if (is_next && last.to + last.bytes == static_cast<int>(at)) {
            last.bytes += 8;
            return;
        }
    }
    runs_[run_count_++] = {arg.kind, arg.index, static_cast<std::uint16_t>(at),
                           static_cast<std::uint16_t>(arg.bytes())};
}

void ArgumentLayout::fill(ArgumentBlock& block, const Launch& launch,
                          const ArgumentSources& sources) const noexcept {
    std::byte* const to = block.bytes.data();
    for (std::size_t i = 0; i < run_count_; ++i)
        std::memcpy(to + runs_[i].to, source_of(runs_[i].kind, runs_[i].index, sources), runs_[i].bytes);
    for (std::size_t i = 0; i < launch.substitution_count; ++i) {
        const Substitution& taken = launch.substitutions[i];
        const Place& place = places_[taken.arg];
        std::memcpy(to + place.at, &sources.values[taken.value], place.bytes);
    }
}

}  // namespace hone::runtime
