// What a Runtime holds. Internal: runtime.cpp makes it, runtime_operators.cpp prepares with it.
#pragma once

#include "hone/runtime.h"
#include "runtime/dispatch/dispatcher.h"
#include "runtime/operators/maker.h"

namespace hone {

struct Runtime::State {
    explicit State(const RuntimeOptions& options);

    [[nodiscard]] runtime::Maker maker() { return {dispatcher, checking}; }

    runtime::Dispatcher dispatcher;
    const runtime::DeviceSession* checking;  ///< for operators that look at indices first
};

/// For functions that need more of a Runtime than its interface.
struct runtime::RuntimeAccess {
    [[nodiscard]] static Dispatcher& dispatcher(Runtime& runtime) { return runtime.state_->dispatcher; }
};

namespace runtime {
[[nodiscard]] inline Dispatcher& dispatcher_of(Runtime& owner) { return RuntimeAccess::dispatcher(owner); }
}  // namespace runtime

}  // namespace hone
