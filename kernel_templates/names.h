// The names that people use: public operators, with the families whose kernels they launch, and what
// frameworks call element types. Called where a person's words are read; what is stored and what is printed
// as a problem has the families' and dtypes' own names, which parse_problem takes. Pure functions over
// constant data.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel_templates/family.h"

namespace hone {

/// A public operator as C++ and Python name it.
struct OperatorName {
    std::string_view title;                      ///< "FusedFfn"
    std::span<const std::string_view> families;  ///< "linear"
    /// Where operators share a family: one of these holds for the problems that are meant by this one,
    /// "gated=no", "activation!=none". Empty: all of the families' are.
    std::span<const std::string_view> problems{};
    bool halves = false;  ///< two problems that run one after the other; `problems` says the first
};
/// Another name of an element type: "bfloat16" is "bf16".
struct DtypeSynonym {
    std::string_view text;
    std::string_view dtype;
};

/// Generated from the declarations, sorted by title.
[[nodiscard]] std::span<const OperatorName> operator_names();
[[nodiscard]] std::span<const DtypeSynonym> dtype_synonyms();

/// The operator of that name; case and underscores do not count. nullptr for none, and for the very name of a
/// family, which means all of it: "Linear" is an operator, "linear" the family that it shares with FusedFfn.
[[nodiscard]] const OperatorName* find_operator(std::string_view name);
/// The families that an operator's or a family's name stands for; case and underscores do not count, so that
/// C's and PyTorch's spellings are found, too. Empty when there is none of that name.
[[nodiscard]] std::vector<const Family*> families_named(std::string_view name);
/// "no operator 'Attentoin' (did you mean 'Attention'?): this build has Attention (attention_decode,
/// attention_prefill), ...".
[[nodiscard]] std::string no_operator(std::string_view name);

/// "fp32", "fp16" or "bf16" for that in any case, or for a synonym; else the text as it is.
[[nodiscard]] std::string dtype_word(std::string_view text);
/// The fields with choices as the family spells them: "dtype=BF16" becomes "dtype=bf16"; what is not
/// understood stays as it is, for parse_problem to refuse.
[[nodiscard]] std::string spelled_fields(const Family& family, std::string_view fields);

/// parse_problem for what a person wrote: operators' names, choices in any case. An operator of several
/// families is the one whose fields these are.
[[nodiscard]] std::optional<Problem> read_problem(std::string_view text, std::string* error = nullptr);

}  // namespace hone
