#include "runtime/dispatch/call_text.h"

#include <fmt/format.h>

#include <bit>

namespace hone::runtime {

CallText::CallText(const Problem& problem, CallNames names)
    : arguments_(problem.family->arguments(problem)),
      scalars_(problem.family->scalars(problem)),
      names_(names) {}

std::string CallText::missing(std::size_t pointer) const {
    return fmt::format("{} is a null pointer", called(arguments_[pointer].name));
}

std::string CallText::misaligned(std::size_t pointer, const void* address, std::uint64_t bytes) const {
    return fmt::format("{} is at {}; allowed: multiples of {} bytes", called(arguments_[pointer].name),
                       address, bytes);
}

std::string CallText::short_stride(RowStride where, std::int64_t stride, std::int64_t least) const {
    return fmt::format("{} is {}; allowed: {} or more", called(scalars_[where.scalar].name), stride, least);
}

std::string CallText::misaligned_stride(RowStride where, std::uint64_t stride, std::uint64_t elements) const {
    return fmt::format("{} is {}; allowed: multiples of {} elements", called(scalars_[where.scalar].name),
                       stride, elements);
}

std::string CallText::bad_epsilon(Scalar epsilon) {
    return fmt::format("epsilon is {}; allowed: finite numbers from 0",
                       std::bit_cast<float>(static_cast<std::uint32_t>(epsilon.bits)));
}

std::string_view CallText::called(std::string_view name) const {
    for (const CallName& known : names_) {
        if (known.family == name) return known.caller;
    }
    return name;
}

}  // namespace hone::runtime
