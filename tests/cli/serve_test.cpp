// hone serve from the outside, on the fake driver, whose kernels draw token 0 ("!").
#include <doctest/doctest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "tests/cli/made_checkpoints.h"
#include "tests/cli/program.h"
#include "tests/decoder/http_client.h"

using namespace hone::test;

namespace {

/// One that is free now.
int free_port() {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    REQUIRE(bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    close(socket);
    return ntohs(address.sin_port);
}

bool wait_until_ready(int port) {
    for (int i = 0; i < 600; ++i) {
        if (HttpClientSocket(port).connected() && request(port, "GET", "/health").status == 200) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return false;
}

struct Served {
    Sandbox sandbox;
    int port = free_port();

    explicit Served(const std::string& script = "") {
        sandbox.use_fake_gpus(script);
        write_runnable_model(sandbox.path("model"));
    }
    /// Runs the server with `use` as its client.
    [[nodiscard]] Ended run(const std::function<void(pid_t)>& use,
                            const std::vector<std::string>& options = {}) const {
        std::vector<std::string> all{"serve",           "model", "--port", std::to_string(port),
                                     "--max-sequences", "4"};
        all.insert(all.end(), options.begin(), options.end());
        return sandbox.run(all, use);
    }
};

}  // namespace

TEST_CASE("a module that a variable names and that is none is refused with the variable") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    sandbox.set("HONE_HTTP_LIBRARY", "/nonexistent/http.so");
    const Ended ended = sandbox.run({"serve", HONE_SOURCE_DIR "/examples/tiny-llama", "--port", "0"});
    CHECK(ended.code == 2);
    CHECK(ended.err.find("/nonexistent/http.so") != std::string::npos);
    CHECK(ended.err.find("HONE_HTTP_LIBRARY names it, and no other is tried") != std::string::npos);
}

TEST_CASE("a model is served until Ctrl-C") {
    const Served served;
    const Ended ended = served.run([&](pid_t pid) {
        CHECK(wait_until_ready(served.port));
        const HttpResponse whole =
            request(served.port, "POST", "/v1/completions", R"({"prompt": "Once upon", "max_tokens": 5})");
        CHECK(whole.status == 200);
        CHECK(whole.json()["choices"][0]["text"] == "!!!!!");
        CHECK(whole.json()["model"] == "model");
        bool done = false;
        const HttpResponse pieces = request(served.port, "POST", "/v1/completions",
                                            R"({"prompt": "Once upon", "max_tokens": 5, "stream": true})");
        CHECK(events(pieces.body, done).back()["choices"][0]["finish_reason"] == "length");
        CHECK(done);
        const HttpResponse chat = request(served.port, "POST", "/v1/chat/completions",
                                          R"({"messages": [{"role": "user", "content": "Hello"}]})");
        CHECK(chat.status == 400);
        CHECK(chat.message().find("has no chat template") != std::string::npos);
        CHECK(request(served.port, "GET", "/metrics").body.find("\nhone_generated_tokens_total 10\n") !=
              std::string::npos);
        kill(pid, SIGINT);
    });
    INFO(ended.err);
    CHECK(ended.code == 0);
    CHECK(ended.out == fmt::format("listening on http://127.0.0.1:{}\n", served.port));
}

TEST_CASE("with --json the address that it listened at is in the data") {
    const Served served;
    const Ended ended = served.run(
        [&](pid_t pid) {
            CHECK(wait_until_ready(served.port));
            kill(pid, SIGINT);
        },
        {"--json"});
    CHECK(ended.code == 0);
    CHECK(ended.json()["data"]["address"] == fmt::format("http://127.0.0.1:{}", served.port));
}

TEST_CASE("a second server on the same port says so before it loads the model") {
    const Served served;
    const Ended first = served.run([&](pid_t pid) {
        CHECK(wait_until_ready(served.port));
        const Ended second = served.run({});
        CHECK(second.code == 1);
        CHECK(second.err.find(fmt::format("port {} of 127.0.0.1 is in use", served.port)) !=
              std::string::npos);
        kill(pid, SIGTERM);
    });
    CHECK(first.code == 0);
}

TEST_CASE("a GPU that falls over: 503, and the process ends with the reason") {
    const Served served("launch:fail=719:after=2000");
    const Ended ended = served.run([&](pid_t) {
        CHECK(wait_until_ready(served.port));
        int status = 200;
        for (int i = 0; i < 50 && status == 200; ++i)
            status =
                request(served.port, "POST", "/v1/completions", R"({"prompt": "Once", "max_tokens": 50})")
                    .status;
        CHECK(status == 503);
    });
    INFO(ended.err);
    CHECK(ended.code == 1);
}

TEST_CASE(
    "a GPU that hangs: 503 once a step has taken all that it may, and the process ends with the reason") {
    const std::string why = "the GPU has not ended a step within 0.5 s: it hangs";
    const Served served("launch:hang:after=2000");
    const Ended ended = served.run(
        [&](pid_t) {
            CHECK(wait_until_ready(served.port));
            HttpResponse last{.status = 200};
            for (int i = 0; i < 100 && last.status == 200; ++i)
                last = request(served.port, "POST", "/v1/completions",
                               R"({"prompt": "Once", "max_tokens": 50})");
            CHECK(last.status == 503);
            CHECK(last.message().find(why) != std::string::npos);
        },
        {"--max-step-seconds", "0.5"});
    CHECK(ended.code == 1);
    CHECK(ended.err.find(why) != std::string::npos);
}

TEST_CASE("a GPU that hangs at the first step, which is measured, is an error of its own") {
    const Served served("launch:match=sample_row:hang");
    const Ended ended = served.run([](pid_t) {}, {"--max-step-seconds", "0.5"});
    CHECK(ended.code == 1);
    CHECK(ended.out.empty());
    CHECK(ended.err.find("the GPU has not ended a step within 0.5 s: it hangs") != std::string::npos);
}

TEST_CASE("a GPU that hangs while weights are brought to it is an error of its own, too") {
    const Served served("free:waits;copy:hang:after=3");
    const Ended ended = served.run([](pid_t) {}, {"--max-step-seconds", "0.5"});
    CHECK(ended.code == 1);
    CHECK(ended.out.empty());
    CHECK(ended.err.find("the GPU has not taken a piece of the weights within 0.5 s: it hangs") !=
          std::string::npos);
}

TEST_CASE("a GPU that hangs does not keep a server that is asked to stop") {
    const Served served("launch:hang:after=2000");
    std::chrono::steady_clock::time_point asked;
    const Ended ended = served.run(
        [&](pid_t pid) {
            CHECK(wait_until_ready(served.port));
            std::vector<std::unique_ptr<HttpClientSocket>> clients;
            for (int i = 0; i < 100; ++i) {
                clients.push_back(std::make_unique<HttpClientSocket>(served.port));
                clients.back()->send("POST", "/v1/completions", R"({"prompt": "Once", "max_tokens": 50})");
            }
            std::this_thread::sleep_for(std::chrono::seconds(2));
            asked = std::chrono::steady_clock::now();
            kill(pid, SIGTERM);
        },
        {"--grace", "0.1"});
    INFO(ended.err);
    CHECK(ended.code == 1);
    CHECK(ended.err.find("work under way had not ended 21 s after the process was asked to stop") !=
          std::string::npos);
    CHECK(std::chrono::steady_clock::now() - asked < std::chrono::seconds(60));
}

TEST_CASE("a server that is asked to stop while it loads its model ends at once, as other processes do") {
    Served served;
    const auto begun = served.sandbox.path("compiles");
    served.sandbox.use_fake_gpus("compile:log=" + begun.string() + ":sleep_us=60000000");
    const Ended ended = served.run([&](pid_t pid) {
        for (int i = 0; i < 600 && !std::filesystem::exists(begun); ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        kill(pid, SIGTERM);
    });
    CHECK(ended.code == 128 + SIGTERM);
    CHECK(ended.err.empty());
}

TEST_CASE("a made-up model is served, with words for its tokens") {
    const Served served;
    const Ended ended = served.sandbox.run(
        {"serve", "gpt2", "--made-up", "--port", std::to_string(served.port), "--max-sequences", "2",
         "--context", "64"},
        [&](pid_t pid) {
            CHECK(wait_until_ready(served.port));
            const HttpResponse made =
                request(served.port, "POST", "/v1/completions", R"({"prompt": [300, 301], "max_tokens": 3})");
            CHECK(made.status == 200);
            CHECK(made.json()["model"] == "gpt2");
            CHECK(made.json()["choices"][0]["text"] == std::string(3, '\0'));
            CHECK(made.json()["usage"]["prompt_tokens"] == 2);
            kill(pid, SIGINT);
        });
    INFO(ended.err);
    CHECK(ended.code == 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which need more room themselves
TEST_CASE("without room for all threads of connections the server says so, and which limit to raise") {
    const Served served;
    const std::string command = "ulimit -s 65536; ulimit -v 3000000; exec \"$0\" serve model --port 0";
    const Ended ended = served.sandbox.run_other("/bin/sh", {"-c", command, HONE_PROGRAM});
    INFO(ended.err);
    CHECK(ended.code == 1);
    CHECK(ended.out.empty());
    CHECK(ended.err.find("threads for connections cannot be started") != std::string::npos);
    CHECK(ended.err.find("ulimit -u") != std::string::npos);
}
#endif

TEST_CASE("fewer files than connections need are asked for, or refused with the limit to raise") {
    const Served served;
    const std::string served_with = " exec \"$0\" serve model --port " + std::to_string(served.port);
    const Ended refused =
        served.sandbox.run_other("/bin/sh", {"-c", "ulimit -n 200;" + served_with, HONE_PROGRAM});
    CHECK(refused.code == 1);
    CHECK(refused.err.find("272 connections need 400 open files") != std::string::npos);
    CHECK(refused.err.find("ulimit -n") != std::string::npos);
    const Ended ended = served.sandbox.run_other(
        "/bin/sh", {"-c", "ulimit -Sn 200;" + served_with, HONE_PROGRAM}, [&](pid_t pid) {
            CHECK(wait_until_ready(served.port));
            {
                std::vector<std::unique_ptr<HttpClientSocket>> silent;  // for each of which there is a thread
                while (silent.size() < 260) silent.push_back(std::make_unique<HttpClientSocket>(served.port));
                const auto asked = std::chrono::steady_clock::now();
                CHECK(request(served.port, "GET", "/health").status == 200);
                CHECK(std::chrono::steady_clock::now() - asked < std::chrono::seconds(7));
            }
            kill(pid, SIGINT);
        });
    INFO(ended.err);
    CHECK(ended.code == 0);
}

TEST_CASE("options that do not go are refused by their name") {
    const Served served;
    CHECK(served.sandbox.run({"serve", "model", "--port", "70000"}).code == 2);
    const Ended grouped =
        served.sandbox.run({"serve", "model", "--port", "0", "--format", "fp8", "--group", "64"});
    CHECK(grouped.code == 2);
    CHECK(grouped.err.find("--group: group is 64; allowed with fp8: 0, 128") != std::string::npos);
    const Ended zeros = served.sandbox.run({"serve", "model", "--port", "0", "--format", "w8a8", "--zeros"});
    CHECK(zeros.code == 2);
    CHECK(zeros.err.find("--zeros: zeros is true; allowed with w4a16 only") != std::string::npos);
    CHECK(served.sandbox.run({"serve", "nothing", "--port", "0"}).code == 2);
    CHECK(served.sandbox.run({"serve", "model", "--port", "0", "--zeros"}).err.find("go with --format") !=
          std::string::npos);
    CHECK(served.sandbox.run({"serve", "model", "--host", "256.0.0.1"}).code == 1);
    CHECK(served.sandbox.run({"serve", "model", "--host", "", "--port", "0"})
              .err.find("--host: the value is empty") != std::string::npos);
    CHECK(served.sandbox.run({"serve", "model", "--port", "0", "--memory-share", "1.5"}).code == 2);
    const Ended shrunk = served.sandbox.run({"serve", "model", "--port", "0", "--step-stretch", "0.5"});
    CHECK(shrunk.code == 2);
    CHECK(shrunk.err.find("--step-stretch is 0.5; allowed: 0, or from 1") != std::string::npos);
    CHECK(served.sandbox.run({"serve", "model", "--port", "0", "--memory-share", "0.000001"})
              .err.find("a context of up to") != std::string::npos);
}
