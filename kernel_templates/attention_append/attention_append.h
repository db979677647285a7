// Attention of the newest token on the host: the problem as plain numbers, and what attention_decode, whose
// kernel it shares, calls the same.
#pragma once

#include "kernel_templates/attention_append/declaration.h"
#include "kernel_templates/attention_decode/attention_decode.h"
#include "kernel_templates/attention_decode/ring/plan.h"

namespace hone::attention_append {

struct AppendProblem : Fields {
    AppendProblem() = default;
    explicit AppendProblem(const Problem& problem) : Fields(fields_of(problem)) {}

    [[nodiscard]] bool paged() const { return page_size > 0; }
    [[nodiscard]] std::int64_t pages() const { return paged() ? ceil_div(kv_len, page_size) : 1; }
    [[nodiscard]] std::int64_t cache_rows() const { return batch * pages(); }
    [[nodiscard]] std::int64_t cache_row_tokens() const { return paged() ? page_size : kv_len; }
    /// Angles of a token; a table without any has one column that nobody reads.
    [[nodiscard]] std::int64_t angles() const { return rotary_dim == 0 ? 1 : rotary_dim / 2; }
};

/// The problem of attention_decode that is left when keys, values and rotated queries are where they belong.
[[nodiscard]] attention_decode::DecodeProblem left_of(const AppendProblem&);
/// The same in the words of its family.
[[nodiscard]] Problem decode_problem(const Problem& append);

/// A config of large clusters with no more stages than leave room for the blocks of the kernels in front and
/// behind: these begin while it runs, and it while they do. Many sequences have small clusters, and a
/// projection whose own blocks fill the multiprocessors.
[[nodiscard]] attention_decode::RingConfig beside_others(const AppendProblem&, attention_decode::RingConfig);

extern const Variant ring;
extern const Variant plain;

}  // namespace hone::attention_append
