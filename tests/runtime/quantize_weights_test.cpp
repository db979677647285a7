#include "hone/quantize_on_device.h"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "kernel_templates/quantize_weights/quantize_weights.h"
#include "runtime/cuda/memory.h"
#include "runtime/operators/quantize_on_device.h"
#include "tests/runtime/operator_under_test.h"

namespace hone::runtime {
namespace {

using quantize_weights::BadRows;
using quantize_weights::no_row;

constexpr QuantizeWeights small{
    .in = 64, .max_out = 100, .dtype = Dtype::fp32, .group = 64, .scale_dtype = Dtype::fp16};

/// Quantizes `out` rows as the public function does.
Status quantize(Dispatcher& dispatcher, const QuantizeWeightsArgs& args, std::int64_t out) {
    return DeviceQuantizer(dispatcher, small, out).run(nullptr, args);
}

std::int64_t workspace_bytes(Dispatcher& dispatcher) {
    return DeviceQuantizer(dispatcher, small, 100).workspace_bytes();
}

/// Memory of a call on the fake GPU, whose kernels do nothing.
struct FakeCall {
    FakeCall(const Driver& used, const QuantizeWeights& description, std::int64_t out,
             std::int64_t workspace_bytes)
        : driver(used),
          weight(used, static_cast<std::size_t>(out * description.in)),
          codes(used, 1 << 16),
          workspace(used, static_cast<std::size_t>(workspace_bytes)) {
        upload(driver, weight.span(), std::vector<float>(weight.size(), 1.0F));
        found({no_row, no_row});
    }
    /// What a kernel would have noted.
    void found(BadRows rows) {
        std::vector<std::byte> bytes(workspace.size());
        std::memcpy(bytes.data(), &rows, sizeof rows);
        upload(driver, workspace.span(), bytes);
    }
    void set(std::size_t index, float value) {
        upload(driver, weight.span().subspan(index, 1), std::vector<float>{value});
    }
    [[nodiscard]] QuantizeWeightsArgs args() const {
        return {.weight = weight.data(),
                .codes = codes.data(),
                .scales = codes.data() + (1 << 15),
                .workspace = workspace.data()};
    }

    const Driver& driver;
    DeviceBuffer<float> weight;
    DeviceBuffer<std::byte> codes;
    DeviceBuffer<std::byte> workspace;
};

TEST_CASE("quantizing weights is a problem of one family") {
    CHECK(to_string(quantize_problem({.in = 4096, .group = 128, .zeros = true})) ==
          "quantize_weights dtype=bf16 format=w4a16 group=128 zeros=yes one_scale=no search=yes "
          "scale_dtype=bf16 in=4096 out=32768");
    CHECK(to_string(quantize_problem({.in = 77,
                                      .max_out = 9,
                                      .dtype = Dtype::fp32,
                                      .format = QuantFormat::w8a8,
                                      .one_scale = true,
                                      .search = false})) ==
          "quantize_weights dtype=fp32 format=w8a8 group=0 zeros=no one_scale=yes search=no "
          "scale_dtype=bf16 in=77 out=9");
}

TEST_CASE("weights that no kernel could quantize are refused by name") {
    const auto refused = [](const QuantizeWeights& weights, const char* text) {
        CHECK_THROWS_WITH(static_cast<void>(quantize_problem(weights)), doctest::Contains(text));
    };
    refused({.in = 0}, "'in' has the value '0'");
    refused({.in = 64, .max_out = 0}, "max_out is 0");
    refused({.in = 96, .group = 64}, "group is 64; allowed: numbers that divide in, 96");
    refused({.in = 96, .group = 48}, "group is 48; allowed: 0, 32, 64, 128 for w4a16");
    refused({.in = 128, .format = QuantFormat::w8a16, .group = 128}, "allowed: 0 for integer codes");
    refused({.in = 128, .format = QuantFormat::fp8, .group = 64}, "allowed: 0, 128 for fp8");
    refused({.in = 8, .format = QuantFormat::w8a8, .zeros = true}, "zeros is yes; allowed: no");
    refused({.in = 8, .one_scale = true}, "one_scale is yes; allowed: no");
    refused({.in = 8, .scale_dtype = Dtype::fp32}, "allowed: fp16, bf16");
    refused({.in = 262144, .max_out = 1048576}, "allowed: up to 2^36 weights");
    refused({.in = 8, .format = static_cast<QuantFormat>(4)}, "format is 4; allowed: w4a16");
}

TEST_CASE("a call of wrong pointers or sizes launches nothing") {
    const test::FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false});
    const FakeCall call(dispatcher.session().driver(), small, 70, workspace_bytes(dispatcher));
    QuantizeWeightsArgs args = call.args();
    CHECK(quantize(dispatcher, args, 101) == Status::bad_rows);
    CHECK(quantize(dispatcher, args, -1) == Status::bad_rows);
    CHECK(quantize(dispatcher, args, 0) == Status::ok);
    args.weight_stride = 63;
    CHECK(quantize(dispatcher, args, 70) == Status::bad_stride);
    args = call.args();
    args.workspace = nullptr;
    CHECK(quantize(dispatcher, args, 70) == Status::null_pointer);
    args = call.args();
    args.codes = call.codes.data() + 8;
    CHECK(quantize(dispatcher, args, 70) == Status::misaligned);
    CHECK(machine.launch_count() == 0);
}

TEST_CASE("a call clears, finds the scales, then encodes") {
    const test::FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false});
    const FakeCall call(dispatcher.session().driver(), small, 70, workspace_bytes(dispatcher));
    CHECK(quantize(dispatcher, call.args(), 70) == Status::ok);
    REQUIRE(machine.launch_count() == 3);
    CHECK(machine.launch(0)->kernel == std::string("quantize_weights_clear"));
    CHECK(machine.launch(1)->kernel == std::string("quantize_weights_scales"));
    CHECK(machine.launch(2)->kernel == std::string("quantize_weights_encode"));
    CHECK(machine.launch(1)->grid[0] == 128 / 8);  // a warp for each row, padding included
    CHECK(machine.launch(2)->grid[0] == 2);
}

TEST_CASE("what the kernels note is refused in the host's words, the first row first") {
    const test::FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false});
    FakeCall call(dispatcher.session().driver(), small, 70, workspace_bytes(dispatcher));
    call.set(66 * 64 + 5, std::numeric_limits<float>::infinity());
    call.set(67 * 64 + 5, -2e6F);
    const auto refused = [&](BadRows rows, const char* text) {
        call.found(rows);
        CHECK_THROWS_WITH(static_cast<void>(quantize(dispatcher, call.args(), 70)), doctest::Contains(text));
    };
    refused({66, 67}, "weight [66, 5] is inf; allowed: finite numbers");
    refused({66, no_row}, "weight [66, 5] is inf");
    refused({no_row, 67}, "weights of row 67, group 0 reach 2000000, and their scale is beyond the 65504");
    refused({68, 67}, "weights of row 67");
    refused({1, no_row}, "row 1 of the weight has no codes");  // it was changed meanwhile
    call.found({no_row, no_row});
    CHECK(quantize(dispatcher, call.args(), 70) == Status::ok);
}

TEST_CASE("the public function throws what the status means, by name and value") {
    const test::FakeMachine machine;
    Runtime runtime({.use_cache = false});
    const std::shared_ptr<const Driver> driver = Driver::load();
    const FakeCall call(*driver, small, 70, quantize_on_device_workspace(runtime, small, 100));
    quantize_on_device(runtime, small, call.args(), 70, nullptr);
    CHECK(machine.launch_count() == 3);
    const auto message = [&](const QuantizeWeightsArgs& args, std::int64_t out) {
        try {
            quantize_on_device(runtime, small, args, out, nullptr);
        } catch (const Error& error) {
            CHECK(error.where() == "quantize_on_device()");
            return std::string(error.what());
        }
        return std::string("none");
    };
    CHECK(message(call.args(), 101).find("101") != std::string::npos);
    QuantizeWeightsArgs args = call.args();
    args.codes = nullptr;
    CHECK(message(args, 70).find("codes") != std::string::npos);
    CHECK(machine.launch_count() == 3);
}

}  // namespace
}  // namespace hone::runtime
