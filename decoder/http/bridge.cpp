#include "decoder/http/bridge.h"

#include <netdb.h>
#include <strings.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "decoder/http/connection.h"
#include "decoder/http/connection_threads.h"
#include "decoder/http/refusal.h"

#define HONE_BRIDGE extern "C" __attribute__((visibility("default")))

using hone::decoder::body_patience;
using hone::decoder::Connection;
using hone::decoder::ConnectionThreads;

struct hone_http_exchange {
    Connection& connection;
    const hone_http_callbacks& callbacks;
    const httplib::Request* request = nullptr;
    httplib::Response* response = nullptr;
    const httplib::ContentReader* reader = nullptr;  ///< of a body that was not asked for yet
    std::size_t max_body_bytes = 0;
    std::string body{};
    bool too_long = false;
    bool is_whole = true;  ///< the body
    bool is_answered = false;
    httplib::DataSink* sink = nullptr;
};

namespace {

using Exchange = hone_http_exchange;

constexpr std::size_t head_bytes = std::size_t{64} << 10;
constexpr int backlog = 1024;
constexpr int crowded_idle_ms = 500;
/// Descriptors of files that are not for connections: the GPU's, the cache's, those of compilers.
constexpr std::size_t other_files = 128;

std::string_view view(hone_http_text text) { return {text.bytes, text.size}; }
hone_http_text text(const std::string& text) { return {text.data(), text.size()}; }

void copy(std::string_view text, char* to, std::size_t size) {
    if (size == 0) return;
    const std::size_t length = std::min(text.size(), size - 1);
    std::memcpy(to, text.data(), length);
    to[length] = 0;
}

/// Whether there is such a host or address. cpp-httplib does not say, and errno has what its look-up met.
bool is_known(const std::string& host) {
    addrinfo* found = nullptr;
    if (getaddrinfo(host.c_str(), nullptr, nullptr, &found) != 0) return false;
    freeaddrinfo(found);
    return true;
}

/// cpp-httplib would let two servers share a port.
void socket_options(socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
}

/// Reads the body, up to what is allowed.
void read_body(Exchange& exchange) {
    const httplib::ContentReader& reader = *std::exchange(exchange.reader, nullptr);
    std::size_t size = 0;
    // With the lines between pieces, which may be as short as they like.
    exchange.connection.begin_body(body_patience * exchange.max_body_bytes + head_bytes,
                                   exchange.request->has_header("Transfer-Encoding"));
    const bool came = reader([&](const char* data, std::size_t more) {
        size += more;
        if (size > exchange.max_body_bytes) exchange.too_long = true;
        if (!exchange.too_long) exchange.body.append(data, more);
        return size / body_patience <= exchange.max_body_bytes;
    });
    exchange.is_whole = came && exchange.connection.form().is_strict();
}

/// How many files the process may have open, at least as many as `wanted` where it may ask for them.
std::size_t file_limit(std::size_t wanted) {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
    if (limit.rlim_cur < wanted) {
        rlimit more = limit;
        more.rlim_cur = limit.rlim_max == RLIM_INFINITY ? wanted : std::min<rlim_t>(wanted, limit.rlim_max);
        if (setrlimit(RLIMIT_NOFILE, &more) == 0) limit = more;
    }
    return limit.rlim_cur;
}

bool lacks_files(const std::exception& failure) {
    const auto* const error = dynamic_cast<const std::system_error*>(&failure);
    return error != nullptr && error->code() == std::errc::too_many_files_open;
}

/// Whether a list such as "keep-alive, Close" has that token, whose letters may be large or small.
bool lists_close(std::string_view list) {
    while (!list.empty()) {
        std::string_view token = list.substr(0, list.find(','));
        list.remove_prefix(std::min(token.size() + 1, list.size()));
        token.remove_prefix(std::min(token.find_first_not_of(" \t"), token.size()));
        token = token.substr(0, token.find_last_not_of(" \t") + 1);
        if (token.size() == 5 && strncasecmp(token.data(), "close", token.size()) == 0) return true;
    }
    return false;
}

/// Whether the client wants the connection closed behind the answer. The request then says so as cpp-httplib
/// knows it, which looks for that spelling alone.
bool asks_to_close(httplib::Request& request) {
    const auto [begin, end] = request.headers.equal_range("Connection");
    if (std::none_of(begin, end, [](const auto& header) { return lists_close(header.second); })) return false;
    request.headers.erase(begin, end);
    request.headers.emplace("Connection", "close");
    return true;
}

/// A target may name this server in front of its path (RFC 9112, 3.2.2), which cpp-httplib takes for the
/// path's beginning. As there, whatever host is named is ours; one without a name is none.
void leave_out_host(std::string& path) {
    for (const std::string_view scheme : {"http://", "https://"}) {
        if (strncasecmp(path.c_str(), scheme.data(), scheme.size()) != 0) continue;
        const std::size_t end = std::min(path.find('/', scheme.size()), path.size());
        if (end > scheme.size()) path = end == path.size() ? "/" : path.substr(end);
        return;
    }
}

/// cpp-httplib repeats to the client that it asked for this.
void close_behind(const httplib::Request& request, httplib::Response& response) {
    if (request.get_header_value("Connection") != "close") response.set_header("Connection", "close");
}

/// The exchange of this thread's connection: cpp-httplib's handlers get no word of where a request came from.
/// Its place is made with the thread: at the first use the C library would end the process where it has no
/// memory for it.
[[gnu::tls_model("initial-exec")]] thread_local Exchange* current = nullptr;

class Server final : public httplib::Server {
  public:
    Server(const hone_http_options& options, const hone_http_callbacks& callbacks)
        : options_(options), callbacks_(callbacks) {
        new_task_queue = [this] { return threads_.release(); };
        set_socket_options(socket_options);
        set_tcp_nodelay(true);
        set_idle_interval(0, 50'000);
        set_keep_alive_max_count(1'000'000);
        set_keep_alive_timeout(std::max(1, options_.idle_timeout_ms / 1000));
        add_handlers();
    }
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    ~Server() override {
        if (const socket_t socket = svr_sock_.exchange(INVALID_SOCKET); socket != INVALID_SOCKET)
            close(socket);
    }

    bool listen_at(const std::string& host, int port) {
        const bool known = is_known(host);
        errno = 0;
        if (!known) return false;
        const bool bound = port == 0 ? bind_to_any_port(host) > 0 : bind_to_port(host, port);
        return bound && ::listen(svr_sock_, backlog) == 0;
    }
    /// Throws std::system_error where the system starts no more threads, or has no files for so many
    /// connections.
    void start_threads() {
        const auto threads = static_cast<std::size_t>(options_.connections);
        const std::size_t files = file_limit(threads + other_files);
        if (files < threads + other_files) throw std::system_error(EMFILE, std::generic_category());
        const std::size_t most = std::min(threads + backlog, files - other_files);
        threads_ = std::make_unique<ConnectionThreads>(*this, stops_, open_, threads, most);
    }
    [[nodiscard]] int port() const {
        sockaddr_storage address{};
        socklen_t size = sizeof(address);
        if (getsockname(svr_sock_, reinterpret_cast<sockaddr*>(&address), &size) != 0) return -1;
        const bool is_new = address.ss_family == AF_INET6;
        return ntohs(is_new ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                            : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
    }
    void ask_to_stop() { stops_ = true; }
    [[nodiscard]] bool is_asked_to_stop() const { return stops_; }

  private:
    void add_handlers() {
        set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
            if (const int status =
                    hone::decoder::refusal(request, current->connection.form(), options_.max_body_bytes);
                status != 0) {
                response.status = status;
                return HandlerResponse::Handled;
            }
            if (request.method == "POST") return HandlerResponse::Unhandled;
            // Nobody reads the body that such a method has: the connection ends behind the answer.
            if (hone::decoder::has_body(request) && request.get_header_value("Content-Length") != "0")
                current->is_whole = false;
            handle(request, response, nullptr);
            return HandlerResponse::Handled;
        });
        Post(".*", [this](const httplib::Request& request, httplib::Response& response,
                          const httplib::ContentReader& reader) { handle(request, response, &reader); });
        set_error_handler([this](const httplib::Request& request, httplib::Response& response) {
            if (current->is_answered) return;
            const bool is_head_too_long = response.status == 400 && current->connection.is_too_long();
            refuse(request, response, is_head_too_long ? 431 : response.status);
            close_behind(request, response);
        });
    }

    void refuse(const httplib::Request& request, httplib::Response& response, int status) {
        current->request = &request;
        current->response = &response;
        current->is_whole = false;  // where the next request begins, nobody knows
        callbacks_.refuse(callbacks_.user, current, status);
    }

    /// A first line without end, of which cpp-httplib says nothing to the client.
    void refuse_line(Connection& connection) {
        const httplib::Request request;
        httplib::Response response;
        refuse(request, response, 414);
        std::string reply = "HTTP/1.1 414 URI Too Long\r\nConnection: close\r\n";
        reply += "Content-Type: " + response.get_header_value("Content-Type") + "\r\n";
        reply += "Content-Length: " + std::to_string(response.body.size()) + "\r\n\r\n" + response.body;
        connection.write(reply.data(), reply.size());
    }

    void handle(const httplib::Request& request, httplib::Response& response,
                const httplib::ContentReader* reader) {
        current->request = &request;
        current->response = &response;
        current->reader = reader;
        callbacks_.handle(callbacks_.user, current);
        if (current->reader != nullptr) current->is_whole = false;
        if (!current->is_whole) close_behind(request, response);
    }

    bool process_and_close_socket(socket_t socket) override {
        try {
            Connection connection(socket, {.head_bytes = head_bytes,
                                           .request = std::chrono::milliseconds(options_.request_timeout_ms),
                                           .write = std::chrono::milliseconds(options_.write_timeout_ms),
                                           .crowded = [this] { return is_crowded(); }});
            while (
                connection.wait_for_request([this] { return idle_time(); }, [this] { return stops_.load(); }))
                if (!answer(connection)) break;
        } catch (const std::exception&) {  // no memory: the connection is closed, others go on
        }
        --open_;
        if (stops_) stop();
        return true;
    }

    [[nodiscard]] bool is_crowded() const { return open_ > options_.connections; }

    /// How long a connection may say nothing: not long where others wait for its thread.
    [[nodiscard]] std::chrono::milliseconds idle_time() const {
        const int most = is_crowded() ? crowded_idle_ms : options_.idle_timeout_ms;
        return std::chrono::milliseconds(std::min(most, options_.idle_timeout_ms));
    }

    /// One request. False: the connection has nothing more to say.
    bool answer(Connection& connection) {
        connection.begin_request();
        Exchange exchange{
            .connection = connection, .callbacks = callbacks_, .max_body_bytes = options_.max_body_bytes};
        current = &exchange;
        bool closed = false;
        bool to_close = false;
        const bool answered = process_request(connection, stops_, closed, [&](httplib::Request& request) {
            to_close = asks_to_close(request);
            leave_out_host(request.path);
            request.headers.erase("Accept-Encoding");  // pieces of a text would wait for each other
            request.ranges.clear();
        });
        if (!answered && connection.is_too_long()) refuse_line(connection);
        current = nullptr;
        return answered && !closed && !to_close && exchange.is_whole;
    }

    hone_http_options options_;
    hone_http_callbacks callbacks_;
    std::atomic<bool> stops_{false};
    std::atomic<int> open_{0};
    std::unique_ptr<ConnectionThreads> threads_;  ///< until the server runs
};

}  // namespace

struct hone_http_server {
    Server server;
};

HONE_BRIDGE hone_http_server* hone_http_listen(const hone_http_options* options,
                                               const hone_http_callbacks* callbacks, bool* in_use,
                                               char* error, std::size_t error_size) {
    auto* made = new hone_http_server{.server = {*options, *callbacks}};
    if (!made->server.listen_at(options->host, options->port)) {
        const int why = errno;
        *in_use = why == EADDRINUSE;
        copy(why == 0 ? "no such host or address; allowed: one of this machine" : std::strerror(why), error,
             error_size);
        delete made;
        return nullptr;
    }
    try {
        made->server.start_threads();
    } catch (const std::exception& failure) {
        const std::string count = std::to_string(options->connections);
        const std::string files =
            std::to_string(static_cast<std::size_t>(options->connections) + other_files);
        copy(lacks_files(failure)
                 ? count + " connections need " + files +
                       " open files, more than this process may have; allow them (ulimit -n), or fewer "
                       "--max-requests"
                 : count + " threads for connections cannot be started (" + failure.what() +
                       "); allow more of them (ulimit -u), more memory (ulimit -v), or fewer --max-requests",
             error, error_size);
        delete made;
        return nullptr;
    }
    return made;
}

HONE_BRIDGE int hone_http_port(const hone_http_server* server) { return server->server.port(); }
HONE_BRIDGE bool hone_http_run(hone_http_server* server) {
    return server->server.listen_after_bind() || server->server.is_asked_to_stop();
}
HONE_BRIDGE void hone_http_stop(hone_http_server* server) { server->server.ask_to_stop(); }
HONE_BRIDGE void hone_http_close(hone_http_server* server) { delete server; }

HONE_BRIDGE hone_http_text hone_http_method(const hone_http_exchange* exchange) {
    return text(exchange->request->method);
}
HONE_BRIDGE hone_http_text hone_http_path(const hone_http_exchange* exchange) {
    return text(exchange->request->path);
}

HONE_BRIDGE bool hone_http_body(hone_http_exchange* exchange, hone_http_text* body, bool* too_long) {
    if (exchange->reader != nullptr) read_body(*exchange);
    *body = text(exchange->body);
    *too_long = exchange->too_long;
    return exchange->is_whole && !exchange->too_long;
}

HONE_BRIDGE bool hone_http_connected(const hone_http_exchange* exchange) {
    return exchange->connection.connected();
}

HONE_BRIDGE void hone_http_header(hone_http_exchange* exchange, const char* name, const char* value) {
    exchange->response->set_header(name, value);
}

HONE_BRIDGE void hone_http_reply(hone_http_exchange* exchange, int status, const char* type,
                                 hone_http_text body) {
    exchange->is_answered = true;
    exchange->response->status = status;
    exchange->response->set_content(std::string(view(body)), type);
}

HONE_BRIDGE void hone_http_stream(hone_http_exchange* exchange, const char* type, void* state) {
    exchange->is_answered = true;
    exchange->response->status = 200;
    exchange->response->set_header("Cache-Control", "no-cache");
    const hone_http_callbacks& callbacks = exchange->callbacks;
    const auto hand_out = [exchange, &callbacks, state](std::size_t, httplib::DataSink& sink) {
        exchange->sink = &sink;
        const bool whole = callbacks.stream(callbacks.user, exchange, state);
        if (whole) sink.done();
        return whole;
    };
    const auto end = [&callbacks, state](bool) { callbacks.end_stream(callbacks.user, state); };
    if (exchange->request->version != "HTTP/1.0")
        return exchange->response->set_chunked_content_provider(type, hand_out, end);
    // Knows no pieces: the body ends with the connection.
    exchange->is_whole = false;
    exchange->response->set_content_provider(type, hand_out, end);
}

HONE_BRIDGE bool hone_http_write(hone_http_exchange* exchange, hone_http_text piece) {
    return exchange->sink != nullptr && exchange->sink->write(piece.bytes, piece.size);
}
