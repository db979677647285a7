// The file of a capture: which problems processes ran, and how often, as JSON that many of them add to.
// docs/json-output.md has its members.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hone::runtime {

inline constexpr std::string_view capture_schema = "hone.capture/1";

struct CapturedProblem {
    std::string gpu;      ///< "NVIDIA H200"
    std::string problem;  ///< as to_string() says it, at the upper edges of its buckets
    std::uint64_t calls = 0;
};

/// In the order of GPUs and problems. Texts of problems are taken as they come: a build may not know the
/// families of another. An empty file is a capture of nothing. Throws InputError naming file and entry for
/// what is no capture.
[[nodiscard]] std::vector<CapturedProblem> read_capture(const std::filesystem::path& file);

/// Adds to the calls in the file, which is made where there is none; processes that add to one file wait for
/// each other, none longer than `patience` (each adds in milliseconds, or as slowly as the disk syncs). Throws
/// InputError for a file that is no capture, which stays as it is, and WriteError.
void add_to_capture(const std::filesystem::path& file, std::span<const CapturedProblem> more,
                    std::chrono::milliseconds patience = std::chrono::seconds(10));

}  // namespace hone::runtime
