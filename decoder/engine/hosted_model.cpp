#include "decoder/engine/hosted_model.h"

#include <utility>

namespace hone::decoder {

HostedModel::HostedModel(ModelOptions options)
    : thread_([this, options = std::move(options)] { host(options); }) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return engine_ != nullptr || failure_; });
    if (!failure_) return;
    lock.unlock();
    thread_.join();
    std::rethrow_exception(failure_);
}

HostedModel::~HostedModel() {
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
        changed_.notify_all();
    }
    thread_.join();
}

void HostedModel::host(const ModelOptions& options) noexcept {
    try {
        RunningModel model(options);
        Engine engine(model);
        serve_until_the_end(engine, model);
    } catch (...) {
        const std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
        changed_.notify_all();
    }
}

void HostedModel::serve_until_the_end(Engine& engine, const RunningModel& model) {
    std::unique_lock lock(mutex_);
    engine_ = &engine;
    model_ = &model;
    changed_.notify_all();
    changed_.wait(lock, [&] { return ends_; });
}

}  // namespace hone::decoder
