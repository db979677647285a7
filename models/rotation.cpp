#include "models/rotation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "models/architecture.h"
#include "models/error.h"
#include "runtime/operators/rope_scaling.h"

namespace hone::models {
namespace {

using Kind = RopeScaling::Kind;
using Names = std::vector<std::string>;

/// Of a value or an element of a list; nothing: it is no number.
template <class Variant>
std::optional<double> as_number(const Variant& from) {
    if (const auto* whole = std::get_if<std::int64_t>(&from)) return static_cast<double>(*whole);
    const auto* value = std::get_if<double>(&from);
    return value == nullptr ? std::nullopt : std::optional(*value);
}

class Reader {
  public:
    /// `objects`: where numbers of the scaling may stand, the nearest first.
    Reader(const ModelDocument& document, const Model& model, Names objects)
        : document_(document), model_(model), objects_(std::move(objects)) {}

    /// Nothing: the file does not say it.
    std::optional<double> base(std::span<const std::string_view> at_top) const {
        Names names = members("rope_theta");
        names.insert(names.end(), at_top.begin(), at_top.end());
        const std::optional<double> base = number(names);
        if (base && !(*base > 1)) fail(names, "above 1");
        return base;
    }

    RopeScaling scaling() const {
        RopeScaling scaling;
        scaling.kind = kind();
        if (scaling.kind == Kind::none) return scaling;
        read_factors(scaling);
        check(scaling);
        return scaling;
    }

  private:
    Names members(std::string_view name) const {
        Names names;
        for (const std::string& object : objects_) names.push_back(fmt::format("{}.{}", object, name));
        return names;
    }

    const ModelDocument::Entry* find(const Names& names) const {
        return document_.find(std::vector<std::string_view>(names.begin(), names.end()));
    }

    std::optional<double> number(const Names& names) const {
        const ModelDocument::Entry* entry = find(names);
        if (entry == nullptr) return std::nullopt;
        const std::optional<double> value = as_number(entry->value);
        if (!value || !std::isfinite(*value)) fail(names, "a finite number");
        return value;
    }
    std::optional<double> member(std::string_view name) const { return number(members(name)); }

    double positive(std::string_view name, std::optional<double> otherwise) const {
        const std::optional<double> value = member(name);
        if (!value && otherwise) return *otherwise;
        if (value && *value > 0) return *value;
        throw ModelError(fmt::format("{}: the scaling of rotary embeddings needs {}, a number above 0",
                                     document_.file_name(), name));
    }

    std::optional<bool> flag(std::string_view name) const {
        const Names names = members(name);
        const ModelDocument::Entry* entry = find(names);
        if (entry == nullptr) return std::nullopt;
        const auto* value = std::get_if<bool>(&entry->value);
        if (value == nullptr) fail(names, "true and false");
        return *value;
    }

    /// One number a pair.
    std::vector<double> factors(std::string_view name) const {
        const Names names = members(name);
        const ModelDocument::Entry* entry = find(names);
        if (entry == nullptr)
            throw ModelError(
                fmt::format("{}: the scaling of rotary embeddings needs {}, a list of {} numbers",
                            document_.file_name(), name, model_.rotary_dim / 2));
        const auto* list = std::get_if<ModelDocument::List>(&entry->value);
        if (list == nullptr) fail(names, "a list of numbers");
        std::vector<double> all;
        for (const ModelDocument::Scalar& one : *list) {
            const std::optional<double> factor = as_number(one);
            if (!factor) fail(names, "a list of numbers");
            all.push_back(*factor);
        }
        return all;
    }

    Kind kind() const {
        for (const std::string& object : objects_) {
            const ModelDocument::Entry* whole = find({object});
            if (whole != nullptr && !std::holds_alternative<ModelDocument::Object>(whole->value))
                fail({object}, "an object, or null");
        }
        Names names;
        for (const std::string& object : objects_) {
            names.push_back(object + ".rope_type");
            names.push_back(object + ".type");
        }
        const ModelDocument::Entry* entry = find(names);
        if (entry == nullptr) return Kind::none;
        const auto* word = std::get_if<std::string>(&entry->value);
        if (word == nullptr) fail(names, "a word");
        // That one stretches frequencies beyond the positions that a model has alone.
        if (*word == "default" || *word == "dynamic") return Kind::none;
        if (*word == "linear") return Kind::linear;
        if (*word == "llama3") return Kind::llama3;
        if (*word == "yarn") return Kind::yarn;
        if (*word == "longrope" || *word == "su") return Kind::longrope;
        fail(names, "default, dynamic, linear, llama3, yarn or longrope");
    }

    /// What is left out has the value that transformers takes.
    void read_factors(RopeScaling& scaling) const {
        if (scaling.kind == Kind::longrope) return read_longrope(scaling);
        scaling.factor = positive("factor", {});
        if (scaling.kind == Kind::linear) return;
        scaling.original_max_position =
            positive("original_max_position_embeddings",
                     number({"original_max_position_embeddings", "max_position_embeddings"}));
        if (scaling.kind == Kind::llama3) {
            scaling.low_freq_factor = positive("low_freq_factor", {});
            scaling.high_freq_factor = positive("high_freq_factor", {});
            return;
        }
        scaling.beta_fast = positive("beta_fast", 32);
        scaling.beta_slow = positive("beta_slow", 1);
        scaling.whole_ends = flag("truncate").value_or(true);
        scaling.attention_factor = member("attention_factor").value_or(0);
        if (member("mscale") || member("mscale_all_dim"))
            throw ModelError(fmt::format("{}: mscale of yarn is not computed; allowed is attention_factor",
                                         document_.file_name()));
    }

    /// The factor is that of both lengths, unless only one of them is known.
    void read_longrope(RopeScaling& scaling) const {
        scaling.original_max_position =
            positive("original_max_position_embeddings", number({"original_max_position_embeddings"}));
        const std::optional<double> longest = number({"max_position_embeddings"});
        scaling.factor = std::max(positive("factor", longest.value_or(scaling.original_max_position) /
                                                         scaling.original_max_position),
                                  1.0);
        scaling.attention_factor = member("attention_factor").value_or(0);
        scaling.short_factors = factors("short_factor");
        scaling.long_factors = factors("long_factor");
    }

    /// What no table of angles can be made of.
    void check(const RopeScaling& scaling) const {
        const std::optional<runtime::WrongScaling> wrong = runtime::wrong_scaling(scaling, model_.rotary_dim);
        if (!wrong) return;
        throw ModelError(fmt::format("{}: the scaling of rotary embeddings has {} {}; allowed is {}",
                                     document_.file_name(), name_in_files(wrong->name), wrong->value,
                                     wrong->allowed));
    }
    static std::string_view name_in_files(std::string_view name) {
        if (name == "original_max_position") return "original_max_position_embeddings";
        if (name == "short_factors") return "short_factor";
        return name == "long_factors" ? "long_factor" : name;
    }

    [[noreturn]] void fail(const Names& names, std::string_view allowed) const {
        const ModelDocument::Entry& entry = *find(names);
        throw ModelError(fmt::format("{}{} is {}; allowed is {}", document_.place(entry), entry.key,
                                     shown(entry.value), allowed));
    }

    const ModelDocument& document_;
    const Model& model_;
    Names objects_;
};

/// A file without model_type turns as Llama's do.
const Rotation& rotation_of(const Model& model) {
    static const Rotation usual;
    const Architecture* found = find_architecture(model.architecture);
    return found == nullptr ? usual : found->rotation;
}

}  // namespace

Rotations read_rotations(const ModelDocument& document, const Model& model) {
    const Rotation& rotation = rotation_of(model);
    constexpr std::string_view bases[] = {"rope_theta", "rotary_emb_base", "rope_base"};
    const Reader full(document, model, {"rope_parameters.full_attention", "rope_parameters", "rope_scaling"});
    Rotations rotations;
    rotations.full = {full.base(bases).value_or(rotation.base), full.scaling()};
    rotations.windowed = rotations.full;
    if (!rotation.apart_in_windows) return rotations;
    constexpr std::string_view object = "rope_parameters.sliding_attention";
    const Reader windowed(document, model, {std::string(object)});
    const NumberKey& base = rotation.window_base;
    const double otherwise = base.otherwise > 0 ? base.otherwise : rotations.full.base;
    rotations.windowed = {windowed.base(base.keys).value_or(otherwise), windowed.scaling()};
    return rotations;
}

}  // namespace hone::models
