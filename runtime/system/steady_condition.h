// A condition variable whose limited waits go by the steady clock. std::condition_variable's do so from glibc
// 2.34 on, which is too new for what the wheel ships; by the system's clock they end early, or late, when
// that is set.
#pragma once

#include <pthread.h>

#include <cerrno>
#include <chrono>
#include <ctime>
#include <mutex>

namespace hone::runtime {

class SteadyCondition {
  public:
    SteadyCondition() noexcept {
        pthread_condattr_t attributes;
        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        pthread_cond_init(&condition_, &attributes);
        pthread_condattr_destroy(&attributes);
    }
    ~SteadyCondition() { pthread_cond_destroy(&condition_); }
    SteadyCondition(const SteadyCondition&) = delete;
    SteadyCondition& operator=(const SteadyCondition&) = delete;

    void notify_one() noexcept { pthread_cond_signal(&condition_); }
    void notify_all() noexcept { pthread_cond_broadcast(&condition_); }

    template <class Predicate>
    void wait(std::unique_lock<std::mutex>& lock, Predicate holds) {
        while (!holds()) pthread_cond_wait(&condition_, lock.mutex()->native_handle());
    }
    /// Whether it holds in the end.
    template <class Predicate>
    bool wait_for(std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds limit, Predicate holds) {
        const timespec until = after(limit);
        while (!holds()) {
            if (pthread_cond_timedwait(&condition_, lock.mutex()->native_handle(), &until) == ETIMEDOUT)
                return holds();
        }
        return true;
    }

  private:
    static timespec after(std::chrono::nanoseconds limit) noexcept {
        timespec now{};
        clock_gettime(CLOCK_MONOTONIC, &now);
        const std::chrono::nanoseconds end =
            std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec) + limit;
        const auto whole = std::chrono::floor<std::chrono::seconds>(end);
        return {.tv_sec = static_cast<std::time_t>(whole.count()),
                .tv_nsec = static_cast<long>((end - whole).count())};
    }

    pthread_cond_t condition_{};
};

}  // namespace hone::runtime
