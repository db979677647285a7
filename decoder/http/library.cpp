#include "decoder/http/library.h"

#include "decoder/module.h"

namespace hone::decoder {
HttpLibrary::HttpLibrary()
    : library_(opened_module("Hone's module for HTTP", "libhone_http.so", "HONE_HTTP_LIBRARY",
                             "a server needs cpp-httplib", "install it (Debian 12: libcpp-httplib0.11)")) {
    resolve(library_, "hone_http_listen", listen);
    resolve(library_, "hone_http_port", port);
    resolve(library_, "hone_http_run", run);
    resolve(library_, "hone_http_stop", stop);
    resolve(library_, "hone_http_close", close);
    resolve(library_, "hone_http_method", method);
    resolve(library_, "hone_http_path", path);
    resolve(library_, "hone_http_body", body);
    resolve(library_, "hone_http_connected", connected);
    resolve(library_, "hone_http_header", header);
    resolve(library_, "hone_http_reply", reply);
    resolve(library_, "hone_http_stream", stream);
    resolve(library_, "hone_http_write", write);
}

const HttpLibrary& HttpLibrary::get() {
    static const HttpLibrary library;
    return library;
}

}  // namespace hone::decoder
