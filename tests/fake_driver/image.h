// What the fake NVRTC makes of a source and the fake driver loads: a text with the kernels' names, the
// constants they were compiled with, and the resources that the compiler reported.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/fake_driver/script.h"

namespace hone::fake {

struct ImageKernel {
    std::string name;
    int registers = 0;
    int shared_bytes = 0;
    int spill_bytes = 0;
    /// Size of each parameter, as far as its type is plain to see: "8,8,4". Never more than the kernel has.
    std::string parameter_bytes = "-";

    friend bool operator==(const ImageKernel&, const ImageKernel&) = default;
};

struct FakeImage {
    std::string source;     ///< "rmsnorm/group_rows.cu"
    std::string arch;       ///< "sm_90a"
    std::string constants;  ///< "dtype=2 hidden=4096 threads=128"
    std::vector<ImageKernel> kernels;

    friend bool operator==(const FakeImage&, const FakeImage&) = default;
};

[[nodiscard]] std::string render(const FakeImage& image);
/// Nothing when the text is not one of render()'s.
[[nodiscard]] std::optional<FakeImage> parse_image(const std::string& text);

/// What rules for this kernel (empty: the whole image) are held against.
[[nodiscard]] Subject subject_of(const FakeImage& image, const std::string& kernel);

/// FNV-1a: the same on every machine and in every process.
[[nodiscard]] unsigned long long stable_hash(const std::string& text);

}  // namespace hone::fake
