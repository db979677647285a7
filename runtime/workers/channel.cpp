#include "runtime/workers/channel.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>

namespace hone::runtime {
namespace {

using nlohmann::json;

enum class Wait : std::uint8_t { ready, timed_out, cancelled };

Wait wait_for(int fd, short events, Deadline& deadline, int cancel_fd) {
    while (true) {
        const bool is_last = deadline.has_passed();
        std::array<pollfd, 2> fds{{{fd, events, 0}, {cancel_fd, POLLIN, 0}}};
        const int ready =
            poll(fds.data(), cancel_fd < 0 ? 1 : 2, static_cast<int>(deadline.until_asked().count()));
        if (ready < 0 && errno != EINTR) throw ProtocolError(std::string("poll: ") + std::strerror(errno));
        if (ready > 0 && cancel_fd >= 0 && fds[1].revents != 0) return Wait::cancelled;
        if (ready > 0) return Wait::ready;
        if (is_last) return Wait::timed_out;
    }
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

ProtocolError bad_member(const char* name, const char* wanted) {
    return ProtocolError(std::string("message member '") + name + "' is missing or not " + wanted);
}

}  // namespace

std::pair<UniqueFd, UniqueFd> socket_pair() {
    std::array<int, 2> fds{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds.data()) != 0) {
        throw ProtocolError(fmt::format("no channel to a worker process: {}{}", std::strerror(errno),
                                        errno == EMFILE ? " (ulimit -n allows more)" : ""));
    }
    return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Channel::Channel(UniqueFd socket) : socket_(std::move(socket)) {}

void Channel::write_all(std::span<const std::byte> bytes, Deadline& deadline) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            bytes = bytes.subspan(static_cast<std::size_t>(sent));
        } else if (sent < 0 && !would_block()) {
            throw ProtocolError(std::string("the other side is gone: ") + std::strerror(errno));
        } else if (wait_for(socket_.get(), POLLOUT, deadline, -1) == Wait::timed_out) {
            throw ProtocolError("the other side does not read");
        }
    }
}

void Channel::send(const json& head, std::span<const std::byte> blob, Clock::time_point moment) {
    Deadline deadline(moment);  // one for all parts: what puts off the first puts off the next
    const std::string text = head.dump(-1, ' ', false, json::error_handler_t::replace);
    if (text.size() + blob.size() > max_frame_bytes) throw ProtocolError("a message of more than 64 MiB");
    const FrameHeader header{.json_bytes = static_cast<std::uint32_t>(text.size()),
                             .blob_bytes = static_cast<std::uint32_t>(blob.size())};
    std::string start(reinterpret_cast<const char*>(&header), sizeof header);
    start += text;
    write_all(std::as_bytes(std::span(start)), deadline);
    write_all(blob, deadline);
}

Received Channel::read_all(std::span<std::byte> out, Deadline& deadline, int cancel_fd) {
    while (!out.empty()) {
        const ssize_t got = recv(socket_.get(), out.data(), out.size(), MSG_DONTWAIT);
        if (got > 0) {
            out = out.subspan(static_cast<std::size_t>(got));
        } else if (got == 0 || (got < 0 && errno == ECONNRESET)) {
            return Received::end_of_file;
        } else if (!would_block()) {
            throw ProtocolError(std::string("receive: ") + std::strerror(errno));
        } else {
            const Wait wait = wait_for(socket_.get(), POLLIN, deadline, cancel_fd);
            if (wait == Wait::timed_out) return Received::timed_out;
            if (wait == Wait::cancelled) return Received::cancelled;
        }
    }
    return Received::message;
}

Received Channel::receive(Message& message, Clock::time_point moment, int cancel_fd) {
    Deadline deadline(moment);
    FrameHeader header;
    Received got = read_all(std::as_writable_bytes(std::span(&header, 1)), deadline, cancel_fd);
    if (got != Received::message) return got;
    if (header.magic != frame_magic) throw ProtocolError("a frame of another program or version");
    if (std::size_t{header.json_bytes} + header.blob_bytes > max_frame_bytes) {
        throw ProtocolError("a frame of more than 64 MiB");
    }
    std::string text(header.json_bytes, '\0');
    message.blob.resize(header.blob_bytes);
    got = read_all(std::as_writable_bytes(std::span(text)), deadline, cancel_fd);
    if (got == Received::message) got = read_all(message.blob, deadline, cancel_fd);
    if (got != Received::message) return got;
    message.head = json::parse(text, nullptr, false);
    if (!message.head.is_object()) throw ProtocolError("a frame without a JSON object");
    return Received::message;
}

const json& member(const json& object, const char* name) {
    const auto found = object.find(name);
    if (found == object.end()) throw bad_member(name, "there");
    return *found;
}

std::int64_t integer(const json& object, const char* name) {
    const json& value = member(object, name);
    if (!value.is_number_integer()) throw bad_member(name, "an integer");
    if (value.is_number_unsigned() &&
        value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
        throw bad_member(name, "a 64-bit integer");
    }
    return value.get<std::int64_t>();
}

std::uint64_t bits(const json& object, const char* name) {
    const json& value = member(object, name);
    if (!value.is_number_unsigned()) throw bad_member(name, "a bit pattern");
    return value.get<std::uint64_t>();
}

int small_integer(const json& object, const char* name) {
    const std::int64_t value = integer(object, name);
    if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max()) {
        throw bad_member(name, "a 32-bit integer");
    }
    return static_cast<int>(value);
}

double number(const json& object, const char* name) {
    const json& value = member(object, name);
    if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
    if (!value.is_number()) throw bad_member(name, "a number");
    return value.get<double>();
}

bool boolean(const json& object, const char* name) {
    const json& value = member(object, name);
    if (!value.is_boolean()) throw bad_member(name, "true or false");
    return value.get<bool>();
}

std::string text(const json& object, const char* name) {
    const json& value = member(object, name);
    if (!value.is_string()) throw bad_member(name, "a text");
    return value.get<std::string>();
}

const json& list(const json& object, const char* name) {
    const json& value = member(object, name);
    if (!value.is_array()) throw bad_member(name, "a list");
    return value;
}

}  // namespace hone::runtime
