// How embedding/plain.cu is launched.
#pragma once

#include "kernel_templates/embedding/embedding.h"
#include "kernel_templates/kit/launches.h"

namespace hone::embedding {

struct PlainConfig {
    std::int64_t threads = 256;
    std::int64_t programmatic = 0;
};

inline constexpr Kernel plain_kernels[] = {{"embedding_plain", call_args}};

[[nodiscard]] Plan plain_plan(const EmbeddingProblem&, const PlainConfig&, const DeviceTraits&);
[[nodiscard]] constexpr std::int64_t plain_access_elements(const EmbeddingProblem&, const PlainConfig&) {
    return 1;
}

}  // namespace hone::embedding
