// Quantizing on the GPU against quantize() on the host: not a bit of codes, scales and zero points may
// differ, padding included. All formats, odd sizes, rows with a stride, weights of every size; and what is
// refused.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "hone/hone.h"
#include "tests/runtime/gpu_run.h"
#include "tests/runtime/quantize_case.h"

using namespace hone;
using namespace hone::test;

namespace {

using runtime::DeviceBuffer;

/// One Runtime for the whole test program.
Runtime& shared_runtime() {
    static Runtime runtime({.use_cache = false});
    return runtime;
}

/// A weight [out, in], row by row on the host and with a stride on the device.
class WeightCase {
  public:
    WeightCase(const PackedShape& shape, Dtype dtype, const std::vector<float>& wanted, std::int64_t gap = 0)
        : shape_(shape), dtype_(dtype), weights_(weights_of(wanted, dtype)), stride_(shape.in + gap) {}

    [[nodiscard]] QuantizeWeights description(bool search) const {
        return {.in = shape_.in,
                .max_out = shape_.out + 3,
                .dtype = dtype_,
                .format = shape_.format,
                .group = shape_.group,
                .zeros = shape_.zeros,
                .one_scale = shape_.one_scale,
                .scale_dtype = shape_.scale_dtype,
                .search = search};
    }

    [[nodiscard]] QuantizedWeight by_host(bool search) const {
        return quantize(weights_.bytes, dtype_, shape_, {.search = search});
    }

    /// Into memory that is full of ones before.
    [[nodiscard]] QuantizedWeight by_gpu(bool search) const {
        const runtime::Driver& driver = *Bench::get().driver;
        QuantizedWeight result{.shape = shape_};
        result.codes.assign(static_cast<std::size_t>(packed_bytes(shape_.format, shape_.out, shape_.in)),
                            255);
        result.scales.assign(static_cast<std::size_t>(scale_bytes(shape_)), 255);
        result.zeros.assign(static_cast<std::size_t>(zero_count(shape_)), 255);
        const auto weight = uploaded(driver, strided());
        const auto codes = uploaded(driver, result.codes);
        const auto scales = uploaded(driver, result.scales);
        const auto zeros = uploaded(driver, result.zeros);
        const auto bytes = static_cast<std::size_t>(
            quantize_on_device_workspace(shared_runtime(), description(search), shape_.out));
        const auto workspace = uploaded(driver, std::vector<std::uint8_t>(bytes, 255));
        quantize_on_device(shared_runtime(), description(search),
                           {.weight = weight.data(),
                            .codes = codes.data(),
                            .scales = scales.data(),
                            .zeros = zeros.data(),
                            .workspace = workspace.data(),
                            .weight_stride = stride_},
                           shape_.out, nullptr);
        result.codes = download(driver, codes.span());
        result.scales = download(driver, scales.span());
        result.zeros = download(driver, zeros.span());
        return result;
    }

    void check(bool search = true) const {
        INFO("format " << static_cast<int>(shape_.format) << " out " << shape_.out << " in " << shape_.in
                       << " group " << shape_.group << " zeros " << shape_.zeros << " one_scale "
                       << shape_.one_scale << " dtype " << name(dtype_) << " scales "
                       << name(shape_.scale_dtype) << " search " << search);
        const QuantizedWeight host = by_host(search);
        const QuantizedWeight gpu = by_gpu(search);
        CHECK(host.scales == gpu.scales);
        CHECK(host.zeros == gpu.zeros);
        CHECK(host.codes == gpu.codes);
    }

  private:
    template <class T>
    static DeviceBuffer<T> uploaded(const runtime::Driver& driver, const std::vector<T>& from) {
        DeviceBuffer<T> buffer(driver, from.size());
        upload(driver, buffer.span(), from);
        return buffer;
    }

    /// With NaN between the rows.
    [[nodiscard]] std::vector<std::byte> strided() const {
        const auto row = static_cast<std::size_t>(shape_.in * size_bytes(dtype_));
        const auto step = static_cast<std::size_t>(stride_ * size_bytes(dtype_));
        std::vector<std::byte> bytes(static_cast<std::size_t>(shape_.out) * step, std::byte{0xff});
        for (std::size_t i = 0; i < static_cast<std::size_t>(shape_.out); ++i)
            std::copy_n(weights_.bytes.begin() + static_cast<std::ptrdiff_t>(i * row), row,
                        bytes.begin() + static_cast<std::ptrdiff_t>(i * step));
        return bytes;
    }

    PackedShape shape_;
    Dtype dtype_;
    Weights weights_;
    std::int64_t stride_;
};

void check_drawn(const PackedShape& shape, Dtype dtype, WeightSpread spread = WeightSpread::normal,
                 std::int64_t gap = 0) {
    WeightCase(shape, dtype, drawn_weights(shape.out * shape.in, spread, 7), gap).check();
}

constexpr std::array<Dtype, 3> dtypes{Dtype::bf16, Dtype::fp16, Dtype::fp32};
constexpr std::array<WeightSpread, 5> spreads{WeightSpread::normal, WeightSpread::uniform,
                                              WeightSpread::outliers, WeightSpread::positive,
                                              WeightSpread::tiny};

}  // namespace

// Small enough to run under a sanitizer (tests/run_gpu_tests.py --sanitize).
TEST_CASE("small weights of every format become the host's codes on the GPU") {
    check_drawn({.out = 67, .in = 96, .group = 32, .zeros = true}, Dtype::bf16);
    check_drawn({.out = 5, .in = 1100, .zeros = true}, Dtype::bf16);
    check_drawn({.format = QuantFormat::w8a16, .out = 65, .in = 97}, Dtype::fp16);
    check_drawn({.format = QuantFormat::w8a8, .out = 9, .in = 1030, .one_scale = true}, Dtype::fp32);
    check_drawn({.format = QuantFormat::fp8, .out = 130, .in = 256, .group = 128}, Dtype::bf16);
}

TEST_CASE("codes of 4 bits in groups are the host's, for weights of every kind") {
    for (const std::int64_t group : {32, 64, 128}) {
        for (const bool zeros : {false, true}) {
            for (const WeightSpread spread : spreads) {
                PackedShape shape{.out = 130, .in = 3 * group, .group = group, .zeros = zeros};
                check_drawn(shape, Dtype::bf16, spread);
                shape.scale_dtype = Dtype::fp16;
                check_drawn(shape, Dtype::fp32, spread);
            }
        }
    }
}

TEST_CASE("codes of 4 bits with a scale a row are the host's, in one piece and in several") {
    for (const std::int64_t in : {1, 31, 75, 1023, 1024, 1025, 4096, 5003}) {
        for (const bool zeros : {false, true})
            check_drawn({.out = 70, .in = in, .zeros = zeros}, Dtype::bf16, WeightSpread::outliers);
    }
}

TEST_CASE("codes of 8 bits are the host's, whatever shares a scale") {
    for (const Dtype dtype : dtypes) {
        for (const WeightSpread spread : {WeightSpread::normal, WeightSpread::tiny}) {
            check_drawn({.format = QuantFormat::w8a16, .out = 131, .in = 1088}, dtype, spread);
            for (const QuantFormat format : {QuantFormat::w8a8, QuantFormat::fp8}) {
                for (const bool one : {false, true})
                    check_drawn({.format = format, .out = 131, .in = 1091, .one_scale = one}, dtype, spread);
            }
            check_drawn({.format = QuantFormat::fp8, .out = 300, .in = 640, .group = 128}, dtype, spread);
        }
    }
}

TEST_CASE("rows may lie apart, and nobody looks between them") {
    check_drawn({.out = 66, .in = 128, .group = 64}, Dtype::bf16, WeightSpread::normal, 24);
    check_drawn({.format = QuantFormat::w8a8, .out = 66, .in = 77}, Dtype::bf16, WeightSpread::normal, 3);
    check_drawn({.format = QuantFormat::fp8, .out = 66, .in = 77}, Dtype::fp32, WeightSpread::normal, 3);
}

TEST_CASE("without search the scale clips nothing on the GPU, too") {
    for (const bool zeros : {false, true}) {
        const PackedShape shape{.out = 66, .in = 256, .group = 128, .zeros = zeros};
        WeightCase(shape, Dtype::bf16, drawn_weights(66 * 256, WeightSpread::outliers, 3)).check(false);
        const PackedShape row{.out = 66, .in = 1500, .zeros = zeros};
        WeightCase(row, Dtype::bf16, drawn_weights(66 * 1500, WeightSpread::uniform, 3)).check(false);
    }
}

TEST_CASE("zeros, single weights and numbers at both ends of the range are the host's") {
    for (const bool zeros : {false, true}) {
        for (const Dtype scale_dtype : {Dtype::bf16, Dtype::fp16}) {
            const PackedShape shape{
                .out = 10, .in = 128, .group = 128, .zeros = zeros, .scale_dtype = scale_dtype};
            std::vector<float> weights(10 * 128, 0.0F);
            weights[128] = 1;                  // alone
            weights[256] = -1;                 // alone
            weights[3 * 128 + 5] = 0x1p-99F;   // just counts
            weights[4 * 128 + 5] = 0x1p-101F;  // does not
            weights[5 * 128 + 7] = scale_dtype == Dtype::bf16 ? 1e38F : 4e5F;
            for (std::size_t i = 6 * 128; i < 7 * 128; ++i) weights[i] = static_cast<float>(i % 16) - 8;
            for (std::size_t i = 7 * 128; i < 8 * 128; ++i) weights[i] = 3;
            for (std::size_t i = 8 * 128; i < 9 * 128; ++i) weights[i] = 1e-7F * static_cast<float>(i % 9);
            WeightCase(shape, Dtype::fp32, weights).check();
        }
    }
}

TEST_CASE("a weight without codes is refused in the host's words") {
    const auto words = [](const auto& quantize_it) {
        try {
            static_cast<void>(quantize_it());
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::bad_argument);
            return std::string(error.what());
        }
        return std::string("nothing was refused");
    };
    const auto check_refused = [&](const PackedShape& shape, std::int64_t at, float value) {
        std::vector<float> weights = drawn_weights(shape.out * shape.in, WeightSpread::normal, 5);
        weights[static_cast<std::size_t>(at)] = value;
        weights.back() = value;  // the first one counts
        const WeightCase refused(shape, Dtype::fp32, weights, 8);
        const std::string host = words([&] { return refused.by_host(true); });
        CHECK(host == words([&] { return refused.by_gpu(true); }));
        CHECK(host != "nothing was refused");
    };
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const PackedShape half{.out = 70, .in = 256, .group = 64, .zeros = true, .scale_dtype = Dtype::fp16};
    for (const float value : {nan, infinity, -infinity, 1e6F}) check_refused(half, 67 * 256 + 130, value);
    check_refused({.out = 70, .in = 1500}, 1100, nan);
    check_refused({.format = QuantFormat::w8a16, .out = 70, .in = 100}, 6900, -infinity);
    check_refused({.format = QuantFormat::w8a8, .out = 70, .in = 100, .one_scale = true}, 0, nan);
    check_refused({.format = QuantFormat::fp8, .out = 200, .in = 128, .group = 128}, 150 * 128, nan);
}

TEST_CASE("a weight of a large model becomes the host's codes") {
    check_drawn({.out = 1024, .in = 4096, .group = 128}, Dtype::bf16);
}
