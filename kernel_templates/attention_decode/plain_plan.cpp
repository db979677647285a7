#include "kernel_templates/attention_decode/plain_plan.h"

namespace hone::attention_decode {

Cut cut(const DecodeProblem& p, const PlainConfig& c) { return cut_of(geometry_of(p, c), c); }

Plan plain_plan(const DecodeProblem& p, const PlainConfig& c, const DeviceTraits& traits) {
    return cut_plan(plain_kernels, p, cut(p, c), traits);
}

}  // namespace hone::attention_decode
