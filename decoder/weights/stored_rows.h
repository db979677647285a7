// Where the rows of a wanted tensor stand in the one that a checkpoint has.
#pragma once

#include <algorithm>
#include <cstdint>

#include "decoder/weights/weight_source.h"

namespace hone::decoder {

class StoredRows {
  public:
    explicit StoredRows(const WantedTensor& wanted)
        : wanted_(wanted), rows_(wanted.rows / std::max<std::int64_t>(wanted.stacked, 1)) {}

    /// Row of all its matrices, one after the other.
    [[nodiscard]] std::int64_t row(std::int64_t wanted) const {
        if (!wanted_.in_turns) return wanted;
        const std::int64_t half = rows_ / 2;
        const std::int64_t within = wanted % rows_;
        return wanted - within + (within < half ? 2 * within : 2 * (within - half) + 1);
    }
    /// Of a transposed matrix: of a wanted element, the number of the stored one.
    [[nodiscard]] std::int64_t transposed(std::int64_t element) const {
        const std::int64_t at = row(element / wanted_.columns);
        return at / rows_ * rows_ * wanted_.columns + element % wanted_.columns * rows_ + at % rows_;
    }

    /// Neighbouring stored rows.
    struct Span {
        std::int64_t first = 0;
        std::int64_t count = 0;
    };
    /// Those that have all of these elements; of transposed ones whole matrices.
    [[nodiscard]] Span rows_of(std::int64_t first, std::int64_t count) const {
        const std::int64_t begin = first / wanted_.columns;
        const std::int64_t last = (first + count - 1) / wanted_.columns;
        if (wanted_.transposed) return {begin / rows_ * rows_, (last / rows_ - begin / rows_ + 1) * rows_};
        std::int64_t least = row(begin);
        std::int64_t most = least;
        for (std::int64_t at = begin; at <= last; ++at) {
            least = std::min(least, row(at));
            most = std::max(most, row(at));
        }
        return {least, most - least + 1};
    }

    /// Elements of one row that are wanted side by side.
    struct Run {
        std::int64_t row;     ///< the stored one
        std::int64_t column;  ///< the first
        std::int64_t count;
        std::int64_t to;  ///< number of the first among those that are wanted
    };
    /// Of what is not transposed, in their order.
    template <class Use>
    void for_each_run(std::int64_t first, std::int64_t count, const Use& use) const {
        for (std::int64_t done = 0; done < count;) {
            const std::int64_t column = (first + done) % wanted_.columns;
            const std::int64_t some = std::min(wanted_.columns - column, count - done);
            use(Run{row((first + done) / wanted_.columns), column, some, done});
            done += some;
        }
    }

  private:
    const WantedTensor& wanted_;
    std::int64_t rows_;  ///< of a matrix
};

}  // namespace hone::decoder
