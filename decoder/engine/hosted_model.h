// A model and its engine on a thread of their own, which makes them, keeps them and takes them down: whoever
// asks for texts may have a CUDA context of another kind, and may come and go.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "decoder/engine/engine.h"

namespace hone::decoder {

class HostedModel {
  public:
    /// Returns when texts can be submitted. Throws what RunningModel does.
    explicit HostedModel(ModelOptions options);
    HostedModel(const HostedModel&) = delete;
    HostedModel& operator=(const HostedModel&) = delete;
    /// Ends after the step under way.
    ~HostedModel();

    [[nodiscard]] Engine& engine() { return *engine_; }
    [[nodiscard]] const Description& description() const { return model_->description(); }

  private:
    void host(const ModelOptions& options) noexcept;
    void serve_until_the_end(Engine& engine, const RunningModel& model);

    std::mutex mutex_;
    std::condition_variable changed_;
    Engine* engine_ = nullptr;  ///< on its thread's stack, as the next
    const RunningModel* model_ = nullptr;
    std::exception_ptr failure_;
    bool ends_ = false;
    std::thread thread_;  ///< the last: uses the others
};

}  // namespace hone::decoder
