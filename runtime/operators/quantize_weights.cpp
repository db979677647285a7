// QuantizeWeights: its problems. Generated from kernel_templates/quantize_weights/operators.py by `./hone
// generate`.
#include "runtime/operators/quantize_weights.h"

#include "runtime/operators/describe_problem.h"

namespace hone {
namespace runtime {

Problem quantize_problem(const QuantizeWeights& description) {
    return describe_problem("quantize_weights",
                            {{"dtype", dtype_name(description.dtype)},
                             {"format", word(description.format)},
                             {"group", description.group},
                             {"zeros", yes_no(description.zeros)},
                             {"one_scale", yes_no(description.one_scale)},
                             {"search", yes_no(description.search)},
                             {"scale_dtype", dtype_name(scale_dtype_of(description))},
                             {"in", description.in}},
                            {{"max_out", description.max_out}});
}

}  // namespace runtime

}  // namespace hone
