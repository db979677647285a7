#include <algorithm>
#include <array>
#include <cstring>

#include "kernel_templates/quantize_weights/scale_rule.cuh"
#include "runtime/quantize/blocks.h"
#include "runtime/quantize/loss.h"
#include "runtime/system/parallel.h"
#include "runtime/quantize/quantize_parts.h"
#include "runtime/quantize/small_floats.h"

namespace hone::runtime {
namespace {

namespace places = quantized_linear;

constexpr float largest_int8 = 127.0F;

/// Reads the weight twice: once for the largest magnitudes, then for the codes.
class Quantizer8 {
  public:
    explicit Quantizer8(const QuantizeJob& job)
        : job_(job),
          in_(job.shape.in),
          width_(job.shape.group == 0 ? in_ : job.shape.group),
          groups_(in_ / width_),
          is_fp8_(job.shape.format == QuantFormat::fp8),
          is_packed_(job.shape.format == QuantFormat::w8a16) {
        const bool has_blocks = job.shape.group != 0;
        rows_of_scale_ = job.shape.one_scale ? job.shape.out : has_blocks ? places::scaled_block : 1;
    }

    QuantLoss run() {
        find_scales();
        const std::int64_t pieces = places::whole_blocks(job_.shape.out);
        std::vector<LossSums> losses(static_cast<std::size_t>(pieces));
        for_each_piece(pieces, job_.options.threads, [&](std::int64_t piece) {
            losses[static_cast<std::size_t>(piece)] = quantize_piece(piece);
        });
        return loss_of(losses);
    }

  private:
    /// Largest magnitudes of each row's groups, then of the rows that share a scale, then the scales.
    void find_scales() {
        std::vector<float> largest(static_cast<std::size_t>(job_.shape.out * groups_));
        for_each_piece(places::whole_blocks(job_.shape.out), job_.options.threads, [&](std::int64_t piece) {
            const RowRange rows = rows_of_piece(piece, job_.shape.out);
            std::vector<float> values(static_cast<std::size_t>(in_));
            for (std::int64_t row = rows.first; row < rows.first + rows.count; ++row) {
                job_.weights.read(row, values.data());
                for (std::int64_t group = 0; group < groups_; ++group)
                    largest[static_cast<std::size_t>(row * groups_ + group)] =
                        largest_magnitude(values.data() + group * width_, width_);
            }
        });
        scales_.assign(static_cast<std::size_t>(scale_count(job_.shape)), 0.0F);
        for (std::int64_t row = 0; row < job_.shape.out; ++row) {
            for (std::int64_t group = 0; group < groups_; ++group) {
                float& scale = scale_of(row, group);
                scale = std::max(scale, largest[static_cast<std::size_t>(row * groups_ + group)]);
            }
        }
        for (float& scale : scales_)
            scale = scale < quantize_weights::smallest_magnitude
                        ? 0
                        : scale / (is_fp8_ ? largest_e4m3 : largest_int8);
        std::memcpy(job_.stored.scales.data(), scales_.data(), job_.stored.scales.size());
    }

    [[nodiscard]] float& scale_of(std::int64_t row, std::int64_t group) {
        return scales_[static_cast<std::size_t>(row / rows_of_scale_ * groups_ + group)];
    }

    LossSums quantize_piece(std::int64_t piece) {
        const RowRange rows = rows_of_piece(piece, job_.shape.out);
        std::vector<float> values(static_cast<std::size_t>(in_));
        std::vector<std::uint8_t> room(static_cast<std::size_t>(is_packed_ ? rows.count * in_ : 0));
        std::uint8_t* const codes = is_packed_ ? room.data() : job_.stored.codes.data() + rows.first * in_;
        LossSums loss;
        for (std::int64_t row = 0; row < rows.count; ++row) {
            job_.weights.read(rows.first + row, values.data());
            for (std::int64_t group = 0; group < groups_; ++group)
                encode(values.data() + group * width_, scale_of(rows.first + row, group),
                       codes + row * in_ + group * width_, loss);
        }
        if (is_packed_) {
            const std::array<std::uint8_t, places::block_rows> padding{};
            pack_rows(codes, rows.count, in_, 8, padding.data(),
                      job_.stored.codes.data() + piece * places::packed_bytes(1, in_, 8));
        }
        return loss;
    }

    /// Encodes columns that share a scale.
    void encode(const float* values, float scale, std::uint8_t* codes, LossSums& loss) const {
        if (scale == 0) {
            std::fill_n(codes, width_, std::uint8_t{0});
            loss.add(values, width_, 0, [](std::int64_t) { return 0; });
        } else if (is_fp8_) {
            for (std::int64_t i = 0; i < width_; ++i) codes[i] = encode_e4m3_number(values[i] / scale);
            loss.add(values, width_, scale, [&](std::int64_t i) { return E4m3::decode(codes[i]); });
        } else {
            for (std::int64_t i = 0; i < width_; ++i)
                codes[i] = static_cast<std::uint8_t>(static_cast<int>(
                    quantize_weights::nearest(values[i] / scale, -largest_int8, largest_int8)));
            loss.add(values, width_, scale,
                     [&](std::int64_t i) { return static_cast<std::int8_t>(codes[i]); });
        }
    }

    const QuantizeJob& job_;
    std::int64_t in_;
    std::int64_t width_;   ///< columns that share a scale
    std::int64_t groups_;  ///< groups in a row
    bool is_fp8_;
    bool is_packed_;
    std::int64_t rows_of_scale_ = 1;
    std::vector<float> scales_;
};

}  // namespace

QuantLoss quantize_8_bits(const QuantizeJob& job) { return Quantizer8(job).run(); }

}  // namespace hone::runtime
