#include "decoder/http/server.h"

#include <fmt/format.h>

#include <array>

namespace hone::decoder {
namespace {

hone_http_text text(std::string_view text) { return {text.data(), text.size()}; }
std::string_view view(hone_http_text text) { return {text.bytes, text.size}; }

class Client final : public HttpClient {
  public:
    explicit Client(hone_http_exchange* exchange) : exchange_(exchange) {}
    [[nodiscard]] bool connected() const override { return HttpLibrary::get().connected(exchange_); }
    bool write(std::string_view piece) override { return HttpLibrary::get().write(exchange_, text(piece)); }

  private:
    hone_http_exchange* exchange_;
};

using Stream = std::function<bool(HttpClient&)>;

void send(hone_http_exchange* exchange, HttpReply reply) {
    const HttpLibrary& library = HttpLibrary::get();
    for (const auto& [name, value] : reply.headers) library.header(exchange, name.c_str(), value.c_str());
    if (!reply.stream) return library.reply(exchange, reply.status, reply.type.c_str(), text(reply.body));
    library.stream(exchange, reply.type.c_str(), new Stream(std::move(reply.stream)));
}

// The module's frames know nothing of our exceptions: none leaves these functions.

const HttpHandler& handler_of(void* user) { return *static_cast<const HttpHandler*>(user); }

void handle(void* user, hone_http_exchange* exchange) noexcept {
    try {
        Client client(exchange);
        send(exchange, handler_of(user).answer(HttpRequest(exchange), client));
    } catch (const std::exception&) {
        HttpLibrary::get().reply(exchange, 500, "text/plain", text("out of memory\n"));
    }
}

bool stream(void*, hone_http_exchange* exchange, void* state) noexcept {
    try {
        Client client(exchange);
        return (*static_cast<Stream*>(state))(client);
    } catch (const std::exception&) {
        return false;
    }
}

void end_stream(void*, void* state) noexcept { delete static_cast<Stream*>(state); }

void refuse(void* user, hone_http_exchange* exchange, int status) noexcept {
    try {
        send(exchange, handler_of(user).refuse(status));
    } catch (const std::exception&) {
        HttpLibrary::get().reply(exchange, status, "text/plain", text(""));
    }
}

int milliseconds(std::chrono::milliseconds time) { return static_cast<int>(time.count()); }

}  // namespace

std::string_view HttpRequest::method() const { return view(HttpLibrary::get().method(exchange_)); }
std::string_view HttpRequest::path() const { return view(HttpLibrary::get().path(exchange_)); }

HttpRequest::Body HttpRequest::read(std::string_view& body) const {
    hone_http_text bytes{};
    bool too_long = false;
    const bool whole = HttpLibrary::get().body(exchange_, &bytes, &too_long);
    body = view(bytes);
    return whole ? Body::whole : too_long ? Body::too_long : Body::cut;
}

HttpServer::HttpServer(const HttpOptions& options, HttpHandler handler)
    : handler_(std::move(handler)), library_(HttpLibrary::get()) {
    const hone_http_options asked{.host = options.host.c_str(),
                                  .port = options.port,
                                  .connections = options.connections,
                                  .max_body_bytes = options.max_body_bytes,
                                  .request_timeout_ms = milliseconds(options.request_timeout),
                                  .idle_timeout_ms = milliseconds(options.idle_timeout),
                                  .write_timeout_ms = milliseconds(options.write_timeout)};
    const hone_http_callbacks callbacks{
        .user = &handler_, .handle = handle, .stream = stream, .end_stream = end_stream, .refuse = refuse};
    std::array<char, 256> error{};
    bool in_use = false;
    server_ = library_.listen(&asked, &callbacks, &in_use, error.data(), error.size());
    if (server_ != nullptr) return;
    throw ListenError(
        in_use ? fmt::format("port {} of {} is in use: another server runs there; another --port, or 0 "
                             "for one that is free",
                             options.port, options.host)
               : fmt::format("cannot listen at {}, port {}: {}", options.host, options.port, error.data()));
}

HttpServer::~HttpServer() { library_.close(server_); }

int HttpServer::port() const { return library_.port(server_); }
void HttpServer::run() {
    if (!library_.run(server_)) throw ListenError("the system gives the server no connections any more");
}
void HttpServer::stop() { library_.stop(server_); }

}  // namespace hone::decoder
