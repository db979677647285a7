// How fast a tokenizer is: what loading takes, and megabytes of text a second on one core, to tokens and
// back.
//
//   build/release/bench/tokenizer FOLDER TEXT_FILE
//
// FOLDER is a model's (tokenizer.json, ...). The text goes in lines at once, as prompts would, and whole;
// each is the best of five runs.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/tokenizer/tokenizer.h"
#include "runtime/system/text_file.h"

namespace {

using Clock = std::chrono::steady_clock;
using hone::decoder::Tokenizer;

constexpr std::size_t max_text_bytes = std::size_t{256} << 20;
constexpr int runs = 5;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Best of some runs, in megabytes a second.
template <class Work>
double speed_mb_s(std::size_t bytes, const Work& work) {
    double best_s = 1e30;
    for (int i = 0; i < runs; ++i) {
        const auto start = Clock::now();
        work();
        best_s = std::min(best_s, seconds_since(start));
    }
    return static_cast<double>(bytes) / 1e6 / best_s;
}

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
        lines.push_back(text.substr(0, end));
        text.remove_prefix(end);
    }
    return lines;
}

void measure(const char* folder, const char* file) {
    const std::string text = hone::runtime::read_text_file(file, max_text_bytes);
    const auto start = Clock::now();
    const Tokenizer tokenizer = Tokenizer::load(folder);
    std::printf("loading          %8.3f s (%d ids)\n", seconds_since(start), tokenizer.end_id());

    std::vector<int> ids;
    const auto first = Clock::now();
    ids = tokenizer.encode(text);
    const double first_s = seconds_since(first);
    std::printf("first encoding   %8.1f MB/s (%zu tokens of %zu bytes)\n",
                static_cast<double>(text.size()) / 1e6 / first_s, ids.size(), text.size());
    std::printf("encoding, whole  %8.1f MB/s\n",
                speed_mb_s(text.size(), [&] { ids = tokenizer.encode(text); }));
    const std::vector<std::string_view> lines = lines_of(text);
    std::size_t tokens = 0;
    const double by_line = speed_mb_s(text.size(), [&] {
        for (const std::string_view line : lines) tokens += tokenizer.encode(line).size();
    });
    std::printf("encoding, lines  %8.1f MB/s (%zu lines, %zu tokens)\n", by_line, lines.size(),
                tokens / runs);
    std::string decoded;
    std::printf("decoding         %8.1f MB/s\n",
                speed_mb_s(text.size(), [&] { decoded = tokenizer.decode(ids); }));
    std::printf("round trip       %s\n", decoded == text ? "the same text" : "another text");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s FOLDER TEXT_FILE\n", argv[0]);
        return 2;
    }
    try {
        measure(argv[1], argv[2]);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
