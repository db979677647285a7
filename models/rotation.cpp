#include "models/rotation.h"

#include <fmt/format.h>

#include <cmath>

#include "models/error.h"
#include "runtime/operators/rope_scaling.h"

namespace hone::models {
namespace {

using Kind = RopeScaling::Kind;

class Reader {
  public:
    explicit Reader(const ModelDocument& document) : document_(document) {}

    RotationNumbers numbers() const {
        RotationNumbers numbers;
        constexpr std::string_view bases[] = {"rope_parameters.rope_theta", "rope_theta", "rotary_emb_base",
                                              "rope_base"};
        numbers.base = number(bases).value_or(numbers.base);
        if (!(numbers.base > 1)) fail(bases, "above 1");
        numbers.scaling.kind = kind();
        if (numbers.scaling.kind != Kind::none) {
            read_factors(numbers.scaling);
            check(numbers.scaling);
        }
        return numbers;
    }

  private:
    using Spellings = std::span<const std::string_view>;

    std::optional<double> number(Spellings spellings) const {
        const ModelDocument::Entry* entry = document_.find(spellings);
        if (entry == nullptr) return std::nullopt;
        if (const auto* whole = std::get_if<std::int64_t>(&entry->value)) return static_cast<double>(*whole);
        const auto* value = std::get_if<double>(&entry->value);
        if (value == nullptr || !std::isfinite(*value)) fail(spellings, "a finite number");
        return *value;
    }

    /// A member of the scaling, wherever that stands.
    std::optional<double> member(std::string_view name) const {
        const std::string in_parameters = fmt::format("rope_parameters.{}", name);
        const std::string in_scaling = fmt::format("rope_scaling.{}", name);
        const std::string_view spellings[] = {in_parameters, in_scaling};
        return number(spellings);
    }

    double positive(std::string_view name, std::optional<double> otherwise) const {
        const std::optional<double> value = member(name);
        if (!value && otherwise) return *otherwise;
        if (value && *value > 0) return *value;
        throw ModelError(fmt::format("{}: the scaling of rotary embeddings needs {}, a number above 0",
                                     document_.file_name(), name));
    }

    Kind kind() const {
        constexpr std::string_view spellings[] = {"rope_parameters.rope_type", "rope_parameters.type",
                                                  "rope_scaling.rope_type", "rope_scaling.type"};
        for (const std::string_view name : {"rope_parameters", "rope_scaling"}) {
            const ModelDocument::Entry* whole = document_.find(Spellings(&name, 1));
            if (whole != nullptr && !std::holds_alternative<ModelDocument::Object>(whole->value))
                fail(Spellings(&name, 1), "an object, or null");
        }
        const ModelDocument::Entry* entry = document_.find(spellings);
        if (entry == nullptr) return Kind::none;
        const auto* word = std::get_if<std::string>(&entry->value);
        if (word == nullptr) fail(spellings, "a word");
        if (*word == "default") return Kind::none;
        if (*word == "linear") return Kind::linear;
        if (*word == "llama3") return Kind::llama3;
        if (*word == "yarn") return Kind::yarn;
        fail(spellings, "default, linear, llama3 or yarn");
    }

    /// What is left out has the value that transformers takes.
    void read_factors(RopeScaling& scaling) const {
        scaling.factor = positive("factor", {});
        if (scaling.kind == Kind::linear) return;
        const std::string_view longest[] = {"original_max_position_embeddings", "max_position_embeddings"};
        scaling.original_max_position = positive("original_max_position_embeddings", number(longest));
        if (scaling.kind == Kind::llama3) {
            scaling.low_freq_factor = positive("low_freq_factor", {});
            scaling.high_freq_factor = positive("high_freq_factor", {});
            return;
        }
        scaling.beta_fast = positive("beta_fast", 32);
        scaling.beta_slow = positive("beta_slow", 1);
        scaling.attention_factor = member("attention_factor").value_or(0);
        if (member("mscale") || member("mscale_all_dim"))
            throw ModelError(fmt::format("{}: mscale of yarn is not computed; allowed is attention_factor",
                                         document_.file_name()));
    }

    /// What no table of angles can be made of.
    void check(const RopeScaling& scaling) const {
        const std::optional<runtime::WrongScaling> wrong = runtime::wrong_scaling(scaling);
        if (!wrong) return;
        const bool is_position = wrong->name == "original_max_position";
        throw ModelError(fmt::format(
            "{}: the scaling of rotary embeddings has {} {}; allowed is {}", document_.file_name(),
            is_position ? "original_max_position_embeddings" : wrong->name, wrong->value, wrong->allowed));
    }

    [[noreturn]] void fail(Spellings spellings, std::string_view allowed) const {
        const ModelDocument::Entry& entry = *document_.find(spellings);
        throw ModelError(fmt::format("{}{} is {}; allowed is {}", document_.place(entry), entry.key,
                                     shown(entry.value), allowed));
    }

    const ModelDocument& document_;
};

}  // namespace

RotationNumbers rotation_numbers(const ModelDocument& document) { return Reader(document).numbers(); }

}  // namespace hone::models
