// What run() writes down: how many calls took which kind of kernel, and the latest launch error. Written from
// many threads without a lock; a count costs one uncontended atomic addition.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hone/report.h"

namespace hone::runtime {

class RunCounter {
  public:
    void add() noexcept { stripes_[stripe_of_this_thread()].count.fetch_add(1, std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t sum() const noexcept {
        std::uint64_t total = 0;
        for (const Stripe& stripe : stripes_) total += stripe.count.load(std::memory_order_relaxed);
        return total;
    }

  private:
    static constexpr std::size_t stripes = 64;
    struct alignas(64) Stripe {
        std::atomic<std::uint64_t> count{0};
    };

    /// Threads are told apart by where their stacks lie, which costs nothing; thread-local storage in a
    /// library that was itself loaded with dlopen may allocate at its first use. Two threads on one stripe
    /// are slower, never wrong.
    [[nodiscard]] static std::size_t stripe_of_this_thread() noexcept {
        const auto stack = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
        return static_cast<std::size_t>((std::uint64_t{stack >> 20} * 0x9E3779B97F4A7C15U) >> 58);
    }

    std::array<Stripe, stripes> stripes_{};
};

/// The latest failed launch: what the driver answered, and the site (a prepared kernel's number in the
/// SiteNames).
struct LaunchError {
    std::uint32_t site = 0;
    int result = 0;
};

class RunLog {
  public:
    /// Where calls of one kind of kernel are counted, unless a capture counts them.
    [[nodiscard]] RunCounter& runs(Origin origin) noexcept { return runs_[static_cast<std::size_t>(origin)]; }

    void count_failure(std::uint32_t site, int result) noexcept {
        failures_.add();
        last_error_.store(std::uint64_t{site} << 32 | static_cast<std::uint32_t>(result),
                          std::memory_order_relaxed);
    }

    [[nodiscard]] std::uint64_t failed() const noexcept { return failures_.sum(); }

    /// result == 0 (CUDA_SUCCESS): no launch has failed yet.
    [[nodiscard]] LaunchError last_error() const noexcept {
        const std::uint64_t bits = last_error_.load(std::memory_order_relaxed);
        return {static_cast<std::uint32_t>(bits >> 32), static_cast<int>(bits & 0xFFFFFFFF)};
    }

  private:
    std::array<RunCounter, origin_count> runs_{};
    RunCounter failures_;
    std::atomic<std::uint64_t> last_error_{0};
};

}  // namespace hone::runtime
