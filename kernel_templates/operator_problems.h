// Which of many problems are a public operator's, where several operators share a family: what `--op
// FusedFfn` means in a model, and `hone list FusedFfn` among stored results. Pure values; not safe for
// several threads.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel_templates/names.h"

namespace hone {

/// Of an operator of halves the first ones are told by their fields. A second half is a plain product like
/// any other: it is one of the operator's when consider() has seen a first half that it goes with, from whose
/// width it leads back.
class OperatorProblems {
  public:
    /// An operator's or a family's name; nothing is contained for a name that is none.
    explicit OperatorProblems(std::string_view name);

    void consider(std::string_view family, std::string_view static_fields);
    [[nodiscard]] bool contains(std::string_view family, std::string_view static_fields) const;

    /// Why one problem that a person has written out is none of this operator's; empty where it may be one.
    [[nodiscard]] std::string refusal(const Problem& problem) const;

  private:
    [[nodiscard]] bool has_family(std::string_view family) const;
    [[nodiscard]] bool is_told_by_fields(std::string_view static_fields) const;

    std::vector<const Family*> families_;
    const OperatorName* operator_ = nullptr;  ///< nullptr: all of the families' problems
    std::set<std::pair<std::string, std::string>, std::less<>> second_halves_;  ///< families with fields
};

}  // namespace hone
