// Threads for connections, each of which has one as long as it lasts. Not httplib::ThreadPool: where the
// system starts no more threads, that ends the process.
#pragma once

#include <httplib.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace hone::decoder {

class ConnectionThreads final : public httplib::TaskQueue {
  public:
    /// `open` counts connections, those that wait for a thread as well: with `most` of them the others wait
    /// outside. Once `stops` is set the server is stopped. Throws std::system_error where not all threads can
    /// be started.
    ConnectionThreads(httplib::Server& server, const std::atomic<bool>& stops, std::atomic<int>& open,
                      std::size_t threads, std::size_t most);
    ConnectionThreads(const ConnectionThreads&) = delete;
    ConnectionThreads& operator=(const ConnectionThreads&) = delete;
    ~ConnectionThreads() override { end(); }

    void enqueue(std::function<void()> connection) override;
    void shutdown() override { end(); }
    void on_idle() override {
        if (stops_) server_.stop();
    }

  private:
    void end();
    void work();

    httplib::Server& server_;
    const std::atomic<bool>& stops_;
    std::atomic<int>& open_;
    const int most_;
    std::mutex mutex_;
    std::condition_variable some_;  ///< waits for a thread
    std::condition_variable room_;  ///< for one more connection
    std::deque<std::function<void()>> waiting_;
    bool ends_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace hone::decoder
