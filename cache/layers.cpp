#include "cache/layers.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "cache/bundle.h"
#include "cache/environment.h"
#include "cache/hint.h"
#include "cache/provenance.h"
#include "kernel_templates/catalog.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;

enum class Layer : std::uint8_t { packaged, site, user };

std::string_view name(Layer layer) {
    switch (layer) {
        case Layer::packaged: return "packaged";
        case Layer::site: return "site";
        case Layer::user: break;
    }
    return "user";
}

struct Offer {
    LoadedWinner winner;
    Layer layer = Layer::packaged;
    std::size_t place = 0;  ///< in its layer, whose better winners of a key come first
};

int preference(Trust trust) {
    switch (trust) {
        case Trust::exact: return 0;
        case Trust::compatible: return 1;
        case Trust::foreign: return 2;
        case Trust::stale: return 3;
        case Trust::unusable: break;
    }
    return 4;
}

/// A kernel that was chosen in a model's step holds its place against what another driver or another layer
/// has measured alone: in a step that says more.
int preference(const LoadedWinner& winner) {
    const bool holds = !winner.trial.chain.empty() && winner.trust == Trust::compatible;
    return preference(holds ? Trust::exact : winner.trust);
}

/// Later wins, so a layer's negative number. Inside of a database its own order decides, which knows what was
/// measured here; among bundles the newer, then the identity.
auto rank(const Offer& offer) {
    return std::tuple(preference(offer.winner), distance_from_reality(offer.winner.trial.provenance),
                      offer.winner.trial.chain.empty(), -static_cast<int>(offer.layer), offer.place,
                      -offer.winner.trial.created_at, identity(offer.winner.trial));
}

std::vector<LoadedWinner> best_of_each_key(std::vector<Offer> offers) {
    std::ranges::sort(offers, [](const Offer& a, const Offer& b) {
        const auto order = a.winner.trial.key <=> b.winner.trial.key;
        return order != 0 ? order < 0 : rank(a) < rank(b);
    });
    std::vector<LoadedWinner> best;
    for (Offer& offer : offers) {
        if (!best.empty() && best.back().trial.key == offer.winner.trial.key) continue;
        best.push_back(std::move(offer.winner));
    }
    return best;
}

/// A bundle whose rows of this problem are damaged is left out, and says so.
std::vector<Trial> read_packaged(std::span<const PackagedBundle> bundles, std::string_view family,
                                 std::string_view static_fields, std::string& trouble) {
    std::vector<Trial> all;
    for (const PackagedBundle& bundle : bundles) {
        try {
            std::ranges::move(read_packaged_winners(lines_of(bundle, family, static_fields), bundle.name),
                              std::back_inserter(all));
        } catch (const std::exception& error) {
            if (trouble.empty()) trouble = fmt::format("packaged winners are left out: {}", error.what());
        }
    }
    return all;
}

std::tuple<std::string_view, std::string_view> static_key(const Trial& trial) {
    return {trial.key.family, trial.key.static_fields};
}

enum class Missing : std::uint8_t { is_fine, warns };

std::vector<Trial> read_file(const fs::path& file, Layer layer, Missing missing, const WarningSink& warn) {
    try {
        std::error_code ignored;
        if (missing == Missing::is_fine && !fs::exists(fs::symlink_status(file, ignored))) return {};
        std::int64_t damaged = 0;
        std::vector<Trial> winners = Cache::open(file, OpenMode::read_only).past_winners({}, &damaged);
        if (damaged > 0 && warn) {
            warn(fmt::format(
                "{} winners of the {} cache are damaged and left out: {}; hone cache verify with HONE_CACHE "
                "set to that file names them, hone tune measures them again",
                damaged, name(layer), file.string()));
        }
        return winners;
    } catch (const CacheError& error) {
        const char* set = layer == Layer::site ? "set HONE_SITE_CACHE to" : "set HONE_CACHE to";
        if (warn) {
            warn(fmt::format("the {} cache is left out: {}; {}", name(layer), error.what(),
                             hint_for_other(error, set)));
        }
    } catch (const std::exception& error) {
        if (warn) warn(fmt::format("the {} cache is left out: {}", name(layer), error.what()));
    }
    return {};
}

LayerPaths paths_or_warning(const WarningSink& warn) {
    return known_layer_paths([&](const CacheError& nowhere) {
        if (warn) warn(fmt::format("the user cache is left out: {}; {}", nowhere.what(), nowhere.hint()));
    });
}

}  // namespace

Trust trust_of(const Trial& trial, const GpuKey& gpu, const Toolchain& toolchain) {
    const GpuKey& measured_on = trial.key.gpu;
    if (measured_on.compute_major != gpu.compute_major || measured_on.compute_minor != gpu.compute_minor) {
        return Trust::unusable;
    }
    const Family* family = find_family(trial.key.family);
    if (family == nullptr || trial.status != TrialStatus::ok) return Trust::unusable;
    if (!parse_problem(*family, trial.key.static_fields + ' ' + trial.key.dynamic_fields))
        return Trust::unusable;
    const std::optional<Candidate> candidate = parse_candidate(*family, trial.candidate);
    if (!candidate) return Trust::unusable;
    if (template_hash(*candidate->variant) != trial.template_hash) return Trust::stale;
    if (measured_on != gpu) return Trust::foreign;
    return trial.toolchain == toolchain ? Trust::exact : Trust::compatible;
}

Winners::Winners(const std::optional<LayerPaths>& files, std::span<const PackagedBundle> packaged, GpuKey gpu,
                 Toolchain toolchain, const WarningSink& warn)
    : packaged_(packaged), gpu_(std::move(gpu)), toolchain_(std::move(toolchain)) {
    if (!files) return;
    if (files->site) site_ = read_file(*files->site, Layer::site, Missing::warns, warn);
    if (!files->user.empty()) user_ = read_file(files->user, Layer::user, Missing::is_fine, warn);
    for (std::vector<Trial>* trials : {&site_, &user_}) std::ranges::stable_sort(*trials, {}, static_key);
}

Winners::Winners(const std::optional<LayerPaths>& files, GpuKey gpu, Toolchain toolchain,
                 const WarningSink& warn)
    : Winners(files, packaged_layer(warn), std::move(gpu), std::move(toolchain), warn) {}

Winners::Winners(GpuKey gpu, Toolchain toolchain, const WarningSink& warn)
    : Winners(paths_or_warning(warn), std::move(gpu), std::move(toolchain), warn) {}

StaticWinners Winners::of(std::string_view family, std::string_view static_fields) const {
    StaticWinners found;
    std::vector<Offer> offers;
    const auto add = [&](std::span<const Trial> trials, Layer layer) {
        for (const Trial& trial : trials) {
            const Trust trust = trust_of(trial, gpu_, toolchain_);
            if (trust == Trust::unusable) continue;
            const std::size_t place = layer == Layer::packaged ? 0 : offers.size();
            offers.push_back({{trial, trust, std::string(name(layer))}, layer, place});
        }
    };
    const auto key = std::tuple(family, static_fields);
    add(read_packaged(packaged_, family, static_fields, found.trouble), Layer::packaged);
    add(std::ranges::equal_range(site_, key, {}, static_key), Layer::site);
    add(std::ranges::equal_range(user_, key, {}, static_key), Layer::user);
    found.winners = best_of_each_key(std::move(offers));
    return found;
}

}  // namespace hone::cache
