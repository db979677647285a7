// A machine of fake GPUs for one test case: points Hone at the fake libraries, with a script
// (tests/fake_driver/script.h says what it can do), and puts the environment back at its end. For tests of
// any layer; header only.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "tests/fake_driver/fake_cuda.h"

namespace hone::test {

/// Sets an environment variable (nothing: unsets it) until the end of the scope.
class ScopedVariable {
  public:
    ScopedVariable(std::string name, std::optional<std::string> value) : name_(std::move(name)) {
        if (const char* former = std::getenv(name_.c_str())) former_ = former;
        set(value);
    }
    ScopedVariable(const ScopedVariable&) = delete;
    ScopedVariable& operator=(const ScopedVariable&) = delete;
    ~ScopedVariable() { set(former_); }

  private:
    void set(const std::optional<std::string>& value) {
        value ? setenv(name_.c_str(), value->c_str(), 1) : unsetenv(name_.c_str());
    }
    std::string name_;
    std::optional<std::string> former_;
};

class FakeMachine {
  public:
    explicit FakeMachine(const std::string& script = "")
        : cuda_("HONE_CUDA_LIBRARY", HONE_FAKE_CUDA),
          nvrtc_("HONE_NVRTC_LIBRARY", HONE_FAKE_NVRTC),
          nvml_("HONE_NVML_LIBRARY", HONE_FAKE_NVML),
          script_("HONE_FAKE_SCRIPT", script),
          packaged_("HONE_PACKAGED", "off"),  // it looks like a GPU that Hone ships results for
          library_(dlopen(HONE_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) {
        function<void()>("fake_cuda_reset")();
    }

    /// Launches in this process; see fake_cuda.h.
    [[nodiscard]] int launch_count() const { return function<int()>("fake_cuda_launch_count")(); }
    [[nodiscard]] const FakeLaunch* launch(int index) const {
        return function<const FakeLaunch*(int)>("fake_cuda_launch")(index);
    }
    [[nodiscard]] int live(const char* kind) const {
        return function<int(const char*)>("fake_cuda_live")(kind);
    }

  private:
    template <class Signature>
    [[nodiscard]] Signature* function(const char* name) const {
        return reinterpret_cast<Signature*>(dlsym(library_, name));
    }

    ScopedVariable cuda_;
    ScopedVariable nvrtc_;
    ScopedVariable nvml_;
    ScopedVariable script_;
    ScopedVariable packaged_;
    void* library_ = nullptr;
};

}  // namespace hone::test
