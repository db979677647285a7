#include "kernel_templates/expert_linear/sizes.h"

#include <string_view>

namespace hone::expert_linear {
namespace {

constexpr std::int64_t most_places = std::int64_t{1} << 24;
constexpr std::int64_t most_weights = std::int64_t{1} << 40;

std::string too_large(std::string_view what, const ExpertProblem& p, std::int64_t columns) {
    constexpr std::int64_t most = std::int64_t{1} << 38;
    if (p.places() <= most / columns) return {};
    return "tokens x top_k x " + std::string(what) + " is " + std::to_string(p.tokens) + " x " +
           std::to_string(p.top_k) + " x " + std::to_string(columns) + "; allowed: at most 2^38 elements";
}

}  // namespace

std::string wrong_sizes(const ExpertProblem& p) {
    if (p.activation == Activation::swiglu_oai && !p.gated)
        return "activation is swiglu_oai, which joins two products; allowed: with gated=yes";
    if (p.top_k > p.experts)
        return "top_k is " + std::to_string(p.top_k) + "; allowed: at most experts, " +
               std::to_string(p.experts);
    if (p.places() > most_places)
        return "tokens x top_k is " + std::to_string(p.tokens) + " x " + std::to_string(p.top_k) +
               "; allowed: at most 2^24";
    if (p.experts * p.out > most_weights / p.in)
        return "experts x out x in is " + std::to_string(p.experts) + " x " + std::to_string(p.out) + " x " +
               std::to_string(p.in) + "; allowed: at most 2^40";
    if (std::string error = too_large("in", p, p.in); !error.empty()) return error;
    return too_large("out", p, p.out);
}

}  // namespace hone::expert_linear
