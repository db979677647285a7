#include "hone/prepared_kernel.h"

#include <algorithm>

#include "runtime/dispatch/prepared_operator.h"
#include "runtime/dispatch/public_error.h"

namespace hone {
namespace {

const runtime::PreparedOperator& not_empty(const runtime::PreparedOperator* prepared, const char* where) {
    if (prepared == nullptr) runtime::throw_not_prepared(where);
    return *prepared;
}

constexpr std::int64_t aligned(std::int64_t bytes) {
    return (bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
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

std::int64_t PreparedHalves::workspace_bytes(std::int64_t tokens) const {
    const std::int64_t beside = std::max(first_.workspace_bytes(tokens), second_.workspace_bytes(tokens));
    return aligned(tokens * row_bytes_) + beside;
}

Status PreparedHalves::divide(void* workspace, std::int64_t tokens, Rooms& rooms) const noexcept {
    if (!*this) return Status::not_prepared;
    if (tokens < 0 || tokens > most_) return Status::bad_rows;
    if (tokens == 0) return Status::ok;
    if (workspace == nullptr) return Status::null_pointer;
    rooms.intermediate = static_cast<std::byte*>(workspace);
    rooms.rest = rooms.intermediate + aligned(tokens * row_bytes_);
    return Status::ok;
}

Status PreparedHalves::run_both(CUstream_st* stream, const Call& first, const Call& second,
                                std::int64_t tokens) const noexcept {
    if (const Status wrong = second_.prepared().check(second, {tokens}); wrong != Status::ok) return wrong;
    const Status status = first_.prepared().run(stream, first, {tokens});
    return status == Status::ok ? second_.prepared().run(stream, second, {tokens}) : status;
}

}  // namespace hone
