// Ten thousand lines in many scripts, and the hashes of their ids: those of make_lines.py, which draws the
// same and asks Hugging Face's tokenizers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "decoder/text/utf8.h"

namespace hone::test {

inline constexpr int line_count = 10'000;
inline constexpr int lines_a_hash = 100;

class Lines {
  public:
    std::string next() {
        std::string text;
        for (std::uint32_t pieces = 1 + below(14); pieces > 0; --pieces) {
            add_piece(text);
            text += one_of(gaps);
        }
        return text;
    }

  private:
    static constexpr std::array<std::pair<char32_t, char32_t>, 32> scripts{
        {{0xC0, 0xD6},       {0xF8, 0x17F},     {0x3B1, 0x3C9},   {0x410, 0x44F},     {0x561, 0x586},
         {0x5D0, 0x5EA},     {0x621, 0x63A},    {0x64B, 0x652},   {0x905, 0x939},     {0x93E, 0x94D},
         {0xE01, 0xE30},     {0xE31, 0xE3A},    {0x10D0, 0x10F0}, {0x1100, 0x1112},   {0x1161, 0x1175},
         {0x11A8, 0x11C2},   {0x1780, 0x17B3},  {0x1E00, 0x1E95}, {0x1F00, 0x1F07},   {0x2160, 0x217F},
         {0x2460, 0x249B},   {0x3041, 0x3096},  {0x30A1, 0x30FA}, {0x4E00, 0x9FA5},   {0xAC00, 0xD7A3},
         {0xFB00, 0xFB06},   {0xFF21, 0xFF3A},  {0x300, 0x314},   {0x1D400, 0x1D433}, {0x1F600, 0x1F640},
         {0x1F1E6, 0x1F1FF}, {0x20000, 0x2A6D6}}};
    static constexpr std::array<char32_t, 6> zeros{0x30, 0x30, 0x30, 0x660, 0x966, 0xFF10};
    static constexpr auto words = std::to_array<std::string_view>(
        {"the",        "of",     "and",    "to",      "in",         "is",      "for",     "not",   "file",
         "error",      "option", "cannot", "Print",   "with",       "warning", "package", "Datei", "nicht",
         "kann",       "der",    "die",    "fichier", "impossible", "le",      "de",      "la",    "archivo",
         "no",         "se",     "puede",  "файл",    "не",         "для",     "ошибка",  "пакет", "ファイル",
         "できません", "文件",   "无法",   "파일",    "없음",       "ملف",     "خطأ",     "def",   "return",
         "int",        "main",   "http",   "www"});
    static constexpr auto marks = std::to_array<std::string_view>(
        {".",      ",",        ";",      ":",    "!",     "?",      "...",
         "—",      "–",        "-",      "_",    "(",     ")",      "[",
         "]",      "{",        "}",      "\"",   "'",     "«",      "»",
         "“",      "”",        "‘",      "’",    "/",     "\\",     "|",
         "@",      "#",        "$",      "%",    "^",     "&",      "*",
         "+",      "=",        "<",      ">",    "~",     "`",      "§",
         "©",      "½",        "²",      "€",    "№",     "、",     "。",
         "¿",      "¡",        "·",      "'s",   "'re",   "'LL",    "n't",
         "'d",     "'ve",      "<s>",    "</s>", "<unk>", "<left>", "<right>",
         "<both>", "<word>",   "<Norm>", "▁",    "▁▁",    "<0x0A>", "👩‍👩‍👧",
         "❤️", "👍🏽", "é",      "Å"});
    static constexpr auto gaps =
        std::to_array<std::string_view>({" ", " ", " ", " ", " ", "", "  ", "   ", "\t", " \t ", "\u00a0",
                                         "\u3000", "\u2009", "\n", "\r\n", " \n "});

    /// The upper bits of a linear congruential generator.
    std::uint32_t below(std::uint32_t count) {
        state_ = state_ * 6364136223846793005U + 1442695040888963407U;
        return static_cast<std::uint32_t>((state_ >> 33) % count);
    }
    template <class T, std::size_t count>
    const T& one_of(const std::array<T, count>& all) {
        return all[below(count)];
    }
    void add_characters(std::string& text, char32_t first, std::uint32_t count, std::uint32_t most) {
        for (std::uint32_t left = 1 + below(most); left > 0; --left)
            decoder::append_code_point(text, first + below(count));
    }
    void add_piece(std::string& text) {
        const std::uint32_t kind = below(10);
        if (kind < 2) return add_characters(text, U'a', 26, 9);
        if (kind < 4) {
            std::string word(one_of(words));
            const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
            if (std::ranges::all_of(word, is_ascii) && below(6) == 0)
                std::ranges::transform(word, word.begin(), [](char c) {
                    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
                });
            text += word;
        } else if (kind < 7) {
            const auto [first, last] = one_of(scripts);
            add_characters(text, first, static_cast<std::uint32_t>(last - first + 1), 7);
        } else if (kind < 8) {
            add_characters(text, one_of(zeros), 10, 7);
        } else {
            text += one_of(marks);
        }
    }

    std::uint64_t state_ = 2026;
};

/// FNV-1a of the ids of some lines, each with a mark behind it.
class IdHash {
  public:
    void add(const std::vector<int>& ids) {
        for (const int id : ids) add(static_cast<std::uint32_t>(id));
        add(0xFFFFFFFFU);
    }
    [[nodiscard]] std::uint32_t value() const { return value_; }

  private:
    void add(std::uint32_t number) {
        for (int shift = 0; shift < 32; shift += 8)
            value_ = (value_ ^ (number >> shift & 0xFFU)) * 0x01000193U;
    }

    std::uint32_t value_ = 0x811C9DC5U;
};

}  // namespace hone::test
