#include "tuner/search/cover.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace hone::tuner {
namespace {

using Kernels = std::vector<std::size_t>;

constexpr double never = std::numeric_limits<double>::infinity();
constexpr double least_gain = 1e-9;  // of the sum of logarithms: smaller ones are rounding

/// Sizes that no kernel serves count first, then the logarithms of what the others lose.
struct Cost {
    std::size_t unserved = 0;
    double logarithms = 0;

    [[nodiscard]] bool is_below(const Cost& other) const {
        if (unserved != other.unserved) return unserved < other.unserved;
        return logarithms < other.logarithms - least_gain;
    }
};

class Choice {
  public:
    explicit Choice(const TimesBySize& us) : us_(us) {
        for (const std::vector<double>& times : us_) best_us_.push_back(std::ranges::min(times));
    }

    [[nodiscard]] std::size_t kernel_count() const { return us_.empty() ? 0 : us_.front().size(); }
    [[nodiscard]] std::size_t fastest(std::size_t size, const Kernels& kernels) const {
        return *std::ranges::min_element(kernels, {}, [&](std::size_t kernel) { return us_[size][kernel]; });
    }
    /// Time of the fastest of them over that of the fastest of all.
    [[nodiscard]] double ratio(std::size_t size, const Kernels& kernels) const {
        return kernels.empty() ? never : us_[size][fastest(size, kernels)] / best_us_[size];
    }
    [[nodiscard]] Cost cost(const Kernels& kernels) const {
        Cost sum;
        for (std::size_t size = 0; size < us_.size(); ++size) {
            const double behind = ratio(size, kernels);
            if (std::isfinite(behind))
                sum.logarithms += std::log(behind);
            else
                ++sum.unserved;
        }
        return sum;
    }

  private:
    const TimesBySize& us_;
    std::vector<double> best_us_;
};

/// Puts every kernel into one place of `kernels`, and keeps who lowers the cost most; false: nobody does.
bool improve_place(const Choice& choice, std::size_t place, Kernels& kernels) {
    Cost least = choice.cost(kernels);
    Kernels changed = kernels;
    bool is_better = false;
    for (std::size_t kernel = 0; kernel < choice.kernel_count(); ++kernel) {
        changed[place] = kernel;
        const Cost cost = choice.cost(changed);
        if (!cost.is_below(least)) continue;
        least = cost;
        kernels[place] = kernel;
        is_better = true;
    }
    return is_better;
}

/// False: one more lowers nothing.
bool add_best(const Choice& choice, Kernels& kernels) {
    const Cost before = choice.cost(kernels);
    kernels.push_back(0);
    improve_place(choice, kernels.size() - 1, kernels);
    if (choice.cost(kernels).is_below(before)) return true;
    kernels.pop_back();
    return false;
}

void exchange(const Choice& choice, Kernels& kernels) {
    for (bool is_better = true; is_better;) {
        is_better = false;
        for (std::size_t place = 0; place < kernels.size(); ++place)
            is_better |= improve_place(choice, place, kernels);
    }
}

Cover described(const TimesBySize& us, const Choice& choice, const Kernels& kernels) {
    Cover cover{.kernels = kernels, .kernel_of_size = {}};
    for (std::size_t size = 0; size < us.size(); ++size) {
        cover.kernel_of_size.push_back(choice.fastest(size, kernels));
        cover.worst_loss = std::max(cover.worst_loss, choice.ratio(size, kernels) - 1);
    }
    cover.mean_loss = std::exp(choice.cost(kernels).logarithms / static_cast<double>(us.size())) - 1;
    return cover;
}

}  // namespace

std::optional<Cover> cover(const TimesBySize& us, std::size_t limit) {
    const Choice choice(us);
    Kernels kernels;
    while (kernels.size() < std::min(limit, choice.kernel_count()) && add_best(choice, kernels))
        exchange(choice, kernels);
    if (kernels.empty() || choice.cost(kernels).unserved > 0) return std::nullopt;
    return described(us, choice, kernels);
}

}  // namespace hone::tuner
