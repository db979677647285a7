// Sample as the family's problems and calls. Generated from kernel_templates/sample/operators.py by `./hone
// generate`.
#pragma once

#include "hone/sample.h"
#include "kernel_templates/sample/declaration.h"
#include "runtime/operators/call_arguments.h"

namespace hone::runtime {

/// The problem of the largest call. Throws std::invalid_argument naming field, value and what is allowed.
[[nodiscard]] Problem problem_of(const Sample& description);

/// The arguments in the family's order, strides filled in.
[[nodiscard]] inline Call call_of(const Sample& description, const SampleArgs& args,
                                  std::int64_t rows) noexcept {
    Call call;
    call.pointers[sample::logits] = pointer(args.logits);
    call.pointers[sample::temperature] = pointer(args.temperature);
    call.pointers[sample::top_k] = pointer(args.top_k);
    call.pointers[sample::top_p] = pointer(args.top_p);
    call.pointers[sample::min_p] = pointer(args.min_p);
    call.pointers[sample::seed] = pointer(args.seed);
    call.pointers[sample::counter] = pointer(args.counter);
    call.pointers[sample::out] = args.out;
    call.pointers[sample::log_probability] = args.log_probability;
    call.scalars[sample::rows] = Scalar::of(rows);
    call.scalars[sample::logits_stride] = Scalar::of(stride(args.logits_stride, description.vocabulary));
    return call;
}

}  // namespace hone::runtime
