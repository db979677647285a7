// What the functions of all operators share: reading a caller's structs, prepare, explain, run. Internal to
// the C interface.
#pragma once

#include <array>
#include <string>

#include "runtime/c_api/handle.h"
#include "runtime/c_api/struct_size.h"
#include "runtime/dispatch/report_json.h"

namespace hone::c_api {

/// Throws Error (bad_argument): "dtype is 7; allowed: ...".
[[noreturn]] void refuse(const char* field, std::int64_t value, const char* allowed);
/// The same for a field that later versions may use.
void check_reserved(std::uint32_t given);
[[nodiscard]] Dtype dtype_from(std::int32_t given);
[[nodiscard]] Activation activation_from(std::int32_t given);
[[nodiscard]] QuantFormat format_from(std::int32_t given);
[[nodiscard]] bool flag_from(const char* field, std::int32_t given);

/// A description that the caller gives, as what Runtime::prepare() takes: `describe` makes one of the other.
template <class Description, class Describe>
hone_status prepare(hone_runtime* runtime, const Description* given, hone_operator** op, const char* where,
                    Describe&& describe) noexcept {
    if (given == nullptr) return fail(HONE_NULL_POINTER);
    Description known{};
    if (!read_struct(*given, known)) return fail(HONE_BAD_STRUCT);
    return prepare_into(runtime, op, where, [&](Runtime& maker) { return maker.prepare(describe(known)); });
}

/// Where the text of hone_*_explain() goes.
struct TextOut {
    hone_text_format format = HONE_TEXT;
    char* text = nullptr;
    std::size_t capacity = 0;
    std::size_t* length = nullptr;
};

/// Of one part: its report or explanation. Of two: both, one after the other, or {"first": ..., "second":
/// ...}.
template <class Told>
[[nodiscard]] std::string text_of(const Told& told, hone_text_format format) {
    return runtime::to_text(told, format == HONE_JSON);
}
template <class Told>
[[nodiscard]] std::string text_of(const Told& first, const Told& second, hone_text_format format) {
    if (format != HONE_JSON) return to_string(first) + to_string(second);
    return R"({"first":)" + text_of(first, format) + R"(,"second":)" + text_of(second, format) + "}";
}
[[nodiscard]] inline std::string text_of(const std::array<Explanation, 2>& told, hone_text_format format) {
    return text_of(told[0], told[1], format);
}

/// `size`: rows, or the sizes of an operator that has several.
template <class Description, class Size, class Describe>
hone_status explain(const hone_runtime* runtime, const Description* given, Size size, TextOut out,
                    const char* where, Describe&& describe) noexcept {
    if (const hone_status status = check_handle(runtime); status != HONE_OK) return status;
    if (given == nullptr) return fail(HONE_NULL_POINTER);
    Description known{};
    if (!read_struct(*given, known)) return fail(HONE_BAD_STRUCT);
    return guarded(where, [&] {
        const auto explanation = runtime->runtime->explain(describe(known), size);
        return hand_out(text_of(explanation, out.format), out.text, out.capacity, out.length);
    });
}

[[nodiscard]] hone_status status_of(const hone_operator& op, Status status) noexcept;

/// Runs an operator that has to be a Kernel.
template <class Kernel, class Args, class Size>
hone_status run_as(const hone_operator& op, void* stream, const Args& args, Size size) noexcept {
    const auto* kernel = std::get_if<Kernel>(&op.kernel);
    if (kernel == nullptr) return fail(HONE_BAD_HANDLE);
    return status_of(op, kernel->run(static_cast<CUstream_st*>(stream), args, size));
}

/// `run` gets the arguments that a caller gives; `known` holds the defaults.
template <class Args, class Run>
hone_status run_given(const hone_operator* op, const Args* args, Args known, Run&& run) noexcept {
    if (const hone_status status = check_handle(op); status != HONE_OK) return status;
    if (args == nullptr) return fail(HONE_NULL_POINTER);
    if (args->struct_size == sizeof(Args)) return run(*args);
    return read_struct(*args, known) ? run(known) : fail(HONE_BAD_STRUCT);
}

}  // namespace hone::c_api
