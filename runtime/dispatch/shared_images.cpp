#include "runtime/dispatch/shared_images.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <tuple>
#include <utility>

#include "kernel_templates/calibration.h"

namespace hone::runtime {
namespace {

using Choices = std::vector<std::optional<Choice>>;

constexpr double never = std::numeric_limits<double>::infinity();

/// Candidates that differ in their launch alone, and what they take: fallback by fallback, over what each has
/// for itself.
struct Image {
    Candidate made;  ///< image_candidate()
    std::vector<Candidate> candidates;
    std::vector<double> ratios;
    std::vector<const Candidate*> fastest;
    bool needed = false;
};

bool is_fallback(const Choice& choice) {
    return choice.record == nullptr && choice.origin == Origin::fallback;
}

bool serves(const Image& image, std::size_t fallback) {
    return image.ratios[fallback] <= 1 + shared_image_slack;
}

class Sharing {
  public:
    Sharing(const BucketGrid& grid, Choices& choices, const DeviceTraits& traits)
        : grid_(grid), choices_(choices), traits_(traits) {
        for (std::size_t cell = 0; cell < choices.size(); ++cell) {
            if (!choices[cell]) continue;
            const bool measured = !is_fallback(*choices[cell]);
            Image& image = image_of(choices[cell]->candidate);
            image.needed = image.needed || measured;
            if (!measured) fallbacks_.push_back(cell);
        }
    }

    void share() {
        if (images_.size() < 2 || fallbacks_.empty()) return;
        for (const std::size_t cell : fallbacks_) predict(cell);
        need_few();
        for (std::size_t i = 0; i < fallbacks_.size(); ++i) take_fastest(i);
    }

  private:
    Image& image_of(const Candidate& candidate) {
        const Candidate made = image_candidate(candidate, traits_.arch());
        auto known = std::ranges::find(images_, made, &Image::made);
        if (known == images_.end()) known = images_.insert(known, {.made = made});
        if (std::ranges::find(known->candidates, candidate) == known->candidates.end())
            known->candidates.push_back(candidate);
        return *known;
    }

    /// Other variants than the cell's own are left aside: models compare configs of one variant best.
    void predict(std::size_t cell) {
        const Problem edge = grid_.last(cell);
        const Candidate& own = choices_[cell]->candidate;
        const Correction correction(edge, *own.variant, traits_);
        const auto us = [&](const Candidate& candidate) {
            if (candidate.variant != own.variant) return never;
            if (candidate != own && !allowed(edge, candidate, traits_)) return never;
            return own.variant->predict_us(edge, candidate.config, traits_) *
                   correction.factor(candidate.config);
        };
        const double own_us = us(own);
        for (Image& image : images_) {
            double ratio = never;
            const Candidate* fastest = nullptr;
            for (const Candidate& candidate : image.candidates) {
                const double of_this = candidate == own ? 1 : us(candidate) / own_us;
                if (of_this < ratio) std::tie(ratio, fastest) = std::pair(of_this, &candidate);
            }
            image.ratios.push_back(ratio);
            image.fastest.push_back(fastest);
        }
    }

    /// Until every fallback has an image: the one that serves most of those that have none, the first of
    /// equals. Each has one in the end, since its own serves it.
    void need_few() {
        std::vector<std::size_t> left;
        for (std::size_t i = 0; i < fallbacks_.size(); ++i) {
            if (!std::ranges::any_of(images_, [&](const Image& one) { return one.needed && serves(one, i); }))
                left.push_back(i);
        }
        while (!left.empty()) {
            const auto served = [&](const Image& image) {
                return std::ranges::count_if(left, [&](std::size_t i) { return serves(image, i); });
            };
            Image& best = *std::ranges::max_element(images_, {}, served);
            best.needed = true;
            std::erase_if(left, [&](std::size_t i) { return serves(best, i); });
        }
    }

    void take_fastest(std::size_t fallback) {
        const Image* best = nullptr;
        for (const Image& image : images_) {
            if (!image.needed || !serves(image, fallback)) continue;
            if (best == nullptr || image.ratios[fallback] < best->ratios[fallback]) best = &image;
        }
        choices_[fallbacks_[fallback]]->candidate = *best->fastest[fallback];
    }

    const BucketGrid& grid_;
    Choices& choices_;
    const DeviceTraits& traits_;
    std::vector<Image> images_;           ///< in the order of the first cells that have them
    std::vector<std::size_t> fallbacks_;  ///< cells
};

}  // namespace

Choices choose_cells(const BucketGrid& grid, std::span<const KnownWinner> winners,
                     const DeviceTraits& traits) {
    Choices choices;
    for (std::size_t cell = 0; cell < grid.cells(); ++cell)
        choices.push_back(choose(grid.last(cell), winners, traits));
    Sharing(grid, choices, traits).share();
    return choices;
}

}  // namespace hone::runtime
