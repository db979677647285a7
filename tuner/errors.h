// Accidents of the tuner layer.
#pragma once

#include <stdexcept>
#include <string>

namespace hone::tuner {

/// A model, plan or option that makes no sense. `what()` starts with file and line where there is one, names
/// the key and the value, and says what is allowed.
class ConfigError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
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
class WorkerError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

}  // namespace hone::tuner
