#include "decoder/http/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace hone::decoder {
namespace {

/// What a request has to keep up with where others wait for its thread: a second, and one more for so many
/// bytes.
constexpr std::chrono::milliseconds crowded_request{1000};
constexpr std::size_t crowded_bytes_a_second = std::size_t{64} << 10;

void address_of(const sockaddr_storage& address, socklen_t size, std::string& ip, int& port) {
    std::array<char, NI_MAXHOST> host{};
    std::array<char, NI_MAXSERV> service{};
    if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host.data(), host.size(),
                    service.data(), service.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return;
    ip = host.data();
    port = std::atoi(service.data());
}

}  // namespace

Connection::Connection(socket_t socket, ConnectionLimits limits)
    : socket_(socket), limits_(std::move(limits)) {}

/// What is left of a request is taken for a moment: closed with bytes unread, the client may not see the
/// reply.
Connection::~Connection() {
    shutdown(socket_, SHUT_WR);
    constexpr std::size_t most = std::size_t{1} << 24;
    const auto end = Clock::now() + std::chrono::milliseconds(300);
    for (std::size_t taken = 0;
         taken < most && Clock::now() < end && ready(POLLIN, std::chrono::milliseconds(100));) {
        const ssize_t got = recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
        if (got <= 0) break;
        taken += static_cast<std::size_t>(got);
    }
    close(socket_);
}

void Connection::begin_request() {
    bytes_left_ = limits_.head_bytes;
    came_ = 0;
    is_too_long_ = false;
    begun_ = Clock::now();
    form_.begin();
}

void Connection::begin_body(std::size_t bytes, bool in_pieces) {
    bytes_left_ = bytes;
    if (in_pieces) form_.begin_pieces();
}

/// Of the bytes that are still missing.
Connection::Clock::time_point Connection::deadline() const {
    std::chrono::milliseconds most = limits_.request;
    if (limits_.crowded()) {
        const std::chrono::milliseconds earned(1000 * came_ / crowded_bytes_a_second);
        most = std::min(most, crowded_request + earned);
    }
    return begun_ + most;
}

bool Connection::ready(short what, std::chrono::milliseconds wait) const {
    pollfd asked{.fd = socket_, .events = what, .revents = 0};
    const int found = poll(&asked, 1, static_cast<int>(std::max<std::int64_t>(wait.count(), 0)));
    return found > 0 || (found < 0 && errno == EINTR);
}

/// Has sent something, and not only left.
bool Connection::peer_speaks() const {
    if (begin_ < end_) return true;
    char byte = 0;
    return recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

bool Connection::connected() const {
    pollfd asked{.fd = socket_, .events = POLLRDHUP, .revents = 0};
    return poll(&asked, 1, 0) <= 0 || (asked.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0;
}

bool Connection::is_readable() const { return begin_ < end_ || ready(POLLIN, limits_.request); }

/// write() waits where it has to: to ask before would be two more calls of the system for each token.
bool Connection::is_writable() const { return true; }

bool Connection::fill() {
    while (true) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline() - Clock::now());
        if (left.count() <= 0) return false;
        if (!ready(POLLIN, std::min(left, glance))) continue;
        const ssize_t got = recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        begin_ = 0;
        end_ = static_cast<std::size_t>(std::max<ssize_t>(got, 0));
        return got > 0;
    }
}

void Connection::take(std::size_t bytes) {
    form_.see({buffer_.data() + begin_, bytes});
    begin_ += bytes;
    came_ += bytes;
}

/// Fields behind the pieces of a body count for nothing: some versions of cpp-httplib refuse them, others
/// take them for headers. False: they are malformed, too long, or cut.
bool Connection::skip_trailers() {
    for (std::size_t left = limits_.head_bytes; form_.is_behind_pieces(); --left) {
        if (left == 0 || (begin_ == end_ && !fill())) return false;
        if (!form_.is_of_trailer(buffer_[begin_])) return true;
        take(1);
        if (!form_.is_strict()) return false;
    }
    return true;
}

ssize_t Connection::read(char* to, size_t size) {
    is_too_long_ = is_too_long_ || (size > 0 && bytes_left_ == 0);
    size = std::min(size, bytes_left_);
    if (size == 0 || !skip_trailers() || (begin_ == end_ && !fill())) return -1;
    const std::size_t given = std::min(size, end_ - begin_);
    std::memcpy(to, buffer_.data() + begin_, given);
    take(given);
    bytes_left_ -= given;
    return static_cast<ssize_t>(given);
}

/// All of it: cpp-httplib does not ask again for the rest.
ssize_t Connection::write(const char* from, size_t size) {
    for (std::size_t written = 0; written < size;) {
        const ssize_t sent = send(socket_, from + written, size - written, MSG_NOSIGNAL | MSG_DONTWAIT);
        const bool is_full = sent < 0 && errno == EAGAIN;
        if (sent < 0 && !is_full && errno != EINTR) return -1;
        if (is_full && !ready(POLLOUT, limits_.write)) return -1;
        written += static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
    }
    return static_cast<ssize_t>(size);
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    if (getpeername(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0)
        address_of(address, size, ip, port);
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    if (getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0)
        address_of(address, size, ip, port);
}

}  // namespace hone::decoder
