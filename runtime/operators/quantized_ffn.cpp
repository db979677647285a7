// QuantizedFfn: what a kernel object does. Generated from kernel_templates/quantized_linear/operators.py by
// `./hone generate`.
#include "runtime/dispatch/public_error.h"
#include "runtime/operators/entry.h"
#include "runtime/operators/feed_forward.h"

namespace hone {
namespace runtime {

QuantizedFfnKernel prepare_with(const Maker& maker, const QuantizedFfn& description) {
    return QuantizedFfnKernel(std::make_shared<const PreparedQuantizedFfn>(maker, description));
}

std::array<Explanation, 2> explain_with(const Dispatcher& dispatcher, const QuantizedFfn& description,
                                        std::int64_t tokens) {
    return PreparedQuantizedFfn::explain(dispatcher, description, tokens);
}

}  // namespace runtime

Status QuantizedFfnKernel::run(CUstream_st* stream, const QuantizedFfnArgs& args,
                               std::int64_t tokens) const noexcept {
    if (!*this) return Status::not_prepared;
    return static_cast<const runtime::PreparedQuantizedFfn&>(*prepared_).run(stream, args, tokens);
}

std::string QuantizedFfnKernel::refusal(const QuantizedFfnArgs& args, std::int64_t tokens) const {
    if (!*this) runtime::throw_not_prepared("refusal()");
    return static_cast<const runtime::PreparedQuantizedFfn&>(*prepared_).refusal(args, tokens);
}

}  // namespace hone
