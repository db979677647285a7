// Embedding as the family's problems and calls. Generated from kernel_templates/embedding/operators.py by
// `./hone generate`.
#pragma once

#include "hone/embedding.h"
#include "kernel_templates/embedding/declaration.h"
#include "runtime/operators/call_arguments.h"

namespace hone::runtime {

/// The problem of the largest call. Throws std::invalid_argument naming field, value and what is allowed.
[[nodiscard]] Problem problem_of(const Embedding& description);

/// The arguments in the family's order, strides filled in.
[[nodiscard]] inline Call call_of(const Embedding& description, const EmbeddingArgs& args,
                                  std::int64_t tokens) noexcept {
    Call call;
    call.pointers[embedding::ids] = pointer(args.ids);
    call.pointers[embedding::table] = pointer(args.table);
    call.pointers[embedding::position_ids] = pointer(args.position_ids);
    call.pointers[embedding::position_table] = pointer(args.position_table);
    call.pointers[embedding::out] = args.out;
    call.scalars[embedding::tokens] = Scalar::of(tokens);
    call.scalars[embedding::vocabulary] = Scalar::of(args.vocabulary);
    call.scalars[embedding::position_rows] = Scalar::of(args.position_rows);
    call.scalars[embedding::table_stride] = Scalar::of(stride(args.table_stride, description.hidden));
    call.scalars[embedding::position_table_stride] =
        Scalar::of(stride(args.position_table_stride, description.hidden));
    call.scalars[embedding::out_stride] = Scalar::of(stride(args.out_stride, description.hidden));
    call.scalars[embedding::scale] = Scalar::of(args.scale);
    return call;
}

}  // namespace hone::runtime
