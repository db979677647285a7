#include "hone/prepared_kernel.h"

#include "runtime/dispatch/prepared.h"
#include "runtime/dispatch/public_error.h"

namespace hone {

std::vector<PrepareReport> PreparedKernel::reports() const {
    if (!*this) runtime::throw_not_prepared("reports()");
    return prepared_->reports();
}

std::int64_t PreparedKernel::workspace_bytes(std::int64_t rows) const {
    const char* const where = "workspace_bytes()";
    if (!*this) runtime::throw_not_prepared(where);
    return runtime::guarded(where, [&] { return prepared_->workspace_bytes({rows}); });
}

}  // namespace hone
