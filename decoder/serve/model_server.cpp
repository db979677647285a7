#include "decoder/serve/model_server.h"

#include <fmt/format.h>

#include <thread>

namespace hone::decoder {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds glance{20};

/// Threads for requests under way, and some that say no to others or how the server is.
constexpr int spare_connections = 16;

}  // namespace

HttpOptions ServeOptions::of_server() const {
    HttpOptions options = http;
    options.connections = service.max_requests + spare_connections;
    options.max_body_bytes = service.max_body_bytes;
    return options;
}

ModelServer::ModelServer(TokenEngine& engine, ServedModel model, const ServeOptions& options)
    : engine_(engine),
      options_(options),
      service_(engine, std::move(model), options.service),
      server_(options.of_server(),
              {.answer = [this](const HttpRequest& request,
                                HttpClient& client) { return service_.answer(request, client); },
               .refuse = [this](int status) { return service_.refuse(status); }}) {}

std::string ModelServer::address() const {
    const std::string& host = options_.http.host;
    const bool is_ipv6 = host.find(':') != std::string::npos;
    return fmt::format("http://{}:{}", is_ipv6 ? "[" + host + "]" : host, port());
}

std::string ModelServer::run(const std::atomic<bool>& stop) {
    std::string no_connections;
    std::atomic<bool> ended{false};
    std::string why;
    {
        const std::jthread answering([&] {
            try {
                server_.run();
            } catch (const ListenError& error) {
                no_connections = error.what();
            }
            ended = true;
        });
        why = watch(stop, ended);
        server_.stop();
    }
    return why.empty() ? no_connections : why;
}

/// Until there is a reason to end, which is returned where nobody asked for it.
std::string ModelServer::watch(const std::atomic<bool>& stop, const std::atomic<bool>& ended) {
    while (!stop && !ended) {
        if (std::string failure = engine_.state().failure; !failure.empty()) {
            std::this_thread::sleep_for(options_.farewell);
            return failure;
        }
        std::this_thread::sleep_for(glance);
    }
    finish_requests();
    return {};
}

void ModelServer::finish_requests() {
    service_.drain();
    const auto wait_until = [this](Clock::time_point end) {
        while (service_.active() > 0 && Clock::now() < end) std::this_thread::sleep_for(glance);
    };
    wait_until(Clock::now() + options_.grace);
    service_.cancel();
    wait_until(Clock::now() + options_.http.write_timeout);
}

}  // namespace hone::decoder
