#include "decoder/http/connection_threads.h"

#include <utility>

namespace hone::decoder {

ConnectionThreads::ConnectionThreads(httplib::Server& server, const std::atomic<bool>& stops,
                                     std::atomic<int>& open, std::size_t threads, std::size_t most)
    : server_(server), stops_(stops), open_(open), most_(static_cast<int>(most)) {
    try {
        threads_.reserve(threads);
        while (threads_.size() < threads) threads_.emplace_back([this] { work(); });
    } catch (...) {
        end();
        throw;
    }
}

void ConnectionThreads::enqueue(std::function<void()> connection) {
    {
        std::unique_lock lock(mutex_);
        room_.wait(lock, [this] { return open_ < most_; });
        waiting_.push_back(std::move(connection));
        ++open_;
    }
    some_.notify_one();
}

/// Behind the connections that wait already.
void ConnectionThreads::end() {
    {
        const std::scoped_lock lock(mutex_);
        ends_ = true;
    }
    some_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
}

void ConnectionThreads::work() {
    std::unique_lock lock(mutex_);
    while (true) {
        some_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        const std::function<void()> connection = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        connection();
        lock.lock();
        room_.notify_one();
    }
}

}  // namespace hone::decoder
