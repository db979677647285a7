// Starts threads: the thread sanitizer runs this file, too.
#include "decoder/weights/staging.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "runtime/system/parallel.h"
#include "tests/support/fake_machine.h"

using namespace hone;
using namespace hone::decoder;

namespace {

constexpr std::size_t piece = 1000;
constexpr std::size_t pieces = 64;

std::byte byte_of(std::size_t index) { return static_cast<std::byte>(index * 31 + index / 251); }

}  // namespace

TEST_CASE("pieces that threads send at once arrive, each at its place, and one that fails harms no other") {
    const test::FakeMachine machine;
    const Gpu gpu(0);
    const Bytes all(gpu.driver(), piece * pieces);
    Staging staging(gpu, piece);
    constexpr std::int64_t bad = 37;
    const auto send = [&](std::int64_t number) {
        const runtime::CurrentContext current(gpu.driver(), gpu.context());
        const std::size_t first = static_cast<std::size_t>(number) * piece;
        const std::size_t size = number % 3 == 0 ? piece : piece - 1;  // the last byte is not sent
        staging.send(all.span().subspan(first, size), [&](std::span<std::byte> bytes) {
            CHECK(bytes.size() == size);
            if (number == bad) throw std::runtime_error("no such bytes");
            for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_of(first + i);
        });
    };
    runtime::for_each_piece(pieces, 8, [&](std::int64_t number) {
        if (number == bad) {
            CHECK_THROWS_AS(send(number), std::runtime_error);
        } else {
            send(number);
        }
    });
    const std::vector<std::byte> there = runtime::download(gpu.driver(), all.span());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < there.size(); ++i) {
        const std::size_t number = i / piece;
        const bool was_sent = number != bad && (number % 3 == 0 || i % piece != piece - 1);
        wrong += was_sent && there[i] != byte_of(i) ? 1 : 0;
    }
    CHECK(wrong == 0);
}

TEST_CASE("a piece that is sent by one thread after another needs one place") {
    const test::FakeMachine machine;
    const Gpu gpu(0);
    const Bytes all(gpu.driver(), piece);
    const int streams = machine.live("stream");
    {
        Staging staging(gpu, piece);
        CHECK(machine.live("stream") == streams);
        for (int i = 0; i < 5; ++i)
            staging.send(all.span(),
                         [](std::span<std::byte> bytes) { std::ranges::fill(bytes, std::byte{7}); });
        CHECK(machine.live("stream") == streams + 1);
    }
    CHECK(machine.live("stream") == streams);
    CHECK(runtime::download(gpu.driver(), all.span()) == std::vector<std::byte>(piece, std::byte{7}));
}
