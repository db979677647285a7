// A model served over HTTP, from the first request to the last: listens, answers, and stops in good order.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "decoder/http/server.h"
#include "decoder/serve/service.h"

namespace hone::decoder {

struct ServeOptions {
    HttpOptions http{};
    ServiceOptions service{};
    std::chrono::milliseconds grace{5000};    ///< for requests under way when it stops
    std::chrono::milliseconds farewell{500};  ///< that it goes on to refuse requests after a failure

    /// `http` with what the service needs of it.
    [[nodiscard]] HttpOptions of_server() const;
};

class ModelServer {
  public:
    /// Listens from here on. The engine must outlive it. Throws ListenError, and DecoderError where the
    /// module for HTTP is missing.
    ModelServer(TokenEngine& engine, ServedModel model, const ServeOptions& options);

    /// "http://127.0.0.1:8000"
    [[nodiscard]] std::string address() const;
    [[nodiscard]] int port() const { return server_.port(); }
    /// Answers until `stop` is set, and finishes what it can within the grace. Returns why it ended without
    /// being asked to; empty: it was asked to.
    [[nodiscard]] std::string run(const std::atomic<bool>& stop);

  private:
    [[nodiscard]] std::string watch(const std::atomic<bool>& stop, const std::atomic<bool>& ended);
    void finish_requests();

    TokenEngine& engine_;
    ServeOptions options_;
    Service service_;
    HttpServer server_;
};

}  // namespace hone::decoder
