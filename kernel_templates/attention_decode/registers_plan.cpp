#include "kernel_templates/attention_decode/registers_plan.h"

namespace hone::attention_decode {

Cut cut(const DecodeProblem& p, const RegistersConfig& c) { return cut_of(geometry_of(p, c), c); }

Plan registers_plan(const DecodeProblem& p, const RegistersConfig& c, const DeviceTraits& traits) {
    return cut_plan(registers_kernels, p, cut(p, c), traits);
}

}  // namespace hone::attention_decode
