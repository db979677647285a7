// What the fuzz targets share. A target is one file in targets/: it defines LLVMFuzzerTestOneInput(), seeds()
// and mutations, and is linked with libFuzzer (preset `fuzz`) and with replay.cpp (the test suite of every
// other preset). CONTRIBUTING.md says how to run them and how to add one. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace hone::fuzz {

struct Seed {
    std::string name;  ///< of its file in corpus/<target>
    std::string bytes;
};

/// Inputs that the target accepts, made by Hone's own writers where there are any. Defined by each target.
[[nodiscard]] std::vector<Seed> seeds();
/// Mutated inputs in one run of the test suite: what takes a few seconds under the sanitizers. Defined by
/// each target.
extern const int mutations;

/// Prints the sentence and aborts unless `holds`: libFuzzer and the replay then keep the input.
void require(bool holds, std::string_view sentence);

/// A target calls it for an input that its readers took; the replay fails when too few are.
void count_read();
[[nodiscard]] std::size_t inputs_read();

[[nodiscard]] inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

/// The first line without its end, and what is behind it.
struct FirstLine {
    std::string_view line;
    std::string_view rest;
};
[[nodiscard]] FirstLine first_line(std::string_view text);

/// A folder of this process, in memory where that is possible, which is gone at exit.
[[nodiscard]] const std::filesystem::path& scratch_folder();
void write_file(const std::filesystem::path& file, std::string_view bytes);

}  // namespace hone::fuzz
