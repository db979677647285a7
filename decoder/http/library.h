// libhone_http.so (bridge.h), opened at run time, once a process.
#pragma once

#include "decoder/http/bridge.h"
#include "runtime/system/shared_library.h"

namespace hone::decoder {

struct HttpLibrary {
    /// Beside the program, in the folder above it or in lib/hone next to its folder; HONE_HTTP_LIBRARY names
    /// another file. Throws DecoderError where there is none: what is missing.
    [[nodiscard]] static const HttpLibrary& get();

    decltype(&hone_http_listen) listen = nullptr;
    decltype(&hone_http_port) port = nullptr;
    decltype(&hone_http_run) run = nullptr;
    decltype(&hone_http_stop) stop = nullptr;
    decltype(&hone_http_close) close = nullptr;
    decltype(&hone_http_method) method = nullptr;
    decltype(&hone_http_path) path = nullptr;
    decltype(&hone_http_body) body = nullptr;
    decltype(&hone_http_connected) connected = nullptr;
    decltype(&hone_http_header) header = nullptr;
    decltype(&hone_http_reply) reply = nullptr;
    decltype(&hone_http_stream) stream = nullptr;
    decltype(&hone_http_write) write = nullptr;

  private:
    HttpLibrary();
    runtime::SharedLibrary library_;
};

}  // namespace hone::decoder
