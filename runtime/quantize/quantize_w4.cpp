#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/quantize/blocks.h"
#include "runtime/quantize/check.h"
#include "runtime/quantize/loss.h"
#include "runtime/system/parallel.h"
#include "runtime/quantize/quantize_parts.h"
#include "runtime/quantize/scale_search.h"

namespace hone::runtime {
namespace {

namespace places = quantized_linear;

constexpr std::uint8_t no_zero = 8;  ///< zero point of what has none, and of padding

/// One row of blocks: 64 rows of the weight, their groups one after the other, then the blocks.
class BlockRowW4 {
  public:
    BlockRowW4(const QuantizeJob& job, std::int64_t piece)
        : job_(job),
          in_(job.shape.in),
          width_(job.shape.group == 0 ? in_ : job.shape.group),
          groups_(places::groups_of(in_, job.shape.group)),
          piece_(piece),
          values_(static_cast<std::size_t>(in_)),
          room_(static_cast<std::size_t>(width_ + room_beyond)) {
        padding_.fill(no_zero);
    }

    LossSums run() {
        const RowRange rows = rows_of_piece(piece_, job_.shape.out);
        std::vector<std::uint8_t> codes(static_cast<std::size_t>(rows.count * in_));
        clear_scales();
        for (std::int64_t row = 0; row < rows.count; ++row) {
            job_.weights.read(rows.first + row, values_.data());
            for (std::int64_t group = 0; group * width_ < in_; ++group)
                quantize_group(rows.first + row, group, codes.data() + row * in_ + group * width_);
        }
        pack_rows(codes.data(), rows.count, in_, 4, padding_.data(),
                  job_.stored.codes.data() + piece_ * places::packed_bytes(1, in_, 4));
        return loss_;
    }

  private:
    /// Padding: scale 0, zero point 8.
    void clear_scales() const {
        const std::int64_t count = groups_ * places::block_rows;
        std::memset(job_.stored.scales.data() + piece_ * count * 2, 0, static_cast<std::size_t>(count * 2));
        if (job_.shape.zeros) std::fill_n(job_.stored.zeros.data() + piece_ * count, count, no_zero);
    }

    void quantize_group(std::int64_t row, std::int64_t group, std::uint8_t* codes) {
        const float* const values = values_.data() + group * width_;
        const GroupRule rule{job_.shape.zeros, job_.options.search, job_.shape.scale_dtype};
        const GroupScale found = choose_scale(values, width_, rule, room_.data());
        if (found.too_large)
            refuse_scale(job_.weights.first_row() + row, group, largest_magnitude(values, width_));
        encode_w4(values, width_, found, codes);
        store(row, group, found);
        loss_.add(values, width_, found.scale, [&](std::int64_t i) { return codes[i] - found.zero; });
    }

    void store(std::int64_t row, std::int64_t group, const GroupScale& found) {
        const std::int64_t place = places::scale_place(row, group, groups_);
        std::memcpy(job_.stored.scales.data() + place * 2, &found.bits, 2);
        if (!job_.shape.zeros) return;
        job_.stored.zeros[static_cast<std::size_t>(place)] = static_cast<std::uint8_t>(found.zero);
        // Only without groups a group has columns that do not exist.
        if (job_.shape.group == 0)
            padding_[static_cast<std::size_t>(row % places::block_rows)] =
                static_cast<std::uint8_t>(found.zero);
    }

    [[noreturn]] static void refuse_scale(std::int64_t row, std::int64_t group, float largest) {
        refuse(
            "quantize",
            fmt::format("weights of row {}, group {} reach {}, and their scale is beyond the 65504 of fp16; "
                        "allowed with scale_dtype fp16: weights up to about 450000",
                        row, group, largest),
            "use scale_dtype bf16");
    }

    const QuantizeJob& job_;
    std::int64_t in_;
    std::int64_t width_;   ///< columns that share a scale
    std::int64_t groups_;  ///< groups in a row as stored
    std::int64_t piece_;
    std::vector<float> values_;
    std::vector<float> room_;
    std::array<std::uint8_t, places::block_rows> padding_{};
    LossSums loss_;
};

}  // namespace

QuantLoss quantize_w4(const QuantizeJob& job) {
    const std::int64_t pieces = places::whole_blocks(job.shape.out);
    std::vector<LossSums> losses(static_cast<std::size_t>(pieces));
    for_each_piece(pieces, job.options.threads, [&](std::int64_t piece) {
        losses[static_cast<std::size_t>(piece)] = BlockRowW4(job, piece).run();
    });
    return loss_of(losses);
}

}  // namespace hone::runtime
