// What operators are prepared with.
#pragma once

#include "runtime/dispatch/dispatcher.h"

namespace hone::runtime {

struct Maker {
    Dispatcher& dispatcher;
    /// Where run() looks at indices first (RuntimeOptions::check_indices): the operators' session; else
    /// nullptr.
    const DeviceSession* checking = nullptr;
};

}  // namespace hone::runtime
