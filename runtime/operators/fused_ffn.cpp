// FusedFfn: what a kernel object does. Generated from kernel_templates/linear/operators.py by `./hone
// generate`.
#include "runtime/dispatch/public_error.h"
#include "runtime/operators/entry.h"
#include "runtime/operators/feed_forward.h"

namespace hone {
namespace runtime {

FusedFfnKernel prepare_with(const Maker& maker, const FusedFfn& description) {
    return FusedFfnKernel(std::make_shared<const PreparedFusedFfn>(maker, description));
}

std::array<Explanation, 2> explain_with(const Dispatcher& dispatcher, const FusedFfn& description,
                                        std::int64_t tokens) {
    return PreparedFusedFfn::explain(dispatcher, description, tokens);
}

}  // namespace runtime

Status FusedFfnKernel::run(CUstream_st* stream, const FusedFfnArgs& args,
                           std::int64_t tokens) const noexcept {
    if (!*this) return Status::not_prepared;
    return static_cast<const runtime::PreparedFusedFfn&>(*prepared_).run(stream, args, tokens);
}

std::string FusedFfnKernel::refusal(const FusedFfnArgs& args, std::int64_t tokens) const {
    if (!*this) runtime::throw_not_prepared("refusal()");
    return static_cast<const runtime::PreparedFusedFfn&>(*prepared_).refusal(args, tokens);
}

}  // namespace hone
