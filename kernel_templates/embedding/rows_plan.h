// How embedding/rows.cu is launched.
#pragma once

#include "kernel_templates/embedding/embedding.h"
#include "kernel_templates/kit/launches.h"

namespace hone::embedding {

struct RowsConfig {
    std::int64_t threads = 256;
    std::int64_t lanes = 32;
    std::int64_t vector = 1;
    std::int64_t programmatic = 0;
};

inline constexpr Kernel rows_kernels[] = {{"embedding_rows", call_args}};

[[nodiscard]] Plan rows_plan(const EmbeddingProblem&, const RowsConfig&, const DeviceTraits&);
[[nodiscard]] constexpr std::int64_t rows_access_elements(const EmbeddingProblem&, const RowsConfig& c) {
    return c.vector;
}

}  // namespace hone::embedding
