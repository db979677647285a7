#include "tuner/search/shared_winners.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "cache/ties.h"
#include "kernel_templates/catalog.h"

namespace hone::tuner {
namespace {

/// A kernel that may win a race: its trial's place there, and how far it was from the winner.
struct Choice {
    std::size_t trial = 0;
    double distance = 0;
};
/// What a race can take, by the names of images.
using Choices = std::map<std::string, Choice>;

/// Empty where this build cannot make the image that was measured.
std::string image_of(const cache::Trial& trial) {
    const Family* family = find_family(trial.key.family);
    const std::optional<Candidate> candidate =
        family == nullptr ? std::nullopt : parse_candidate(*family, trial.candidate);
    if (!candidate || template_hash(*candidate->variant) != trial.template_hash) return {};
    const cache::GpuKey& gpu = trial.key.gpu;
    return to_string(image_candidate(*candidate, native_arch(gpu.compute_major, gpu.compute_minor)));
}

Choices choices_of(const WonRace& race) {
    const cache::Trial& winner = race.front();
    const std::string own = image_of(winner);
    if (own.empty()) return {};
    Choices choices{{own, {}}};
    if (!winner.chain.empty()) return choices;
    const cache::Ties ties = cache::ties_of(winner, race);
    // The closest come first: of several kernels of an image the closest is taken.
    for (std::size_t i = 0; i < ties.others.size(); ++i) {
        const cache::Trial& tied = ties.others[i];
        const std::string image = image_of(tied);
        if (image.empty() || !cache::of_one_final(tied, winner)) continue;
        const auto place = std::ranges::find_if(race, [&](const cache::Trial& trial) {
            return trial.candidate == tied.candidate && cache::of_one_final(trial, winner);
        });
        choices.try_emplace(image, static_cast<std::size_t>(place - race.begin()),
                            static_cast<double>(i + 1));
    }
    return choices;
}

/// The images that serve all races, where those that most can take are taken first.
std::set<std::string> cover(std::span<const Choices* const> races) {
    std::set<std::string> taken;
    std::vector<const Choices*> left(races.begin(), races.end());
    while (!left.empty()) {
        std::map<std::string, std::pair<int, double>> uses;  // races, and their distances
        for (const Choices* choices : left) {
            for (const auto& [image, choice] : *choices) {
                ++uses[image].first;
                uses[image].second += choice.distance;
            }
        }
        const auto best = std::ranges::min_element(uses, {}, [](const auto& use) {
            return std::tuple(-use.second.first, use.second.second, use.first);
        });
        const std::string image = best->first;
        taken.insert(image);
        std::erase_if(left, [&](const Choices* choices) { return choices->contains(image); });
    }
    return taken;
}

/// The nearest of the images that are taken; the winner's own is at no distance.
const Choice& nearest(const Choices& choices, const std::set<std::string>& taken) {
    const Choice* best = nullptr;
    for (const auto& [image, choice] : choices) {
        if (taken.contains(image) && (best == nullptr || choice.distance < best->distance)) best = &choice;
    }
    return *best;
}

void let_win(WonRace& race, std::size_t trial) {
    race.front().winner = false;
    race[trial].winner = true;
    std::swap(race.front(), race[trial]);
}

}  // namespace

SharedWinners share_images(std::vector<WonRace>& races) {
    std::vector<Choices> choices;
    std::map<std::tuple<cache::GpuKey, std::string, std::string>, std::vector<std::size_t>> problems;
    for (std::size_t i = 0; i < races.size(); ++i) {
        choices.push_back(choices_of(races[i]));
        const cache::TuningKey& key = races[i].front().key;
        if (!choices.back().empty()) problems[{key.gpu, key.family, key.static_fields}].push_back(i);
    }
    SharedWinners shared;
    for (const auto& [_, members] : problems) {
        std::vector<const Choices*> own;
        std::set<std::string> before;
        for (const std::size_t i : members) {
            own.push_back(&choices[i]);
            before.insert(image_of(races[i].front()));
        }
        const std::set<std::string> taken = cover(own);
        // Winners that share enough already stay as they are.
        const bool is_fewer = taken.size() < before.size();
        shared.images_before += before.size();
        shared.images += is_fewer ? taken.size() : before.size();
        if (!is_fewer) continue;
        for (const std::size_t i : members) {
            const std::size_t trial = nearest(choices[i], taken).trial;
            if (trial == 0) continue;
            let_win(races[i], trial);
            ++shared.changed;
        }
    }
    return shared;
}

}  // namespace hone::tuner
