// Starts threads: the thread sanitizer runs this file, too.
#include "runtime/workers/channel.h"

#include <doctest/doctest.h>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

using namespace hone::runtime;

namespace {

Clock::time_point soon(int ms = 200) { return Clock::now() + std::chrono::milliseconds(ms); }

struct Pair {
    Channel ours;
    UniqueFd theirs;
    Pair() {
        auto [a, b] = socket_pair();
        ours = Channel(std::move(a));
        theirs = std::move(b);
    }
    void write(const std::string& bytes) {
        REQUIRE(send(theirs.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(bytes.size()));
    }
};

std::string frame(std::uint32_t magic, std::uint32_t json_bytes, std::uint32_t blob_bytes,
                  const std::string& rest) {
    const FrameHeader header{magic, json_bytes, blob_bytes};
    return std::string(reinterpret_cast<const char*>(&header), sizeof header) + rest;
}

}  // namespace

TEST_CASE("what is sent arrives, with its blob") {
    auto [a, b] = socket_pair();
    Channel left(std::move(a));
    Channel right(std::move(b));
    const std::vector<std::byte> blob(300'000, std::byte{7});
    std::thread sender([&] { left.send({{"op", "verify"}, {"x", 1.5}}, blob, soon(5000)); });
    Message message;
    CHECK(right.receive(message, soon(5000)) == Received::message);
    sender.join();
    CHECK(message.head.at("op") == "verify");
    CHECK(message.blob == blob);
}

TEST_CASE("a frame of another version, too large, or without an object is refused") {
    for (const std::string& bytes :
         {frame(frame_magic + 1, 2, 0, "{}"), frame(frame_magic, 0xFFFFFFFF, 0xFFFFFFFF, ""),
          frame(frame_magic, 2, 0, "[]"), frame(frame_magic, 3, 0, "{]}"), frame(frame_magic, 0, 0, "")}) {
        Pair pair;
        pair.write(bytes);
        Message message;
        CHECK_THROWS_AS((void)pair.ours.receive(message, soon()), ProtocolError);
    }
}

TEST_CASE("half a frame times out, and a closed socket is an end") {
    Pair pair;
    pair.write(frame(frame_magic, 10, 0, "{\"a\""));
    Message message;
    CHECK(pair.ours.receive(message, soon(30)) == Received::timed_out);
    pair.theirs.reset();
    CHECK(pair.ours.receive(message, soon()) == Received::end_of_file);
}

TEST_CASE("a process that was stopped has not waited meanwhile") {
    Pair pair;
    const pid_t child = fork();
    if (child == 0) {
        Message message;
        _exit(pair.ours.receive(message, soon(1000)) == Received::message ? 0 : 1);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    REQUIRE(kill(child, SIGSTOP) == 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(3500));
    REQUIRE(kill(child, SIGCONT) == 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    // Nor for what comes behind the first part.
    pair.write(frame(frame_magic, 2, 4, "{}"));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    pair.write("blob");
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

TEST_CASE("a peer that does not read cannot hold the sender") {
    Pair pair;
    const std::vector<std::byte> blob(std::size_t{8} << 20);
    CHECK_THROWS_AS(pair.ours.send(nlohmann::json::object(), blob, soon(50)), ProtocolError);
    CHECK_THROWS_AS(
        pair.ours.send(nlohmann::json::object(), std::vector<std::byte>(max_frame_bytes), soon(50)),
        ProtocolError);
}

TEST_CASE("a member that is missing, mistyped or out of range is a ProtocolError that names it") {
    const auto object =
        nlohmann::json::parse(R"({"big": 18446744073709551615, "text": "a", "half": 0.5, "none": null})");
    CHECK_THROWS_WITH_AS((void)integer(object, "nothing"), doctest::Contains("nothing"), ProtocolError);
    CHECK_THROWS_AS((void)integer(object, "big"), ProtocolError);
    CHECK_THROWS_AS((void)integer(object, "half"), ProtocolError);
    CHECK_THROWS_AS((void)text(object, "half"), ProtocolError);
    CHECK_THROWS_AS((void)list(object, "text"), ProtocolError);
    CHECK_THROWS_AS((void)boolean(object, "text"), ProtocolError);
    CHECK(bits(object, "big") == ~0ULL);
    CHECK(number(object, "half") == 0.5);
    CHECK(number(object, "none") != number(object, "none"));
}
