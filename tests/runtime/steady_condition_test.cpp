// Starts threads: the thread sanitizer runs this file, too.
#include "runtime/system/steady_condition.h"

#include <doctest/doctest.h>

#include <chrono>
#include <mutex>
#include <thread>

using namespace hone::runtime;
using namespace std::chrono_literals;

TEST_CASE("a limited wait ends at its limit, or as soon as what it waits for holds") {
    std::mutex mutex;
    SteadyCondition changed;
    bool holds = false;
    std::unique_lock lock(mutex);
    const auto start = std::chrono::steady_clock::now();
    CHECK_FALSE(changed.wait_for(lock, 20ms, [&] { return holds; }));
    CHECK(std::chrono::steady_clock::now() - start >= 20ms);
    CHECK_FALSE(changed.wait_for(lock, -1s, [&] { return holds; }));

    std::thread other([&] {
        const std::lock_guard guard(mutex);
        holds = true;
        changed.notify_one();
    });
    CHECK(changed.wait_for(lock, 1h, [&] { return holds; }));
    lock.unlock();
    other.join();
    lock.lock();
    changed.wait(lock, [&] { return holds; });
}
