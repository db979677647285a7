#include "hone/runtime.h"

#include <fmt/format.h>

#include "runtime/dispatch/public_error.h"
#include "runtime/dispatch/snapshot.h"
#include "runtime/operators/runtime_state.h"
#include "runtime/system/environment.h"

namespace hone {
namespace {

/// Who means to check and does not should know: another word than 0 and 1 is a warning.
bool checks_indices(const RuntimeOptions& options) {
    const std::string word = runtime::read_environment().check_indices;
    if (word.empty() || word == "0" || word == "1") return options.check_indices || word == "1";
    runtime::warning_sink(options)(fmt::format(
        "HONE_CHECK_INDICES is '{}', allowed: 0, 1; {}", word,
        options.check_indices ? "indices are checked, as the program asks" : "indices are not checked"));
    return options.check_indices;
}

}  // namespace

Runtime::State::State(const RuntimeOptions& options)
    : dispatcher(options), checking(checks_indices(options) ? &dispatcher.session() : nullptr) {}

Runtime::Runtime(RuntimeOptions options)
    : state_(runtime::guarded("hone::Runtime()", [&] { return std::make_unique<State>(options); })) {}
Runtime::Runtime(Runtime&&) noexcept = default;
Runtime& Runtime::operator=(Runtime&&) noexcept = default;
Runtime::~Runtime() = default;

void Runtime::freeze() noexcept { state_->dispatcher.freeze(); }

GraphCalls Runtime::record_graph(const std::function<void()>& record) {
    GraphCalls calls;
    calls.launches_ = state_->dispatcher.record_graph(record);
    return calls;
}

Counters Runtime::counters() const { return state_->dispatcher.counters(); }

std::string Runtime::last_launch_error() const {
    return runtime::guarded("last_launch_error()", [&] { return state_->dispatcher.last_launch_error(); });
}

std::string Runtime::device_name() const { return state_->dispatcher.session().traits().name; }

}  // namespace hone
