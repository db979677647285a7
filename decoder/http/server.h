// An HTTP server: requests come in, replies go out, whole or in pieces. What they mean is its handler's
// (serve/).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "decoder/error.h"
#include "decoder/http/library.h"

namespace hone::decoder {

/// No server can listen there. `what()` says where and why.
class ListenError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// A request, and the client that waits for its reply.
class HttpRequest {
  public:
    enum class Body { whole, too_long, cut };

    explicit HttpRequest(hone_http_exchange* exchange) : exchange_(exchange) {}
    [[nodiscard]] std::string_view method() const;
    /// Without the query.
    [[nodiscard]] std::string_view path() const;
    /// Reads the body at the first call; `body` lives as long as the request.
    [[nodiscard]] Body read(std::string_view& body) const;

  private:
    hone_http_exchange* exchange_;
};

/// Who waits for a reply.
class HttpClient {
  public:
    HttpClient() = default;
    HttpClient(const HttpClient&) = delete;
    HttpClient& operator=(const HttpClient&) = delete;
    virtual ~HttpClient() = default;
    /// Has not left.
    [[nodiscard]] virtual bool connected() const = 0;
    /// A piece of a streamed body. False: the client has left, or takes nothing.
    virtual bool write(std::string_view piece) = 0;
};

struct HttpReply {
    int status = 200;
    std::string type = "application/json";
    std::string body{};
    std::vector<std::pair<std::string, std::string>> headers{};
    /// In place of the body: hands it out in pieces. False: it has no end, and the connection is closed.
    std::function<bool(HttpClient&)> stream{};
};

/// Called on many threads.
struct HttpHandler {
    std::function<HttpReply(const HttpRequest&, HttpClient&)> answer;
    /// What could not be read as a request has this status.
    std::function<HttpReply(int)> refuse;
};

struct HttpOptions {
    std::string host = "127.0.0.1";
    int port = 8000;       ///< 0: one that is free
    int connections = 64;  ///< that are served at a time; further ones wait
    std::size_t max_body_bytes = std::size_t{8} << 20;
    std::chrono::milliseconds request_timeout{30'000};  ///< from a request's first byte to its last
    std::chrono::milliseconds idle_timeout{10'000};     ///< between two requests of a connection
    std::chrono::milliseconds write_timeout{10'000};    ///< for a client that takes nothing
};

class HttpServer {
  public:
    /// Listens, and answers nothing yet. Throws ListenError, and DecoderError where the module is missing.
    HttpServer(const HttpOptions& options, HttpHandler handler);
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;
    ~HttpServer();

    [[nodiscard]] int port() const;
    /// Answers until stop() and until the handlers under way have returned. Throws ListenError when the
    /// system gives no connections any more.
    void run();
    /// From any thread.
    void stop();

  private:
    HttpHandler handler_;
    const HttpLibrary& library_;
    hone_http_server* server_ = nullptr;
};

}  // namespace hone::decoder
