// The main of a fuzz target without libFuzzer: every file of its corpus and seeded mutations of them go
// through the same function. One ctest entry a target.
//   replay CORPUS_FOLDER [DICTIONARY]    the test
//   replay --write-seeds CORPUS_FOLDER   writes the corpus anew: seeds()
//   replay FILE...                       these inputs alone, such as crashes that libFuzzer kept
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutator.h"

/// Defined where a sanitizer is linked in: called before it ends the process.
extern "C" [[gnu::weak]] void __sanitizer_set_death_callback(void (*callback)());

namespace {

namespace fs = std::filesystem;
using hone::fuzz::require;

/// Longest time of one input. Generous, because test machines are busy; what is quadratic takes longer still.
constexpr double limit_s = 20;
constexpr std::uint64_t mutator_seed = 20240611;

std::string current;  ///< the input at work

/// Keeps the input that ends the process, as libFuzzer does.
void keep_input() {
    const std::string file = "crash-" + std::to_string(::getpid());
    std::ofstream(file, std::ios::binary) << current;
    std::fprintf(stderr, "the input is kept as %s\n", file.c_str());
}

void keep_input_of_abort(int) {
    std::signal(SIGABRT, SIG_DFL);
    keep_input();
    std::abort();
}

std::string bytes_of(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

void run(std::string input, const std::string& name) {
    current = std::move(input);
    const auto start = std::chrono::steady_clock::now();
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(current.data()), current.size());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    require(took.count() < limit_s, name + " took longer than an input may");
}

/// The quoted words of a dictionary of libFuzzer, with \xNN, \\ and \" as there.
std::vector<std::string> words_of(const fs::path& dictionary) {
    std::vector<std::string> words;
    std::ifstream stream(dictionary);
    for (std::string line; std::getline(stream, line);) {
        const std::size_t open = line.find('"');
        const std::size_t close = line.rfind('"');
        if (line.starts_with('#') || open == std::string::npos || close == open) continue;
        std::string word;
        for (std::size_t i = open + 1; i < close; ++i) {
            if (line[i] != '\\') {
                word += line[i];
            } else if (line[++i] == 'x') {
                word += static_cast<char>(std::stoi(line.substr(i + 1, 2), nullptr, 16));
                i += 2;
            } else {
                word += line[i];
            }
        }
        words.push_back(word);
    }
    return words;
}

void write_seeds(const fs::path& folder) {
    fs::create_directories(folder);
    for (const hone::fuzz::Seed& seed : hone::fuzz::seeds())
        hone::fuzz::write_file(folder / seed.name, seed.bytes);
}

/// Every file of the corpus, sorted by name. Those that seeds() makes must be read: else what is mutated
/// below does not come behind the reader's first check.
std::vector<std::string> run_corpus(const fs::path& folder) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
    std::ranges::sort(files);
    require(!files.empty(), folder.string() + " is empty: write it with --write-seeds");
    std::vector<std::string> corpus;
    for (const fs::path& file : files) {
        const std::size_t before = hone::fuzz::inputs_read();
        corpus.push_back(bytes_of(file));
        run(corpus.back(), file.string());
        const bool found = file.filename().string().starts_with("found-");
        require(found || hone::fuzz::inputs_read() > before,
                file.string() + " is refused: mend the reader, or write the corpus anew with --write-seeds");
    }
    return corpus;
}

void run_mutations(const std::vector<std::string>& corpus, const std::vector<std::string>& words) {
    hone::fuzz::Mutator mutator(mutator_seed, corpus, words);
    const std::size_t before = hone::fuzz::inputs_read();
    for (int i = 0; i < hone::fuzz::mutations; ++i) run(mutator.next(), "mutation " + std::to_string(i));
    const std::size_t read = hone::fuzz::inputs_read() - before;
    const auto all = static_cast<std::size_t>(hone::fuzz::mutations);
    std::printf("%zu files, %zu mutations, %zu of them read\n", corpus.size(), all, read);
    require(read > all / 100, "hardly a mutation is read");
    require(all - read > all / 100, "hardly a mutation is refused");
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGABRT, keep_input_of_abort);
    if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(keep_input);
    if (argc < 2) return 2;
    const std::string first = argv[1];
    if (first == "--write-seeds" && argc == 3) {
        write_seeds(argv[2]);
    } else if (fs::is_directory(first)) {
        run_mutations(run_corpus(first), argc > 2 ? words_of(argv[2]) : std::vector<std::string>());
    } else {
        for (int i = 1; i < argc; ++i) run(bytes_of(argv[i]), argv[i]);
    }
    return 0;
}
