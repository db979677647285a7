// Changes inputs in ways that are drawn: the stand-in for libFuzzer in the test suite, which has neither
// clang nor hours. The same seed gives the same inputs on every machine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace hone::fuzz {

class Mutator {
  public:
    /// `corpus`: what splices are taken from. `words`: of the dictionary.
    Mutator(std::uint64_t seed, std::vector<std::string> corpus, std::vector<std::string> words)
        : random_(seed), corpus_(std::move(corpus)), words_(std::move(words)) {}

    /// One to four changes of an input of the corpus.
    [[nodiscard]] std::string next() {
        std::string input = corpus_[below(corpus_.size())];
        for (std::size_t i = below(4) + 1; i > 0; --i) change(input);
        return input;
    }

  private:
    static constexpr std::size_t longest_bytes = std::size_t{1} << 16;

    /// Not std::uniform_int_distribution, whose numbers differ between standard libraries.
    [[nodiscard]] std::size_t below(std::size_t end) { return end == 0 ? 0 : random_() % end; }

    void change(std::string& input) {
        switch (below(8)) {
            case 0: flip_bit(input); break;
            case 1: input.resize(below(input.size() + 1)); break;
            case 2: input.erase(below(input.size() + 1), below(40) + 1); break;
            case 3: repeat(input); break;
            case 4: splice(input); break;
            case 5: insert_word(input); break;
            default: change_number(input); break;
        }
        if (input.size() > longest_bytes) input.resize(longest_bytes);
    }

    void flip_bit(std::string& input) {
        if (input.empty()) return;
        char& byte = input[below(input.size())];
        byte = static_cast<char>(byte ^ static_cast<char>(1U << below(8)));
    }

    void repeat(std::string& input) {
        const std::string piece = input.substr(below(input.size() + 1), below(60) + 1);
        input.insert(below(input.size() + 1), piece);
    }

    /// The head of this input and the tail of another.
    void splice(std::string& input) {
        const std::string& other = corpus_[below(corpus_.size())];
        input = input.substr(0, below(input.size() + 1)) + other.substr(below(other.size() + 1));
    }

    void insert_word(std::string& input) {
        if (words_.empty()) return;
        const std::string& word = words_[below(words_.size())];
        const std::size_t at = below(input.size() + 1);
        input.replace(at, below(2) * std::min(word.size(), input.size() - at), word);
    }

    /// Another number in place of one that stands in the input.
    void change_number(std::string& input) {
        static const std::vector<std::string> numbers{"0",
                                                      "1",
                                                      "-1",
                                                      "2",
                                                      "7",
                                                      "127",
                                                      "256",
                                                      "65536",
                                                      "2147483647",
                                                      "2147483648",
                                                      "-2147483649",
                                                      "4294967296",
                                                      "9223372036854775807",
                                                      "18446744073709551615",
                                                      "-9223372036854775808",
                                                      "1e9",
                                                      "1e308",
                                                      "1e-308",
                                                      "0.5",
                                                      "-0.0"};
        const std::size_t from = below(input.size() + 1);
        std::size_t begin = input.find_first_of("0123456789", from);
        if (begin == std::string::npos) begin = input.find_first_of("0123456789");
        if (begin == std::string::npos) return;
        const std::size_t end = std::min(input.find_first_not_of("0123456789", begin), input.size());
        const bool any = below(2) == 0;
        input.replace(
            begin, end - begin,
            any ? numbers[below(numbers.size())] : std::to_string(below(std::size_t{1} << below(40))));
    }

    std::mt19937_64 random_;
    std::vector<std::string> corpus_;
    std::vector<std::string> words_;
};

}  // namespace hone::fuzz
