// One call of quantized_linear for tests on the GPU: random codes, packed as a caller packs them
// (hone/quantize.h), and what has to come out, in double, from the codes before they were packed. NaN stands
// wherever nobody may look: behind the rows of all matrices, behind the last token, behind a scale for all.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>

#include "hone/quantize.h"
#include "kernel_templates/quantized_linear/quantized_linear.h"
#include "tests/runtime/activation.h"
#include "tests/runtime/gpu_run.h"

namespace hone::test {

using quantized_linear::QuantizedProblem;

/// How a call's tensors stand in memory and share scales; elements between rows.
struct QuantizedLayout {
    std::int64_t behind_x = 0;
    std::int64_t behind_x_scales = 0;
    std::int64_t behind_weight = 0;  ///< elements behind a weight of w8a8 and fp8; up has twice as many
    std::int64_t behind_residual = 0;
    std::int64_t behind_out = 0;
    bool one_scale = false;    ///< for the whole weight
    bool one_x_scale = false;  ///< for all tokens
    bool zero_rows = false;    ///< every third token is 0, the next one in its first 128 columns
};

class QuantizedCase {
  public:
    /// Large enough to be seen.
    static constexpr float epsilon = 0.1F;

    explicit QuantizedCase(const std::string& text, QuantizedLayout layout = {})
        : problem_(*parse_problem("quantized_linear " + text)),
          p_(problem_),
          layout_(layout),
          arguments_(problem_.family->arguments(problem_)),
          random_(std::hash<std::string>{}(text)) {
        for (std::size_t i = 0; i < arguments_.size(); ++i) add_tensor(static_cast<int>(i));
        fill_x();
        for (const int pointer : {quantized_linear::norm_weight, quantized_linear::bias})
            fill(pointer, arguments_[static_cast<std::size_t>(pointer)].present ? 1 : 0);
        fill(quantized_linear::residual, p_.residual ? p_.tokens : 0);
        weight_ = fill_weight(quantized_linear::weight);
        if (p_.gated) up_ = fill_weight(quantized_linear::up);
        expect();
    }

    [[nodiscard]] const Problem& problem() const { return problem_; }
    /// Values of the weight and of up, [out, in].
    [[nodiscard]] const std::vector<double>& weight_values() const { return weight_; }
    [[nodiscard]] const std::vector<double>& up_values() const { return up_; }

    /// As the call has them, one an argument; and its scalars.
    [[nodiscard]] const std::vector<HostTensor>& tensors() const { return host_; }
    [[nodiscard]] std::array<Scalar, max_call_scalars> scalars() const {
        using namespace quantized_linear;
        std::array<Scalar, max_call_scalars> s{};
        s[tokens] = Scalar::of(p_.tokens);
        s[x_stride] = Scalar::of(stride(x));
        s[x_scale_stride] = Scalar::of(layout_.one_x_scale ? 0 : stride(x_scales));
        s[weight_stride] = Scalar::of(p_.is_packed() ? p_.in : stride(weight));
        s[up_stride] = Scalar::of(p_.is_packed() ? p_.in : stride(up));
        s[scale_stride] = Scalar::of(std::int64_t{layout_.one_scale ? 0 : 1});
        s[residual_stride] = Scalar::of(stride(residual));
        s[out_stride] = Scalar::of(stride(out));
        s[quantized_linear::epsilon] = Scalar::of(epsilon);
        return s;
    }

    /// Whether the strides fit the candidate's accesses.
    [[nodiscard]] bool suits(const Candidate& candidate) const {
        const std::int64_t access = candidate.variant->access_elements(problem_, candidate.config);
        return std::ranges::all_of(rows_of_matrices, [&](int pointer) {
            const std::int64_t columns = arguments_[static_cast<std::size_t>(pointer)].shape[3];
            return columns % access != 0 || stride(pointer) % access == 0;
        });
    }

    [[nodiscard]] std::vector<HostTensor> run(const Candidate& candidate, int launches = 1) const {
        return run_on_gpu(problem_, candidate, host_, scalars(), {}, launches);
    }
    /// Over the residual.
    [[nodiscard]] std::vector<HostTensor> run_in_place(const Candidate& candidate) const {
        return run_on_gpu(
            problem_, candidate, host_, scalars(),
            std::pair<std::size_t, std::size_t>(quantized_linear::out, quantized_linear::residual));
    }

    /// What is wrong with the result, or empty.
    [[nodiscard]] std::string fault_of(const std::vector<HostTensor>& results) const {
        const HostTensor& out = results[quantized_linear::out];
        for (std::int64_t r = p_.tokens; r < p_.tokens + guard_rows; ++r) {
            if (!out.row_untouched(r)) return "wrote behind the last row";
        }
        return test::fault_of(out, out_, p_.tokens, p_.out,
                              problem_.family->tolerance(problem_, quantized_linear::out));
    }

  private:
    /// Behind the last token; NaN before a launch.
    static constexpr std::int64_t guard_rows = 9;
    static constexpr std::array rows_of_matrices{quantized_linear::x, quantized_linear::weight,
                                                 quantized_linear::up, quantized_linear::residual,
                                                 quantized_linear::out};

    [[nodiscard]] HostTensor& host(int pointer) { return host_[static_cast<std::size_t>(pointer)]; }
    [[nodiscard]] const HostTensor& host(int pointer) const {
        return host_[static_cast<std::size_t>(pointer)];
    }
    [[nodiscard]] std::int64_t padding(int pointer) const {
        using namespace quantized_linear;
        switch (pointer) {
            case x: return layout_.behind_x;
            case x_scales: return layout_.behind_x_scales;
            case weight: return p_.is_packed() ? 0 : layout_.behind_weight;
            case up: return p_.is_packed() ? 0 : 2 * layout_.behind_weight;
            case residual: return layout_.behind_residual;
            case out: return layout_.behind_out;
            default: return 0;
        }
    }
    [[nodiscard]] std::int64_t stride(int pointer) const {
        return arguments_[static_cast<std::size_t>(pointer)].shape[3] + padding(pointer);
    }
    void add_tensor(int pointer) {
        using namespace quantized_linear;
        const Argument& argument = arguments_[static_cast<std::size_t>(pointer)];
        const bool has_tokens = pointer == x || pointer == x_scales || pointer == residual || pointer == out;
        std::int64_t rows = argument.shape[2] + (has_tokens ? guard_rows : 0);
        if (!argument.present || argument.role == Role::workspace) rows = 0;
        host_.emplace_back(argument.dtype, rows, argument.shape[3], stride(pointer));
    }

    void fill(int pointer, std::int64_t rows) {
        const Argument& argument = arguments_[static_cast<std::size_t>(pointer)];
        std::normal_distribution<double> normal(argument.fill_offset, argument.fill_scale);
        for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t c = 0; c < argument.shape[3]; ++c) host(pointer).set(r, c, normal(random_));
        }
    }
    [[nodiscard]] int draw(int low, int high) {
        return std::uniform_int_distribution<int>(low, high)(random_);
    }
    template <class T>
    [[nodiscard]] std::vector<T> drawn(std::int64_t count, int low, int high) {
        std::vector<T> numbers(static_cast<std::size_t>(count));
        for (T& number : numbers) number = static_cast<T>(draw(low, high));
        return numbers;
    }
    /// Every eighth is 0; with 4 bits half of them are negative.
    [[nodiscard]] double draw_scale(const Argument& scales, std::int64_t number) {
        if (number % 8 == 5) return 0;
        const double size = std::uniform_real_distribution<double>(
            scales.fill_offset - scales.fill_scale, scales.fill_offset + scales.fill_scale)(random_);
        return p_.format == QuantFormat::w4a16 && draw(0, 1) == 1 ? -size : size;
    }
    /// The tensor's bytes, of which there are as many as its family says.
    template <class T>
    void store(int pointer, const std::vector<T>& numbers) {
        REQUIRE(host(pointer).bytes.size() == numbers.size() * sizeof(T));
        std::memcpy(host(pointer).bytes.data(), numbers.data(), host(pointer).bytes.size());
    }
    void fill_code_rows(int pointer, std::int64_t rows) {
        if (p_.format == QuantFormat::fp8) return fill(pointer, rows);
        for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t c = 0; c < p_.in; ++c) host(pointer).set(r, c, draw(-128, 127));
        }
    }

    void fill_x() {
        using namespace quantized_linear;
        if (!p_.quantized_x) {
            fill(x, p_.tokens);
        } else {
            fill_code_rows(x, p_.tokens);
            for (std::int64_t r = 0; r < (layout_.one_x_scale ? 1 : p_.tokens); ++r) {
                for (std::int64_t g = 0; g < p_.groups(); ++g)
                    host(x_scales).set(r, g, draw_scale(arguments_[x_scales], r * p_.groups() + g));
            }
        }
        for (std::int64_t r = 0; layout_.zero_rows && r < p_.tokens; ++r) {
            const std::int64_t zeros = r % 3 == 0 ? p_.in : r % 3 == 1 ? std::int64_t{128} : 0;
            for (std::int64_t c = 0; c < std::min(zeros, p_.in); ++c) host(x).set(r, c, 0);
        }
    }

    /// The weight at this pointer, its scales and zero points at the next ones; returns its values.
    [[nodiscard]] std::vector<double> fill_weight(int codes_at) {
        const PackedShape shape{.format = static_cast<QuantFormat>(p_.format),
                                .out = p_.out,
                                .in = p_.in,
                                .group = p_.group,
                                .zeros = p_.zeros,
                                .one_scale = layout_.one_scale,
                                .scale_dtype = p_.dtype};
        check(shape);
        if (p_.format == QuantFormat::w4a16) return fill_w4(codes_at, shape);
        if (p_.format == QuantFormat::w8a16) return fill_w8(codes_at);
        return fill_rows(codes_at, shape);
    }
    [[nodiscard]] std::vector<double> fill_w4(int codes_at, const PackedShape& shape) {
        const std::int64_t groups = row_groups(shape);
        const auto codes = drawn<std::uint8_t>(p_.out * p_.in, 0, 15);
        const auto zeros = drawn<std::uint8_t>(p_.zeros ? p_.out * groups : 0, 0, 15);
        const MinifloatFormat& format = p_.dtype == Dtype::fp16 ? fp16_format : bf16_format;
        std::vector<double> scales;
        std::vector<std::uint16_t> bits;
        for (std::int64_t i = 0; i < p_.out * groups; ++i) {
            const Argument& argument = arguments_[static_cast<std::size_t>(codes_at) + 1];
            scales.push_back(rounded(draw_scale(argument, i), format));
            bits.push_back(static_cast<std::uint16_t>(encoded(scales.back(), format)));
        }
        std::vector<std::uint8_t> packed(static_cast<std::size_t>(packed_bytes(shape.format, p_.out, p_.in)));
        const bool zeros_in_padding = p_.zeros && p_.group == 0;
        pack_w4(codes, p_.out, p_.in, packed,
                zeros_in_padding ? std::span<const std::uint8_t>(zeros) : std::span<const std::uint8_t>());
        store(codes_at, packed);
        std::vector<std::uint16_t> packed_scales(static_cast<std::size_t>(scale_count(shape)));
        pack_scales(bits, shape, packed_scales);
        store(codes_at + 1, packed_scales);
        if (p_.zeros) {
            std::vector<std::uint8_t> packed_zeros(static_cast<std::size_t>(zero_count(shape)));
            pack_zeros(zeros, shape, packed_zeros);
            store(codes_at + 2, packed_zeros);
        }
        return values([&](std::int64_t row, std::int64_t column) {
            const auto at = static_cast<std::size_t>(row * groups + (p_.group == 0 ? 0 : column / p_.group));
            const int zero = p_.zeros ? zeros[at] : 8;
            return (codes[static_cast<std::size_t>(row * p_.in + column)] - zero) * scales[at];
        });
    }
    [[nodiscard]] std::vector<double> fill_w8(int codes_at) {
        const auto codes = drawn<std::int8_t>(p_.out * p_.in, -128, 127);
        std::vector<std::uint8_t> packed(
            static_cast<std::size_t>(packed_bytes(QuantFormat::w8a16, p_.out, p_.in)));
        pack_w8(codes, p_.out, p_.in, packed);
        store(codes_at, packed);
        for (std::int64_t r = 0; r < p_.out; ++r) set_scale(codes_at + 1, 0, r, r);
        return values([&](std::int64_t row, std::int64_t column) {
            return codes[static_cast<std::size_t>(row * p_.in + column)] * host(codes_at + 1).at(0, row);
        });
    }
    /// w8a8 and fp8.
    [[nodiscard]] std::vector<double> fill_rows(int codes_at, const PackedShape& shape) {
        fill_code_rows(codes_at, p_.out);
        const std::int64_t across = p_.group == 0 ? (layout_.one_scale ? 1 : p_.out) : p_.groups();
        for (std::int64_t i = 0; i < scale_count(shape); ++i)
            set_scale(codes_at + 1, i / across, i % across, i);
        return values([&](std::int64_t row, std::int64_t column) {
            const double code = host(codes_at).at(row, column);
            if (p_.group != 0) return code * host(codes_at + 1).at(row / p_.group, column / p_.group);
            return code * host(codes_at + 1).at(0, layout_.one_scale ? 0 : row);
        });
    }
    void set_scale(int scales, std::int64_t row, std::int64_t column, std::int64_t number) {
        host(scales).set(row, column, draw_scale(arguments_[static_cast<std::size_t>(scales)], number));
    }
    template <class ValueOf>
    [[nodiscard]] std::vector<double> values(ValueOf value_of) const {
        std::vector<double> result;
        for (std::int64_t r = 0; r < p_.out; ++r) {
            for (std::int64_t c = 0; c < p_.in; ++c) result.push_back(value_of(r, c));
        }
        return result;
    }

    /// x as it is multiplied, [tokens, in].
    [[nodiscard]] std::vector<double> multiplied_x() const {
        using namespace quantized_linear;
        std::vector<double> result;
        for (std::int64_t r = 0; r < p_.tokens; ++r) {
            std::vector<double> row;
            for (std::int64_t c = 0; c < p_.in; ++c) row.push_back(host(x).at(r, c));
            const double norm = p_.norm ? normalize(row) : 1.0;
            for (std::int64_t c = 0; p_.quantized_x && c < p_.in; ++c)
                row[static_cast<std::size_t>(c)] *=
                    host(x_scales).at(layout_.one_x_scale ? 0 : r, p_.group == 0 ? 0 : c / p_.group);
            const std::size_t together = p_.group == 0 ? row.size() : static_cast<std::size_t>(p_.group);
            for (std::size_t c = 0; p_.quantizes_x() && c < row.size(); c += together)
                make_codes(std::span(row).subspan(c, together), static_cast<float>(norm));
            for (const double value : row) result.push_back(p_.quantizes_x() ? value : value * norm);
        }
        return result;
    }
    /// Multiplies with the norm's weight; returns the factor that remains.
    [[nodiscard]] double normalize(std::vector<double>& row) const {
        double squares = 0;
        for (const double value : row) squares += value * value;
        for (std::size_t c = 0; c < row.size(); ++c)
            row[c] *= host(quantized_linear::norm_weight).at(0, static_cast<std::int64_t>(c));
        return 1 / std::sqrt(squares / static_cast<double>(p_.in) + double{epsilon});
    }
    /// In float32 and in the order of quantize.cuh: a number between two codes becomes the same one here and
    /// there.
    void make_codes(std::span<double> numbers, float norm) const {
        const bool fp8 = p_.format == QuantFormat::fp8;
        float largest = 0;
        for (const double number : numbers) largest = std::max(largest, static_cast<float>(std::abs(number)));
        const float scale = std::max(norm * largest, 0x1p-100F) * (1.0F / (fp8 ? 448.0F : 127.0F));
        const float factor = norm / scale;
        for (double& number : numbers) {
            const double in_codes = static_cast<float>(number) * factor;
            number = (fp8 ? rounded(in_codes, fp8_format) : std::nearbyint(in_codes)) * double{scale};
        }
    }

    [[nodiscard]] double product(const std::vector<double>& x, std::int64_t token,
                                 const std::vector<double>& weight, std::int64_t row) const {
        return dot(x.data() + token * p_.in, weight.data() + row * p_.in, p_.in);
    }
    void expect() {
        const std::vector<double> x = multiplied_x();
        for (std::int64_t r = 0; r < p_.tokens; ++r) {
            for (std::int64_t c = 0; c < p_.out; ++c) {
                double value = product(x, r, weight_, c);
                if (p_.bias) value += host(quantized_linear::bias).at(0, c);
                value = activate(p_.activation, value);
                if (p_.gated) value *= product(x, r, up_, c);
                if (p_.residual) value += host(quantized_linear::residual).at(r, c);
                out_.push_back(value);
            }
        }
    }

    Problem problem_;
    QuantizedProblem p_;
    QuantizedLayout layout_;
    std::vector<Argument> arguments_;
    std::mt19937_64 random_;
    std::vector<HostTensor> host_;
    std::vector<double> weight_;
    std::vector<double> up_;
    std::vector<double> out_;
};

}  // namespace hone::test
