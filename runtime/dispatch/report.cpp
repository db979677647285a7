#include "hone/report.h"

#include <fmt/format.h>

#include <iterator>

#include "cache/kept_step.h"
#include "cache/ties.h"
#include "hone/error.h"
#include "hone/hone.h"

namespace hone {
namespace {

/// "5-8", or with several sizes "batch 1 kv_len 1025-2048".
std::string ranges(const BucketReport& bucket) {
    std::string text;
    for (const SizeRange& size : bucket.sizes) {
        if (!text.empty()) text += ' ';
        if (bucket.sizes.size() > 1) text += size.name + ' ';
        text += size.first == size.last ? fmt::format("{}", size.last)
                                        : fmt::format("{}-{}", size.first, size.last);
    }
    return text;
}

std::string_view reason(Origin origin) {
    switch (origin) {
        case Origin::exact: return "measured for this size on this kind of GPU";
        case Origin::neighbour: return "measured for a neighbouring size on this kind of GPU";
        case Origin::foreign: return "measured on another GPU of the same compute capability";
        case Origin::fallback: return "nothing is known about this size: the family's safe default";
    }
    return "";
}

std::string because(const BucketReport& bucket) {
    if (bucket.origin == Origin::fallback) return std::string(reason(bucket.origin));
    return fmt::format("{} (at {}; trust: {})", reason(bucket.origin), bucket.measured_at,
                       name(bucket.trust));
}

void add_ties(const Explanation& explanation, std::string& text) {
    if (explanation.tied_with.empty()) return;
    text += fmt::format("  tied with:  {}\n",
                        cache::describe_ties(explanation.tied_with.size(), explanation.tied_within));
    for (const std::string& candidate : explanation.tied_with)
        text += fmt::format("              {}\n", candidate);
}

void add_measurement(const Explanation& explanation, std::string& text) {
    auto out = std::back_inserter(text);
    if (explanation.measured_us <= 0) return;
    const int mhz = explanation.measured_at_mhz;
    fmt::format_to(out, "  measured:   {:.2f} us {}on {}, known from the {} layer\n", explanation.measured_us,
                   mhz > 0 ? fmt::format("at {} MHz ", mhz) : "", explanation.measured_on, explanation.layer);
    if (!explanation.chain.empty())
        fmt::format_to(
            out, "  chosen in:  a step of {}, where it makes the whole shortest{}\n", explanation.chain,
            cache::is_of_kept_step(explanation.chain) ? ""
                                                      : "; computed in another way that step is shorter");
    add_ties(explanation, text);
    if (explanation.runner_up.empty()) return;
    fmt::format_to(out, "  runner-up:  {}, {:.2f} us ({:+.1f} %)\n", explanation.runner_up,
                   explanation.runner_up_us,
                   100.0 * (explanation.runner_up_us / explanation.measured_us - 1.0));
}

}  // namespace

std::string_view version() { return HONE_VERSION; }

std::string_view name(Origin origin) {
    switch (origin) {
        case Origin::exact: return "exact";
        case Origin::neighbour: return "neighbour";
        case Origin::foreign: return "foreign";
        case Origin::fallback: return "fallback";
    }
    return "unknown";
}

std::string_view name(Trust trust) {
    switch (trust) {
        case Trust::none: return "none";
        case Trust::exact: return "exact";
        case Trust::compatible: return "compatible";
        case Trust::foreign: return "foreign";
    }
    return "unknown";
}

std::string_view name(ImageOrigin origin) {
    switch (origin) {
        case ImageOrigin::compiled: return "compiled";
        case ImageOrigin::cached: return "cached";
        case ImageOrigin::shared: return "shared";
    }
    return "unknown";
}

std::string to_string(const PrepareReport& report) {
    const std::string part = report.part.empty() ? "" : report.part + ": ";
    std::string text = fmt::format("{}{}: prepared in {:.1f} ms\n", part, report.problem, report.elapsed_ms);
    auto out = std::back_inserter(text);
    for (const BucketReport& bucket : report.buckets) {
        fmt::format_to(out, "  {:>11}  {:<9}  {:<10}  {:<8}  {:>7.1f} ms  {}\n", ranges(bucket),
                       name(bucket.origin), name(bucket.trust), name(bucket.image), bucket.load_ms,
                       bucket.candidate);
        if (!bucket.note.empty()) fmt::format_to(out, "               {}\n", bucket.note);
    }
    if (!report.tune_command.empty())
        fmt::format_to(out, "  to measure what is missing: {}\n", report.tune_command);
    return text;
}

std::string to_string(const Explanation& explanation) {
    const BucketReport& bucket = explanation.bucket;
    std::string text = explanation.problem + '\n';
    auto out = std::back_inserter(text);
    fmt::format_to(out, "  bucket:     {}\n", ranges(bucket));
    fmt::format_to(out, "  runs:       {}\n", bucket.candidate);
    fmt::format_to(out, "  because:    {}\n", because(bucket));
    add_measurement(explanation, text);
    if (bucket.origin != Origin::fallback) fmt::format_to(out, "  default:    {}\n", explanation.fallback);
    for (const std::string& sentence : explanation.passed_over)
        fmt::format_to(out, "  not taken:  {}\n", sentence);
    if (!bucket.tune_command.empty()) fmt::format_to(out, "  to improve: {}\n", bucket.tune_command);
    return text;
}

}  // namespace hone
