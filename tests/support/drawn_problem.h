// Problems of any family, drawn at random with sizes as models have them: most are valid, whatever rules join
// the family's fields.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

#include "kernel_templates/family.h"

namespace hone::test {

/// `Draw` is called with the smallest and the largest value that are wanted.
template <class Draw>
class ProblemDraw {
  public:
    explicit ProblemDraw(Draw draw) : draw_(std::move(draw)) {}

    /// Nothing when a thousand draws were all invalid.
    std::optional<Problem> problem(const Family& family) {
        for (int attempt = 0; attempt < 1000; ++attempt) {
            Problem problem{.family = &family, .values = {}};
            for (std::size_t i = 0; i < family.fields.size(); ++i) {
                const Field& field = family.fields[i];
                problem.values[i] = std::clamp(value(problem, field), field.min, field.max);
            }
            if (family.validate(problem).empty()) return problem;
        }
        return std::nullopt;
    }

  private:
    /// Fields before it are known.
    std::int64_t value(const Problem& problem, const Field& field) {
        if (field.kind == Field::Kind::choice) return draw_(field.min, field.max);
        if (field.name == "heads") return std::int64_t{1} << draw_(0, 6);
        if (field.name == "kv_heads")
            return std::max<std::int64_t>(1, known(problem, "heads") >> draw_(0, 3));
        if (field.name == "head_dim") return head_dim();
        if (field.name == "rotary_dim") return known(problem, "head_dim") / 2 / draw_(1, 2) * 2;
        if (field.name == "window") return known(problem, "causal") == 0 ? 0 : draw_(0, 1) * extent(field);
        if (field.name == "group") return draw_(0, 1) * (std::int64_t{32} << draw_(0, 2));
        if (field.name == "page_size") return draw_(0, 1) * (std::int64_t{1} << draw_(3, 7));
        if (field.name == "experts") return std::int64_t{1} << draw_(1, 9);
        if (field.name == "top_k")
            return draw_(1, draw_(0, 3) == 0 ? 32 : std::min<std::int64_t>(8, known(problem, "experts")));
        if (field.name == "q_tokens") return std::int64_t{1} << draw_(0, 4);
        return is_static(field) ? extent(field) : count(field);
    }

    static std::int64_t known(const Problem& problem, std::string_view name) {
        const int index = field_index(*problem.family, name);
        return index < 0 ? 0 : problem[static_cast<std::size_t>(index)];
    }

    std::int64_t head_dim() {
        constexpr std::array<std::int64_t, 6> usual{64, 96, 128, 128, 192, 256};
        if (draw_(0, 4) == 0) return 8 * draw_(1, 32) + draw_(0, 1);
        return usual[static_cast<std::size_t>(draw_(0, 5))];
    }

    /// Mostly multiples of a power of two, some odd.
    std::int64_t extent(const Field& field) {
        const std::int64_t high = std::min<std::int64_t>(field.max, 32768);
        const std::int64_t factor = draw_(1, 15);
        std::int64_t value = factor << draw_(4, 12);
        if (draw_(0, 4) == 0) value += 1;
        return std::clamp(value, field.min, high);
    }

    /// Rows or tokens of a call: often just a few, now and then as many as there may be.
    std::int64_t count(const Field& field) {
        if (draw_(0, 15) == 0) return field.max;
        return draw_(0, 2) == 0 ? draw_(field.min, std::min<std::int64_t>(8, field.max)) : extent(field);
    }

    Draw draw_;
};

/// The same problems of a family in every run. Empty when it has no valid ones.
inline std::vector<Problem> drawn_problems(const Family& family, int count) {
    std::seed_seq seed(family.name.begin(), family.name.end());
    std::mt19937_64 random(seed);
    ProblemDraw draw([&random](std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    });
    std::vector<Problem> problems;
    for (int i = 0; i < count; ++i) {
        if (const std::optional<Problem> problem = draw.problem(family)) problems.push_back(*problem);
    }
    return problems;
}

}  // namespace hone::test
