#include "kernel_templates/family.h"

#include <algorithm>

#include "kernel_templates/catalog.h"
#include "kernel_templates/text.h"

namespace hone {
namespace {

bool is_declared(const Tunable& tunable, std::int64_t value) {
    return std::ranges::find(tunable.values.span(), value) != tunable.values.span().end();
}

int tunable_index(const Variant& variant, std::string_view name) {
    for (std::size_t i = 0; i < variant.tunables.size(); ++i) {
        if (variant.tunables[i].name == name) return static_cast<int>(i);
    }
    return -1;
}

template <class Items>
std::vector<std::string_view> names_of(const Items& items) {
    std::vector<std::string_view> names;
    for (const auto& item : items) names.push_back(item.name);
    return names;
}

std::optional<Config> parse_config(const Variant& variant, std::string_view text, std::string* error) {
    const std::optional<std::vector<KeyValue>> pairs = parse_key_values(text, error);
    if (!pairs) return std::nullopt;
    Config config;
    std::array<bool, max_tunables> given{};
    for (const auto& [key, value_text] : *pairs) {
        const int index = tunable_index(variant, key);
        if (index < 0) {
            const std::vector<std::string_view> names = names_of(variant.tunables);
            return fail(error, "variant " + std::string(variant.name) + " has no tunable '" +
                                   std::string(key) + "'; known: " + join(names) + did_you_mean(key, names));
        }
        const std::size_t i = static_cast<std::size_t>(index);
        const std::optional<std::int64_t> value = parse_integer(value_text);
        if (given[i]) return fail(error, "tunable '" + std::string(key) + "' is given twice");
        if (!value || !is_declared(variant.tunables[i], *value)) {
            return fail(error, "tunable '" + std::string(key) + "' has the value '" +
                                   std::string(value_text) + "', which is not one of its declared values");
        }
        config[i] = *value;
        given[i] = true;
    }
    for (std::size_t i = 0; i < variant.tunables.size(); ++i) {
        if (!given[i])
            return fail(error, "tunable '" + std::string(variant.tunables[i].name) + "' is missing");
    }
    return config;
}

}  // namespace

Candidate image_candidate(const Candidate& candidate, Arch arch) {
    constexpr int first_with_programmatic_launches = 9;
    Candidate made = candidate;
    for (std::size_t i = 0; i < candidate.variant->tunables.size(); ++i) {
        const Tunable& tunable = candidate.variant->tunables[i];
        if (tunable.of_launch_alone) made.config[i] = tunable.values.items.front();
        const bool plain = tunable.image_of_plain_launch != 0 && made.config[i] == 0;
        if (plain && arch.major >= first_with_programmatic_launches)
            made.config[i] = tunable.image_of_plain_launch;
    }
    return made;
}

bool runs_on(const Variant& variant, const DeviceTraits& traits) {
    const Arch needed = variant.min_arch;
    const int have = traits.compute_major * 10 + traits.compute_minor;
    const int least = needed.major * 10 + needed.minor;
    return needed.specific ? have == least : have >= least;
}

std::string_view why_not(const Problem& problem, const Candidate& candidate, const DeviceTraits& traits) {
    const Variant& variant = *candidate.variant;
    if (!runs_on(variant, traits)) return "the GPU's architecture lacks the variant's instructions";
    for (std::size_t i = 0; i < variant.tunables.size(); ++i) {
        if (!is_declared(variant.tunables[i], candidate.config[i]))
            return "a tunable has an undeclared value";
    }
    for (const Constraint& constraint : variant.constraints) {
        if (!constraint.holds(problem, candidate.config, traits)) return constraint.reason;
    }
    return {};
}

std::optional<Candidate> fallback(const Problem& problem, const DeviceTraits& traits) {
    for (const Variant* variant : problem.family->variants) {
        if (!runs_on(*variant, traits)) continue;
        const std::optional<Config> config = variant->fallback(problem, traits);
        if (config && allowed(problem, {variant, *config}, traits)) return Candidate{variant, *config};
    }
    return std::nullopt;
}

std::string to_string(const Candidate& candidate) {
    std::string text(candidate.variant->name);
    for (std::size_t i = 0; i < candidate.variant->tunables.size(); ++i) {
        text += ' ' + std::string(candidate.variant->tunables[i].name) + '=' +
                std::to_string(candidate.config[i]);
    }
    return text;
}

std::optional<Candidate> parse_candidate(const Family& family, std::string_view text, std::string* error) {
    const auto [name, rest] = split_first_word(text);
    const Variant* variant = find_variant(family, name);
    if (variant == nullptr) {
        std::vector<std::string_view> names;
        for (const Variant* known : family.variants) names.push_back(known->name);
        return fail(error, std::string(family.name) + " has no variant '" + std::string(name) +
                               "'; known: " + join(names) + did_you_mean(name, names));
    }
    const std::optional<Config> config = parse_config(*variant, rest, error);
    if (!config) return std::nullopt;
    return Candidate{variant, *config};
}

}  // namespace hone
