#include "kernel_templates/dtype.h"

#include <array>

namespace hone {
namespace {

struct DtypeFacts {
    std::string_view name;
    int size_bytes;
};

constexpr std::array<DtypeFacts, 8> facts{{{"fp32", 4},
                                            {"fp16", 2},
                                            {"bf16", 2},
                                            {"int8", 1},
                                            {"fp8_e4m3", 1},
                                            {"int32", 4},
                                            {"int64", 8},
                                            {"untyped", 1}}};

}  // namespace

std::string_view name(Dtype dtype) { return facts[static_cast<std::size_t>(dtype)].name; }

std::optional<Dtype> dtype_from_name(std::string_view text) {
    for (std::size_t i = 0; i < facts.size(); ++i) {
        if (facts[i].name == text) return static_cast<Dtype>(i);
    }
    return std::nullopt;
}

int size_bytes(Dtype dtype) { return facts[static_cast<std::size_t>(dtype)].size_bytes; }

}  // namespace hone
