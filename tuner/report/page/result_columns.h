// Winners and trials as columns of numbers that point into lists of texts, each of which stands once: what a
// page of some megabytes carries of 100,000 trials. tuner/report/page/web/results.js reads them. One thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tuner/report/page/stored_trial.h"
#include "tuner/report/report_json.h"

namespace hone::tuner {

/// Texts in the order in which they first appear.
class TextList {
  public:
    std::size_t index_of(const std::string& text);
    /// The place of a text that is known.
    [[nodiscard]] std::optional<std::size_t> find(const std::string& text) const;
    [[nodiscard]] std::size_t size() const { return places_.size(); }
    [[nodiscard]] Json json() const;

  private:
    std::map<std::string, std::size_t> places_;
    std::vector<const std::string*> texts_;  ///< keys of places_, which stay where they are
};

class ResultColumns {
  public:
    using TraitsOf = std::function<std::optional<DeviceTraits>(const cache::GpuKey&)>;

    /// `traits_of`: what is known of a GPU beyond its key, for the rooflines.
    explicit ResultColumns(TraitsOf traits_of);

    /// `trust`: on the GPU here, empty where there is none. Winners keep their times as they are.
    void add_winner(const StoredTrial& stored, const std::string& trust);
    /// In the order in which they were stored. Times are rounded to five digits.
    void add_trial(const StoredTrial& stored);
    /// The place of a problem among those of results().
    std::size_t problem(const std::string& family, const std::string& static_fields,
                        const std::string& dynamic_fields);

    /// Without a member for the trials.
    [[nodiscard]] Json results() const;
    [[nodiscard]] Json trials() const;
    [[nodiscard]] std::size_t winner_count() const { return winners_["problem"].size(); }
    [[nodiscard]] std::size_t trial_count() const { return trials_["problem"].size(); }
    [[nodiscard]] std::size_t gpu_count() const { return gpus_.size(); }

  private:
    std::size_t gpu(const cache::GpuKey& key);
    std::size_t candidate(const std::string& text);
    std::size_t detail(const std::string& text);
    void add_key(Json& columns, const StoredTrial& stored);

    TraitsOf traits_of_;
    std::vector<cache::GpuKey> gpus_;
    Json gpu_list_ = Json::array();
    TextList families_;
    TextList statics_;
    TextList dynamics_;
    std::map<std::array<std::size_t, 3>, std::size_t> problem_places_;
    Json problems_;
    TextList toolchains_;
    TextList layers_;
    TextList trusts_;
    TextList candidates_;        ///< of winners
    TextList trial_candidates_;  ///< of trials that are no winner's
    TextList details_;
    Json winners_;
    Json trials_;
    std::int64_t last_created_at_ = 0;
};

}  // namespace hone::tuner
