#include "runtime/system/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace hone::runtime {
namespace {

/// Hands out the pieces in order. All pieces below one that threw have begun, and end before the threads do:
/// so the lowest exception does not depend on who was faster.
class Pieces {
  public:
    Pieces(std::int64_t count, const std::function<void(std::int64_t)>& body) : count_(count), body_(body) {}

    void work() noexcept {
        while (!failed_) {  // asked before a piece is taken: whoever has taken one does it
            const std::int64_t piece = next_++;
            if (piece >= count_) return;
            try {
                body_(piece);
            } catch (...) {
                note(piece, std::current_exception());
            }
        }
    }

    void rethrow() const {
        if (error_) std::rethrow_exception(error_);
    }

  private:
    void note(std::int64_t piece, std::exception_ptr error) {
        const std::lock_guard lock(mutex_);
        failed_ = true;
        if (piece >= lowest_) return;
        lowest_ = piece;
        error_ = std::move(error);
    }

    std::int64_t count_;
    const std::function<void(std::int64_t)>& body_;
    std::atomic<std::int64_t> next_ = 0;
    std::atomic<bool> failed_ = false;
    std::mutex mutex_;
    std::int64_t lowest_ = std::numeric_limits<std::int64_t>::max();
    std::exception_ptr error_;
};

}  // namespace

void for_each_piece(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body) {
    const std::int64_t wanted =
        threads > 0 ? threads : std::max<std::int64_t>(std::thread::hardware_concurrency(), 1);
    Pieces pieces(count, body);
    const std::int64_t workers = std::min(wanted, count);
    std::vector<std::thread> helpers;
    helpers.reserve(static_cast<std::size_t>(workers));
    try {
        for (std::int64_t i = 1; i < workers; ++i) helpers.emplace_back([&pieces] { pieces.work(); });
    } catch (const std::system_error&) {  // the threads that there are do all of it
    } catch (const std::bad_alloc&) {     // the same
    }
    pieces.work();
    for (std::thread& helper : helpers) helper.join();
    pieces.rethrow();
}

}  // namespace hone::runtime
