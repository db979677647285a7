// What the functions of all operators share: reading a caller's structs, prepare, explain, run. Internal to
// the C interface.
#pragma once

#include <array>
#include <string>

#include "runtime/c_api/conversions.h"
#include "runtime/c_api/handle.h"
#include "runtime/c_api/struct_size.h"
#include "runtime/dispatch/report_json.h"

namespace hone::c_api {

/// Throws Error (bad_argument): "dtype is 7; allowed: ...".
[[noreturn]] void refuse(const char* field, std::int64_t value, const char* allowed);
/// The same for a field that later versions may use.
void check_reserved(std::uint32_t given);
/// C may pass any value, which C++ must not read as one of the enumeration.
void check_format(const hone_text_format& given);

/// hone_*_init(): the caller's struct, of `size` bytes, gets the defaults.
template <class Struct>
hone_status initialize(Struct* out, std::size_t size, const Struct& defaults,
                       std::size_t smallest = sizeof(Struct)) noexcept {
    if (out == nullptr) return fail(HONE_NULL_POINTER, "the struct is NULL");
    return write_defaults(*out, size, defaults, smallest) ? HONE_OK : fail(HONE_BAD_STRUCT);
}

template <class Description>
hone_status prepare(hone_runtime* runtime, const Description* given, hone_operator** op,
                    const char* where) noexcept {
    if (op != nullptr) *op = nullptr;  // whatever is wrong
    if (given == nullptr) return fail(HONE_NULL_POINTER, "description is NULL");
    Description known{};
    if (!read_struct(*given, known)) return fail(HONE_BAD_STRUCT);
    return prepare_into(runtime, op, where, [&](Runtime& maker) { return maker.prepare(from_c(known)); });
}

/// Where the text of hone_*_explain() goes.
struct TextOut {
    const hone_text_format& format;  ///< not read before check_format()
    char* text = nullptr;
    std::size_t capacity = 0;
    std::size_t* length = nullptr;
};

/// What is told of each part: one text after the other, or {"parts": [...]}.
template <class Parts>
[[nodiscard]] std::string text_of_parts(const Parts& parts, hone_text_format format) {
    std::string text;
    for (const auto& part : parts) {
        if (format == HONE_JSON) text += text.empty() ? R"({"parts":[)" : ",";
        text += runtime::to_text(part, format == HONE_JSON);
    }
    return format == HONE_JSON ? text + "]}" : text;
}
[[nodiscard]] inline std::string text_of(const Explanation& told, hone_text_format format) {
    return runtime::to_text(told, format == HONE_JSON);
}
[[nodiscard]] inline std::string text_of(const std::array<Explanation, 2>& told, hone_text_format format) {
    return text_of_parts(told, format);
}

/// `size`: rows, or the sizes of an operator that has several.
template <class Description, class Size>
hone_status explain(const hone_runtime* runtime, const Description* given, Size size, TextOut out,
                    const char* where) noexcept {
    if (const hone_status status = check_handle(runtime); status != HONE_OK) return status;
    if (given == nullptr) return fail(HONE_NULL_POINTER, "description is NULL");
    Description known{};
    if (!read_struct(*given, known)) return fail(HONE_BAD_STRUCT);
    return guarded(where, [&] {
        check_format(out.format);
        const auto explanation = runtime->runtime->explain(from_c(known), size);
        return hand_out(text_of(explanation, out.format), out.text, out.capacity, out.length);
    });
}

/// What is told of a call that run() refused.
template <class Kernel, class Args, class Size>
[[nodiscard]] hone_status refused(const hone_operator& op, const Kernel& kernel, Status status,
                                  const Args& args, Size size) noexcept {
    return guarded("run", [&] {
        const bool by_driver = status == Status::launch_failed;
        return fail(to_c(status), by_driver ? op.runtime->last_launch_error() : kernel.refusal(args, size));
    });
}

/// Runs an operator that has to be a Kernel with a whole struct of arguments.
template <class Kernel, class Args, class Size>
hone_status run_as(const hone_operator& op, void* stream, const Args& given, Size size) noexcept {
    const Kernel* const kernel = kernel_of<Kernel>(op);
    if (kernel == nullptr) return fail(HONE_BAD_HANDLE);
    if constexpr (requires { given.reserved; }) {
        if (given.reserved != 0) return fail(HONE_BAD_STRUCT);
    }
    const auto args = from_c(given);
    const Status status = kernel->run(static_cast<CUstream_st*>(stream), args, size);
    return status == Status::ok ? HONE_OK : refused(op, *kernel, status, args, size);
}

/// The same with the arguments that a caller gives; `known` holds the defaults.
template <class Kernel, class Args, class Size>
hone_status run(const hone_operator* op, void* stream, const Args* args, Args known, Size size) noexcept {
    if (const hone_status status = check_handle(op); status != HONE_OK) return status;
    if (args == nullptr) return fail(HONE_NULL_POINTER, "args is NULL");
    if (args->struct_size == sizeof(Args)) return run_as<Kernel>(*op, stream, *args, size);
    return read_struct(*args, known) ? run_as<Kernel>(*op, stream, known, size) : fail(HONE_BAD_STRUCT);
}

/// Bytes that a call of an operator with several sizes needs.
template <class Kernel, class Size>
hone_status workspace(const hone_operator* op, Size size, std::size_t* bytes, const char* where) noexcept {
    if (bytes == nullptr) return fail(HONE_NULL_POINTER, "bytes is NULL");
    *bytes = 0;
    if (const hone_status status = check_handle(op); status != HONE_OK) return status;
    const Kernel* const kernel = kernel_of<Kernel>(*op);
    if (kernel == nullptr) return fail(HONE_BAD_HANDLE);
    return guarded(where, [&] {
        *bytes = static_cast<std::size_t>(kernel->workspace_bytes(size));
        return HONE_OK;
    });
}

}  // namespace hone::c_api
