#include "hone/runtime.h"

#include "runtime/dispatch/public_error.h"
#include "runtime/operators/runtime_state.h"
#include "runtime/system/environment.h"

namespace hone {

Runtime::State::State(const RuntimeOptions& options)
    : dispatcher(options),
      checking(options.check_indices || runtime::read_environment().check_indices == "1"
                   ? &dispatcher.session()
                   : nullptr) {}

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
