#include "runtime/dispatch/prepared_halves.h"

#include <algorithm>

namespace hone::runtime {
namespace {

constexpr std::int64_t aligned(std::int64_t bytes) {
    return (bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
}

PrepareReport named(PrepareReport report, const char* part) {
    report.part = part;
    return report;
}

}  // namespace

PreparedHalves::Workspace PreparedHalves::divide(void* workspace, std::int64_t tokens) const noexcept {
    auto* const start = static_cast<std::byte*>(workspace);
    return {start, start + aligned(tokens * row_bytes_)};
}

Status PreparedHalves::check(void* workspace, std::int64_t tokens) const noexcept {
    if (tokens < 0 || tokens > most_) return Status::bad_rows;
    return tokens != 0 && workspace == nullptr ? Status::null_pointer : Status::ok;
}

Status PreparedHalves::run(CUstream stream, const Call& first, const Call& second,
                           std::int64_t tokens) const noexcept {
    if (const Status wrong = second_->check(second, {tokens}); wrong != Status::ok) return wrong;
    const Status status = first_->run(stream, first, {tokens});
    return status == Status::ok ? second_->run(stream, second, {tokens}) : status;
}

std::string PreparedHalves::refusal(const Call& first, const Call& second, std::int64_t tokens,
                                    CallNames first_names, CallNames second_names) const {
    std::string wrong = first_->refusal(first, {tokens}, first_names);
    return wrong.empty() ? second_->refusal(second, {tokens}, second_names) : wrong;
}

std::vector<PrepareReport> PreparedHalves::reports() const {
    return {named(first_->report(), "first"), named(second_->report(), "second")};
}

std::int64_t PreparedHalves::workspace_bytes(const Sizes& sizes) const {
    const std::int64_t beside = std::max(first_->workspace_bytes(sizes), second_->workspace_bytes(sizes));
    return aligned(sizes[0] * row_bytes_) + beside;
}

}  // namespace hone::runtime
