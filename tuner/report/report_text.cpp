#include "tuner/report/report_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "kernel_templates/text.h"
#include "runtime/system/short_text.h"

namespace hone::tuner {
namespace {

/// Code points: what a cell takes on a terminal, wide characters aside.
std::size_t width(std::string_view text) {
    return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, is_utf8_continuation));
}

constexpr std::string_view gap = "  ";  // between columns

void append_cell(std::string& line, std::string_view cell, std::size_t column_width, Align align, bool last) {
    const std::string padding(column_width - width(cell), ' ');
    if (align == Align::right) line += padding;
    line += cell;
    if (align == Align::left && !last) line += padding;
    if (!last) line += gap;
}

}  // namespace

std::string fitted(std::string_view text, std::size_t columns) {
    if (columns == 0 || width(text) <= columns) return std::string(text);
    std::size_t end = 0;
    for (std::size_t taken = 0; taken + 1 < columns; ++taken)
        end += std::max<std::size_t>(1, utf8_length(text.substr(end)));
    return std::string(text.substr(0, end)) + "\u2026";
}

std::vector<std::string> split_words(std::string_view text) {
    std::vector<std::string> words;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(' ', text.find_first_not_of(' ')), text.size());
        words.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return words;
}

std::string wrapped(std::span<const std::string> words, const Page& page, std::string_view indent,
                    std::string_view first_indent) {
    std::string text;
    std::string line(first_indent);
    bool is_begun = false;
    for (const std::string_view word : words) {
        if (is_begun && page.columns > 0 && line.size() + 1 + word.size() > page.columns) {
            text += fitted(line, page.columns) + '\n';
            line = indent;
            line += word.substr(std::min(word.find_first_not_of(' '), word.size()));
        } else {
            if (is_begun) line += ' ';
            line += word;
        }
        is_begun = true;
    }
    return text + fitted(line, page.columns) + '\n';
}

std::string format_us(double us) {
    if (!(us > 0)) return "-";
    if (us < 10) return fmt::format("{:.3f}", us);
    return us < 100 ? fmt::format("{:.2f}", us) : fmt::format("{:.1f}", us);
}

std::string format_share(double share) {
    return share < 0.1 ? fmt::format("{:.1f} %", share * 100) : fmt::format("{:.0f} %", share * 100);
}

std::string format_bytes(std::int64_t bytes) {
    constexpr std::string_view units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
    return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

std::string format_duration(std::chrono::milliseconds time) {
    const auto ms = time.count();
    if (ms < 1000) return fmt::format("{} ms", ms);
    if (ms < 60'000) return fmt::format("{:.1f} s", static_cast<double>(ms) / 1000);
    const auto seconds = ms / 1000;
    if (seconds < 3600) return fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
    return fmt::format("{} h {:02} min", seconds / 3600, seconds / 60 % 60);
}

std::string format_time(std::int64_t unix_ms) {
    constexpr std::int64_t year_10000 = 253'402'300'800'000;
    if (unix_ms <= 0 || unix_ms >= year_10000) return "-";
    return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(static_cast<std::time_t>(unix_ms / 1000)));
}

void Table::add(std::vector<std::string> cells) {
    cells.resize(columns_.size());
    for (std::string& cell : cells) cell = runtime::escape_controls(cell);
    rows_.push_back(std::move(cells));
}

std::vector<std::size_t> Table::widths(std::size_t most) const {
    constexpr std::size_t narrowest = 8;
    std::vector<std::size_t> widths;
    std::size_t total = 0;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        std::size_t widest = width(columns_[c].title);
        for (const auto& row : rows_) widest = std::max(widest, width(row[c]));
        widths.push_back(widest);
        total += widest + (c == 0 ? 0 : gap.size());
    }
    for (; most > 0 && total > most; --total) {
        std::size_t* cut = nullptr;
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            const bool can_be_cut = columns_[c].align == Align::left && widths[c] > narrowest;
            if (can_be_cut && (cut == nullptr || widths[c] >= *cut)) cut = &widths[c];
        }
        if (cut == nullptr) break;
        --*cut;
    }
    return widths;
}

std::string Table::render(const Page& page, std::string_view indent) const {
    const std::size_t most = page.columns > indent.size() ? page.columns - indent.size() : 0;
    const std::vector<std::size_t> widths = this->widths(most);
    const auto line_of = [&](const auto& cell) {
        std::string line;
        for (std::size_t c = 0; c < columns_.size(); ++c)
            append_cell(line, fitted(cell(c), widths[c]), widths[c], columns_[c].align,
                        c + 1 == columns_.size());
        line.erase(line.find_last_not_of(' ') + 1);
        return fitted(line, most);
    };
    const std::string header = line_of([&](std::size_t c) { return columns_[c].title; });
    std::string text =
        fmt::format("{}{}{}{}\n", indent, page.colour ? "\033[1m" : "", header, page.colour ? "\033[0m" : "");
    for (const auto& row : rows_)
        text += fmt::format("{}{}\n", indent, line_of([&](std::size_t c) { return row[c]; }));
    return text;
}

}  // namespace hone::tuner
