#include "decoder/scheduling/step_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace hone::decoder {
namespace {

/// Weight of the newest step in what steps lately took: some dozens count.
constexpr double newest = 1.0 / 16;
/// How much a single step counts at the most: one during which the host was away says nothing.
constexpr double most_off = 2;
/// What a prompt's token may take over one of the cheapest number of them.
constexpr double hardly_more = 1.03;

}  // namespace

StepCost::StepCost(std::vector<StepTime> measured) {
    std::erase_if(measured, [](const StepTime& step) { return !std::isfinite(step.s) || step.s < 0; });
    std::ranges::sort(measured, {}, [](const StepTime& step) {
        return std::pair(step.load.sequences, std::pair(step.load.keys, step.load.prompt_tokens));
    });
    read_plain(measured);
    read_prompts(measured);
}

void StepCost::read_plain(const std::vector<StepTime>& measured) {
    std::vector<StepTime> plain;
    std::ranges::copy_if(measured, std::back_inserter(plain),
                         [](const StepTime& step) { return step.load.prompt_tokens == 0; });
    for (auto few = plain.begin(); few != plain.end();) {
        const auto next = std::find_if(few, plain.end(), [&](const StepTime& step) {
            return step.load.sequences != few->load.sequences;
        });
        const StepTime& many = *std::prev(next);
        const std::int64_t more = many.load.keys - few->load.keys;
        const double key_s = more > 0 ? std::max(many.s - few->s, 0.0) / static_cast<double>(more) : 0;
        texts_.push_back({few->load.sequences,
                          std::max(few->s - key_s * static_cast<double>(few->load.keys), 0.0), key_s});
        few = next;
    }
}

void StepCost::read_prompts(const std::vector<StepTime>& measured) {
    for (const auto& [load, s] : measured) {
        if (load.prompt_tokens == 0 || load.sequences > 0 || load.prompt_begin > 0) continue;
        rows_.push_back({load.prompt_tokens, rows_.empty() ? s : std::max(s, rows_.back().s)});
    }
    for (const auto& [load, s] : measured) {
        if (load.prompt_begin == 0 || load.prompt_tokens == 0) continue;
        const double pairs = static_cast<double>(load.prompt_tokens) * static_cast<double>(load.prompt_begin);
        pair_s_ = std::max(s - rows_s(load.prompt_tokens), 0.0) / pairs;
    }
    for (const auto& [load, s] : measured) {
        if (load.prompt_tokens > 0 && load.sequences > 0) beside_s_ = std::max(s - measured_s(load), 0.0);
    }
}

/// Between two measured numbers of sequences the straight line, beyond them the nearest, in proportion.
StepCost::Texts StepCost::texts_of(std::int64_t sequences) const {
    if (texts_.empty()) return {sequences, 0, 0};
    const auto above = std::ranges::lower_bound(texts_, sequences, {}, &Texts::sequences);
    if (above == texts_.begin()) return *above;
    const Texts& low = *std::prev(above);
    if (above == texts_.end()) {
        const double times = static_cast<double>(sequences) / static_cast<double>(low.sequences);
        return {sequences, low.without_keys_s * times, low.key_s};
    }
    const double share = static_cast<double>(sequences - low.sequences) /
                         static_cast<double>(above->sequences - low.sequences);
    return {sequences, std::lerp(low.without_keys_s, above->without_keys_s, share),
            std::lerp(low.key_s, above->key_s, share)};
}

double StepCost::plain_s(const StepLoad& load) const {
    if (load.sequences == 0) return 0;
    const Texts texts = texts_of(load.sequences);
    return texts.without_keys_s + texts.key_s * static_cast<double>(load.keys);
}

/// Products take whole tiles of rows, so between two measured numbers the larger one's time counts.
double StepCost::rows_s(std::int64_t rows) const {
    if (rows_.empty() || rows == 0) return 0;
    const auto above = std::ranges::lower_bound(rows_, rows, {}, &Rows::rows);
    if (above != rows_.end()) return above->s;
    return rows_.back().s * static_cast<double>(rows) / static_cast<double>(rows_.back().rows);
}

double StepCost::measured_s(const StepLoad& load) const {
    const double pairs = static_cast<double>(load.prompt_tokens) * static_cast<double>(load.prompt_begin);
    const double plain = plain_s(load);
    if (load.prompt_tokens == 0) return plain;
    const double rows = rows_s(load.sequences + load.prompt_tokens) - rows_s(load.sequences);
    return plain + rows + pair_s_ * pairs + (load.sequences > 0 ? beside_s_ : 0);
}

double StepCost::of(const StepLoad& load) const {
    return measured_s(load) * (load.prompt_tokens == 0 ? plain_factor_ : mixed_factor_);
}

std::int64_t StepCost::prompt_tokens_within(double stretch, StepLoad load, std::int64_t least,
                                            std::int64_t most) const {
    load.prompt_tokens = 0;
    const double limit_s = stretch * of(load);
    if (!(limit_s > 0) || rows_.empty()) return most;
    const auto fits = [&](std::int64_t tokens) {
        load.prompt_tokens = tokens;
        return of(load) <= limit_s;
    };
    if (most <= least || fits(most)) return most;
    std::int64_t found = least;  // more tokens take no less
    for (std::int64_t beyond = most; beyond - found > 1;) {
        const std::int64_t middle = found + (beyond - found) / 2;
        (fits(middle) ? found : beyond) = middle;
    }
    return found;
}

/// A token is the cheapest where it fills the tiles of products: at the measured numbers of rows.
std::int64_t StepCost::cheapest_prompt_tokens(double stretch, StepLoad load, std::int64_t waiting,
                                              std::int64_t most) const {
    load.prompt_tokens = 0;
    const double plain_s =
        measured_s(load);  // what steps have taken since tells with and without prompts apart
    most = prompt_tokens_within(stretch, load, 0, most);
    std::vector<std::pair<std::int64_t, double>> numbers;  // with the seconds of each of their tokens
    double least_s = std::numeric_limits<double>::infinity();
    for (const Rows& rows : rows_) {
        load.prompt_tokens = std::min(rows.rows - load.sequences, most);
        if (load.prompt_tokens <= 0) continue;
        const double token_s = (measured_s(load) - plain_s) / static_cast<double>(load.prompt_tokens);
        numbers.emplace_back(load.prompt_tokens, token_s);
        least_s = std::min(least_s, token_s);
    }
    std::int64_t found = 0;
    for (const auto& [tokens, token_s] : numbers) {
        if (token_s <= hardly_more * least_s && (found == 0 || tokens <= waiting)) found = tokens;
    }
    return found;
}

void StepCost::note(const StepTime& step) {
    // Prompts alone are held up by nobody, and longer than what was measured.
    if (step.load.prompt_tokens > 0 && !step.load.is_mixed()) return;
    const double expected = measured_s(step.load);
    if (!(expected > 0) || !(step.s > 0)) return;
    double& factor = step.load.prompt_tokens == 0 ? plain_factor_ : mixed_factor_;
    const double ratio = std::clamp(step.s / expected, factor / most_off, factor * most_off);
    factor += (ratio - factor) * newest;
}

}  // namespace hone::decoder
