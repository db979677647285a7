#include "hone/prepared_kernel.h"

#include "runtime/prepared_operator.h"
#include "runtime/public_error.h"

namespace hone {
namespace {

const runtime::PreparedOperator& not_empty(const runtime::PreparedOperator* prepared, const char* where) {
    if (prepared == nullptr) runtime::throw_not_prepared(where);
    return *prepared;
}

}  // namespace

const PrepareReport& PreparedKernel::report() const {
    return not_empty(operator_.get(), "report()").report();
}

std::int64_t PreparedKernel::workspace_bytes(std::int64_t rows) const {
    const char* const where = "workspace_bytes()";
    const runtime::PreparedOperator& prepared = not_empty(operator_.get(), where);
    return runtime::guarded(where, [&] { return prepared.workspace_bytes({rows}); });
}

}  // namespace hone
