// A connection's socket as cpp-httplib reads and writes it. Its own would wait for as long as a client
// trickles bytes, take as many as it sends, and not say to a handler whether the client is still there.
#pragma once

#include <httplib.h>
#include <poll.h>

#include <array>
#include <chrono>
#include <functional>
#include <utility>

#include "decoder/http/request_form.h"

namespace hone::decoder {

struct ConnectionLimits {
    std::size_t head_bytes = 0;           ///< up to where the body begins
    std::chrono::milliseconds request{};  ///< from a request's first byte to its last
    std::chrono::milliseconds write{};    ///< without a byte taken
    /// Whether others wait for this connection's thread: a request then has to come faster.
    std::function<bool()> crowded{};
};

class Connection final : public httplib::Stream {
  public:
    /// Closes `socket` in the end.
    Connection(socket_t socket, ConnectionLimits limits);
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    ~Connection() override;

    /// Waits for a request's first byte. False: none came for as long as `idle` says, or `stopped` said so.
    template <class Idle, class Stopped>
    bool wait_for_request(const Idle& idle, const Stopped& stopped) {
        for (auto waited = glance * 0; waited < idle() && !stopped(); waited += glance) {
            if (begin_ < end_ || ready(POLLIN, glance)) return peer_speaks();
        }
        return false;
    }
    /// The limits count from here.
    void begin_request();
    /// The head has come, and so many bytes may follow it, in pieces or not.
    void begin_body(std::size_t bytes, bool in_pieces);
    /// What came of the request since begin_request().
    [[nodiscard]] const RequestForm& form() const { return form_; }
    /// More of the request was asked for than it may have.
    [[nodiscard]] bool is_too_long() const { return is_too_long_; }
    [[nodiscard]] bool connected() const;

    [[nodiscard]] bool is_readable() const override;
    [[nodiscard]] bool is_writable() const override;
    ssize_t read(char* to, size_t size) override;
    ssize_t write(const char* from, size_t size) override;
    void get_remote_ip_and_port(std::string& ip, int& port) const override;
    void get_local_ip_and_port(std::string& ip, int& port) const override;
    [[nodiscard]] socket_t socket() const override { return socket_; }

  private:
    using Clock = std::chrono::steady_clock;
    /// How often it is asked whether to go on waiting.
    static constexpr std::chrono::milliseconds glance{100};

    [[nodiscard]] bool ready(short what, std::chrono::milliseconds wait) const;
    [[nodiscard]] bool peer_speaks() const;
    [[nodiscard]] bool fill();
    void take(std::size_t bytes);
    [[nodiscard]] bool skip_trailers();
    [[nodiscard]] Clock::time_point deadline() const;

    socket_t socket_;
    ConnectionLimits limits_;
    std::array<char, 16384> buffer_{};  ///< read and not yet asked for: from begin_ to end_
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    std::size_t bytes_left_ = 0;  ///< of the request's head, or of its body
    std::size_t came_ = 0;        ///< of the request
    bool is_too_long_ = false;
    RequestForm form_{};
    Clock::time_point begun_{};
};

}  // namespace hone::decoder
