// Embedding. Describe the operator, let Runtime::prepare() make a kernel object of it, call run() as often as
// you like: it is safe from many threads at once and under stream capture, takes no lock, allocates nothing
// and makes no system call of its own. The calling thread needs the device's primary context current, as
// after any call of the CUDA runtime; a thread without a context gets it at its first run(). Generated from
// kernel_templates/embedding/operators.py by `./hone generate`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "hone/error.h"
#include "hone/prepared_kernel.h"
#include "kernel_templates/dtype.h"
#include "kernel_templates/enums.h"

namespace hone {

/// out = table[ids] * scale + position_table[position_ids], the last two where the operator has them,
/// computed in fp32 and rounded once. A token whose id or position has no row gets zeros.
struct Embedding {
    std::int64_t hidden = 0;         ///< elements of a row, 1 to 262144
    std::int64_t max_tokens = 8192;  ///< most tokens of one call
    Dtype dtype = Dtype::bf16;       ///< element type of the tables and out; fp32, fp16 or bf16
    IndexType index = IndexType::int32;
    bool scale = false;
    bool positions = false;
};

/// One call. Rows are contiguous; a stride is the distance between two rows in elements, 0 meaning `hidden`.
/// 16 bytes always suffice as alignment of tables, out and strides.
struct EmbeddingArgs {
    const void* ids = nullptr;    ///< [tokens]; their type is index
    const void* table = nullptr;  ///< [vocabulary, hidden], dtype
    /// [tokens]; their type is index; needed when the operator has positions
    const void* position_ids = nullptr;
    /// [position_rows, hidden], dtype; needed when the operator has positions
    const void* position_table = nullptr;
    void* out = nullptr;             ///< [tokens, hidden], dtype
    std::int64_t vocabulary = 0;     ///< rows of the table
    std::int64_t position_rows = 0;  ///< rows of the table of positions
    std::int64_t table_stride = 0;
    std::int64_t position_table_stride = 0;
    std::int64_t out_stride = 0;
    float scale = 1.0F;  ///< where the operator has one
};

/// A prepared Embedding.
class EmbeddingKernel : public PreparedKernel {
  public:
    EmbeddingKernel() = default;

    /// Enqueues the operator for `tokens` (0: does nothing). Checks fail before anything is enqueued.
    [[nodiscard]] Status run(CUstream_st* stream, const EmbeddingArgs& args,
                             std::int64_t tokens) const noexcept;
    /// Why run() refuses such a call: the argument's name, its value and what is allowed. Empty: it does not.
    [[nodiscard]] std::string refusal(const EmbeddingArgs& args, std::int64_t tokens) const;

    /// For Runtime::prepare().
    EmbeddingKernel(std::shared_ptr<const runtime::Prepared> prepared, const Embedding& description,
                    bool checks_indices)
        : PreparedKernel(std::move(prepared)), description_(description), checks_indices_(checks_indices) {}

  private:
    Embedding description_;
    bool checks_indices_ = false;  ///< RuntimeOptions::check_indices
};

}  // namespace hone
