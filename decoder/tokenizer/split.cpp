#include "decoder/tokenizer/split.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hone::decoder {
namespace {

struct Section {
    Span span{};
    bool is_match = false;
};

constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> behaviors{
    {{"Removed", SplitBehavior::removed},
     {"Isolated", SplitBehavior::isolated},
     {"MergedWithPrevious", SplitBehavior::merged_with_previous},
     {"MergedWithNext", SplitBehavior::merged_with_next},
     {"Contiguous", SplitBehavior::contiguous}}};

std::vector<Section> sections(std::size_t end, const std::vector<Span>& matches, bool invert) {
    std::vector<Section> out;
    std::size_t at = 0;
    for (const Span& match : matches) {
        if (match.begin > at) out.push_back({{at, match.begin}, invert});
        out.push_back({match, !invert});
        at = match.end;
    }
    if (at < end) out.push_back({{at, end}, invert});
    return out;
}

std::vector<Span> merged_with_previous(const std::vector<Section>& sections) {
    std::vector<Span> out;
    bool behind_match = false;
    for (const Section& section : sections) {
        if (section.is_match && !behind_match && !out.empty())
            out.back().end = section.span.end;
        else
            out.push_back(section.span);
        behind_match = section.is_match;
    }
    return out;
}

/// The mirror image.
std::vector<Span> merged_with_next(const std::vector<Section>& sections) {
    std::vector<Span> out;
    bool before_match = false;
    for (auto section = sections.rbegin(); section != sections.rend(); ++section) {
        if (section->is_match && !before_match && !out.empty())
            out.back().begin = section->span.begin;
        else
            out.push_back(section->span);
        before_match = section->is_match;
    }
    std::ranges::reverse(out);
    return out;
}

std::vector<Span> contiguous(const std::vector<Section>& sections) {
    std::vector<Span> out;
    for (std::size_t i = 0; i < sections.size(); ++i) {
        if (i > 0 && sections[i].is_match == sections[i - 1].is_match)
            out.back().end = sections[i].span.end;
        else
            out.push_back(sections[i].span);
    }
    return out;
}

std::vector<Span> spans(const std::vector<Section>& sections, bool with_matches) {
    std::vector<Span> out;
    for (const Section& section : sections)
        if (with_matches || !section.is_match) out.push_back(section.span);
    return out;
}

std::vector<Span> pieces(const std::vector<Section>& sections, SplitBehavior behavior) {
    switch (behavior) {
        case SplitBehavior::merged_with_previous: return merged_with_previous(sections);
        case SplitBehavior::merged_with_next: return merged_with_next(sections);
        case SplitBehavior::contiguous: return contiguous(sections);
        case SplitBehavior::removed: return spans(sections, false);
        case SplitBehavior::isolated: break;
    }
    return spans(sections, true);
}

}  // namespace

SplitBehavior read_split_behavior(const JsonPlace& json) {
    for (const auto& [name, behavior] : behaviors)
        if (json.text() == name) return behavior;
    json.refuse("has to be Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

std::vector<Span> split(std::size_t end, const std::vector<Span>& matches, SplitBehavior behavior,
                        bool invert) {
    std::vector<Span> out = pieces(sections(end, matches, invert), behavior);
    std::erase_if(out, [](const Span& span) { return span.begin == span.end; });
    return out;
}

}  // namespace hone::decoder
