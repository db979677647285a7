// A client of HTTP on a plain socket, so that tests send what no library would.
#pragma once

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace hone::test {

struct HttpResponse {
    int status = 0;
    std::string head{};
    std::string body{};  ///< without the marks of its pieces
    bool whole = false;  ///< it came to its end

    [[nodiscard]] nlohmann::json json() const { return nlohmann::json::parse(body); }
    /// OpenAI's message, or "".
    [[nodiscard]] std::string message() const { return json().at("error").at("message").get<std::string>(); }
};

class HttpClientSocket {
  public:
    explicit HttpClientSocket(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(port));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const timeval patience{.tv_sec = 20, .tv_usec = 0};
        setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        connected_ = connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    }
    HttpClientSocket(const HttpClientSocket&) = delete;
    HttpClientSocket& operator=(const HttpClientSocket&) = delete;
    ~HttpClientSocket() { close(socket_); }

    [[nodiscard]] bool connected() const { return connected_; }
    void close_writing() const { shutdown(socket_, SHUT_WR); }
    void send_text(std::string_view text) const {
        while (!text.empty()) {
            const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
            if (sent <= 0) return;
            text.remove_prefix(static_cast<std::size_t>(sent));
        }
    }
    void send(std::string_view method, std::string_view path, std::string_view body = {}) const {
        send_text(
            fmt::format("{} {} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n", method, path));
        if (method == "POST") send_text(fmt::format("Content-Length: {}\r\n", body.size()));
        send_text("\r\n");
        send_text(body);
    }
    /// Reads on until the text is in what came, or nothing comes.
    bool wait_for(std::string_view text) {
        while (came_.find(text) == std::string::npos) {
            if (!receive()) return false;
        }
        return true;
    }
    /// The next reply, as a whole.
    HttpResponse response() {
        HttpResponse response;
        if (!wait_for("\r\n\r\n")) return response;
        const std::size_t end = came_.find("\r\n\r\n") + 4;
        response.head = came_.substr(0, end);
        came_.erase(0, end);
        response.status = std::stoi(response.head.substr(9, 3));
        if (response.head.find("Transfer-Encoding: chunked") != std::string::npos) {
            response.whole = read_pieces(response.body);
        } else {
            const std::size_t at = response.head.find("Content-Length: ");
            const std::size_t size = at == std::string::npos ? 0 : std::stoul(response.head.substr(at + 16));
            response.whole = take(size, response.body);
        }
        return response;
    }

    /// One that has no length: until the connection is closed.
    HttpResponse response_to_the_end() {
        HttpResponse response;
        if (!wait_for("\r\n\r\n")) return response;
        while (receive()) {
        }
        const std::size_t end = came_.find("\r\n\r\n") + 4;
        response.head = came_.substr(0, end);
        response.body = came_.substr(end);
        response.status = std::stoi(response.head.substr(9, 3));
        return response;
    }

  private:
    bool receive() {
        char bytes[4096];
        const ssize_t got = recv(socket_, bytes, sizeof(bytes), 0);
        if (got <= 0) return false;
        came_.append(bytes, static_cast<std::size_t>(got));
        return true;
    }
    bool take(std::size_t size, std::string& to) {
        while (came_.size() < size) {
            if (!receive()) return false;
        }
        to += came_.substr(0, size);
        came_.erase(0, size);
        return true;
    }
    bool read_pieces(std::string& body) {
        while (true) {
            while (came_.find("\r\n") == std::string::npos) {
                if (!receive()) return false;
            }
            const std::size_t end = came_.find("\r\n");
            const std::size_t size = std::stoul(came_.substr(0, end), nullptr, 16);
            came_.erase(0, end + 2);
            std::string line_end;
            if (!take(size, body) || !take(2, line_end)) return false;
            if (size == 0) return true;
        }
    }

    int socket_;
    bool connected_ = false;
    std::string came_;
};

inline HttpResponse request(int port, std::string_view method, std::string_view path,
                            std::string_view body = {}) {
    HttpClientSocket client(port);
    client.send(method, path, body);
    return client.response();
}

/// The data of a stream's events, without "[DONE]"; `done` says whether that came last.
inline std::vector<nlohmann::json> events(const std::string& body, bool& done) {
    std::vector<nlohmann::json> events;
    done = false;
    for (std::size_t at = 0; at < body.size();) {
        const std::size_t end = body.find("\n\n", at);
        REQUIRE(end != std::string::npos);
        REQUIRE(body.compare(at, 6, "data: ") == 0);
        const std::string data = body.substr(at + 6, end - at - 6);
        CHECK_FALSE(done);
        done = data == "[DONE]";
        if (!done) events.push_back(nlohmann::json::parse(data));
        at = end + 2;
    }
    return events;
}

}  // namespace hone::test
