// Accidents of the tuner layer.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/system/input_error.h"
#include "runtime/workers/process.h"

namespace hone::tuner {

/// A model, recording or option that makes no sense. `what()` names the key and the value besides.
class ConfigError : public runtime::InputError {
  public:
    using InputError::InputError;
};

/// No GPU that can be tuned on; `hint` says what is missing.
class NoDeviceError : public std::runtime_error {
  public:
    NoDeviceError(const std::string& what, std::string hint)
        : std::runtime_error(what), hint_(std::move(hint)) {}
    [[nodiscard]] const std::string& hint() const { return hint_; }

  private:
    std::string hint_;
};

/// Worker processes cannot be started, or keep dying before they have done anything: the run stops.
using runtime::WorkerError;

}  // namespace hone::tuner
