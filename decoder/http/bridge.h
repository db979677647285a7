// What the server calls of cpp-httplib, as C functions of a module of its own, libhone_http.so: that library
// comes as a shared one alone, with OpenSSL and others behind it, and the program is to start without it. The
// module is opened by `hone serve`. It reads requests and writes replies; what they mean it does not know.
#pragma once

#include <cstddef>

extern "C" {

struct hone_http_server;
/// A request and its reply, while its callback runs.
struct hone_http_exchange;

struct hone_http_text {
    const char* bytes;
    std::size_t size;
};

/// Called on the connection's thread, of which there are many. Nothing may be thrown out of them.
struct hone_http_callbacks {
    void* user;
    /// Answers by hone_http_reply() or hone_http_stream().
    void (*handle)(void* user, hone_http_exchange* exchange);
    /// After hone_http_stream(): hands out the body by hone_http_write(). False: the end is missing, and the
    /// connection is closed.
    bool (*stream)(void* user, hone_http_exchange* exchange, void* state);
    /// Always, whatever came of it.
    void (*end_stream)(void* user, void* state);
    /// What could not be read as a request is answered with this status: hone_http_reply() says more.
    void (*refuse)(void* user, hone_http_exchange* exchange, int status);
};

struct hone_http_options {
    const char* host;
    int port;                    ///< 0: one that is free
    int connections;             ///< served at a time, each by a thread; others wait
    std::size_t max_body_bytes;  ///< also of what is unpacked
    int request_timeout_ms;      ///< from a request's first byte to its last
    int idle_timeout_ms;         ///< between two requests of a connection
    int write_timeout_ms;        ///< for a client that takes nothing
};

/// With the threads for its connections. nullptr: `error` gets why, and `in_use` whether another has the
/// port.
hone_http_server* hone_http_listen(const hone_http_options* options, const hone_http_callbacks* callbacks,
                                   bool* in_use, char* error, std::size_t error_size);
int hone_http_port(const hone_http_server* server);
/// Until hone_http_stop(), and until the callbacks under way have returned. False: the system gives no
/// connections any more.
bool hone_http_run(hone_http_server* server);
/// From any thread, also before hone_http_run().
void hone_http_stop(hone_http_server* server);
void hone_http_close(hone_http_server* server);

hone_http_text hone_http_method(const hone_http_exchange* exchange);
/// Without the query.
hone_http_text hone_http_path(const hone_http_exchange* exchange);
/// Reads it at the first call. False: it is longer than allowed, or did not come as a whole in time;
/// `too_long` says which.
bool hone_http_body(hone_http_exchange* exchange, hone_http_text* body, bool* too_long);
/// The client has not left.
bool hone_http_connected(const hone_http_exchange* exchange);

void hone_http_header(hone_http_exchange* exchange, const char* name, const char* value);
void hone_http_reply(hone_http_exchange* exchange, int status, const char* type, hone_http_text body);
/// A reply with status 200 in pieces.
void hone_http_stream(hone_http_exchange* exchange, const char* type, void* state);
/// False: the client has left or takes nothing.
bool hone_http_write(hone_http_exchange* exchange, hone_http_text piece);

}  // extern "C"
