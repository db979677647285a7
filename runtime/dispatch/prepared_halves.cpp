#include "runtime/dispatch/prepared_halves.h"

#include <algorithm>

#include "kernel_templates/kit/ceil_div.h"

namespace hone::runtime {
namespace {

PrepareReport named(PrepareReport report, const char* part) {
    report.part = part;
    return report;
}

}  // namespace

PreparedHalves::Workspace PreparedHalves::divide(void* workspace, std::int64_t tokens) const noexcept {
    auto* const start = static_cast<std::byte*>(workspace);
    return {start, start + round_up(tokens * row_bytes_, workspace_alignment)};
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
    return round_up(sizes[0] * row_bytes_, workspace_alignment) + beside;
}

}  // namespace hone::runtime
