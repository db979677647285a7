#include "runtime/cuda/stream.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "runtime/cuda/memory.h"
#include "tests/support/fake_machine.h"

namespace hone::runtime {
namespace {

using test::FakeMachine;

TEST_CASE("streams, events and graphs are destroyed with their owners") {
    const FakeMachine machine;
    const auto driver = Driver::load();
    const PrimaryContext context(driver, 0);
    {
        const Stream stream = create_stream(*driver);
        const Event event = create_event(*driver);
        const GraphExec graph = capture_graph(*driver, stream.get(), [] {});
        CHECK(machine.live("stream") == 1);
        CHECK(machine.live("event") == 1);
        CHECK(machine.live("graph_exec") == 1);
        CHECK(machine.live("graph") == 0);
    }
    CHECK(machine.live("stream") == 0);
    CHECK(machine.live("event") == 0);
    CHECK(machine.live("graph_exec") == 0);
}

TEST_CASE("captured work runs when the graph is launched, as often as it is") {
    const FakeMachine machine;
    const auto driver = Driver::load();
    const PrimaryContext context(driver, 0);
    const Stream stream = create_stream(*driver);
    const DeviceBuffer<unsigned char> buffer(*driver, 4);
    const GraphExec graph = capture_graph(*driver, stream.get(), [&] {
        check(*driver, driver->cuMemsetD8Async(buffer.address(), 7, 4, stream.get()), "memset");
    });
    CHECK(download(*driver, buffer.span())[0] == 0);
    check(*driver, driver->cuGraphLaunch(graph.get(), stream.get()), "launch");
    CHECK(download(*driver, buffer.span())[3] == 7);
}

TEST_CASE("an exception ends the capture and passes through") {
    const FakeMachine machine;
    const auto driver = Driver::load();
    const PrimaryContext context(driver, 0);
    const Stream stream = create_stream(*driver);
    CHECK_THROWS_AS(
        static_cast<void>(capture_graph(*driver, stream.get(), [] { throw std::runtime_error("no"); })),
        std::runtime_error);
    CHECK(machine.live("graph") == 0);
    CHECK(driver->cuStreamQuery(stream.get()) == CUDA_SUCCESS);
}

TEST_CASE("events that were never recorded have no time between them") {
    const FakeMachine machine;
    const auto driver = Driver::load();
    const PrimaryContext context(driver, 0);
    const Event start = create_event(*driver);
    const Event stop = create_event(*driver);
    CHECK_THROWS_AS(static_cast<void>(elapsed_us(*driver, start.get(), stop.get())), CudaError);
}

}  // namespace
}  // namespace hone::runtime
