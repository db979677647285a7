#include "runtime/cuda/memory.h"

#include <doctest/doctest.h>

#include <vector>

#include "tests/support/fake_machine.h"

namespace hone::runtime {
namespace {

using test::FakeMachine;

TEST_CASE("device memory is freed with its owner, wherever that was moved") {
    const FakeMachine machine;
    const auto driver = Driver::load();
    const PrimaryContext context(driver, 0);
    const int before = machine.live("memory");
    {
        DeviceBuffer<float> first(*driver, 100);
        CHECK(first.bytes() == 400);
        CHECK(machine.live("memory") == before + 1);
        const DeviceBuffer<float> second = std::move(first);
        CHECK(second.size() == 100);
        CHECK(second.address() != 0);
        CHECK(machine.live("memory") == before + 1);
    }
    CHECK(machine.live("memory") == before);
}

TEST_CASE("what is copied to the GPU comes back") {
    const FakeMachine machine;
    const auto driver = Driver::load();
    const PrimaryContext context(driver, 0);
    const DeviceBuffer<int> buffer(*driver, 4);
    upload(*driver, buffer.span(), std::vector{1, 2, 3, 4});
    CHECK(download(*driver, buffer.span()) == std::vector{1, 2, 3, 4});
    CHECK(download(*driver, buffer.span().subspan(1, 2)) == std::vector{2, 3});
    CHECK_THROWS_AS(upload(*driver, buffer.span(), std::vector{1, 2}), CudaError);
}

TEST_CASE("a buffer of no elements takes no memory") {
    const FakeMachine machine;
    const auto driver = Driver::load();
    const PrimaryContext context(driver, 0);
    const DeviceBuffer<int> buffer(*driver, 0);
    CHECK(buffer.address() == 0);
    CHECK(download(*driver, buffer.span()).empty());
}

TEST_CASE("running out of memory says how much was asked for") {
    const auto message = [](const std::string& script, std::size_t bytes) -> std::string {
        const FakeMachine machine(script);
        const auto driver = Driver::load();
        const PrimaryContext context(driver, 0);
        try {
            const DeviceBuffer<std::byte> buffer(*driver, bytes);
        } catch (const CudaError& error) {
            CHECK(error.result() == CUDA_ERROR_OUT_OF_MEMORY);
            CHECK_FALSE(error.sticky());
            return error.what();
        }
        return "no error";
    };
    CHECK(message("device:memory=1000000", 2'000'000)
              .starts_with("allocating 2000000 bytes: CUDA_ERROR_OUT_OF_MEMORY"));
    CHECK(message("alloc:over=1000:fail=2", 1001).starts_with("allocating 1001 bytes"));
    CHECK(message("alloc:over=1000:fail=2", 1000) == "no error");
}

TEST_CASE("free memory shrinks by what is allocated") {
    const FakeMachine machine;
    const auto driver = Driver::load();
    const PrimaryContext context(driver, 0);
    const std::int64_t before = free_memory_bytes(*driver);
    const DeviceBuffer<std::byte> buffer(*driver, std::size_t{3} << 30);
    CHECK(before - free_memory_bytes(*driver) == std::int64_t{3} << 30);
}

}  // namespace
}  // namespace hone::runtime
