#include <cstddef>

#include "runtime/c_api/operator.h"

namespace hone::c_api {
namespace {

/// What a caller has that was built before there were captures.
constexpr std::size_t options_without_capture = offsetof(hone_runtime_options, capture_file);

RuntimeOptions options_from(const hone_runtime_options& given) {
    constexpr std::uint32_t known_flags = HONE_NO_CACHE | HONE_NO_COMPILE | HONE_CHECK_INDICES;
    if ((given.flags & ~known_flags) != 0 || given.reserved != 0) {
        throw Error(
            "flags is " + std::to_string(given.flags) + ", reserved is " + std::to_string(given.reserved),
            "hone_runtime_create",
            "allowed flags: HONE_NO_CACHE, HONE_NO_COMPILE, HONE_CHECK_INDICES; reserved must be 0",
            ErrorKind::bad_argument);
    }
    RuntimeOptions options{.device = given.device,
                           .use_cache = (given.flags & HONE_NO_CACHE) == 0,
                           .allow_compile = (given.flags & HONE_NO_COMPILE) == 0,
                           .check_indices = (given.flags & HONE_CHECK_INDICES) != 0};
    if (given.cache_file != nullptr) options.cache_file = given.cache_file;
    if (given.capture_file != nullptr) options.capture_file = given.capture_file;
    if (given.on_warning != nullptr) {
        options.on_warning = [call = given.on_warning, user = given.user](std::string_view text) {
            call(user, std::string(text).c_str());
        };
    }
    return options;
}

}  // namespace

}  // namespace hone::c_api

using namespace hone::c_api;

const char* hone_version(void) {
    static const std::string text(hone::version());
    return text.c_str();
}

hone_status hone_runtime_options_init(hone_runtime_options* options, size_t struct_size) {
    constexpr hone_runtime_options defaults = HONE_RUNTIME_OPTIONS_INIT;
    return initialize(options, struct_size, defaults, options_without_capture);
}

hone_status hone_counters_init(hone_counters* counters, size_t struct_size) {
    constexpr hone_counters defaults = HONE_COUNTERS_INIT;
    return initialize(counters, struct_size, defaults);
}

hone_status hone_runtime_create(const hone_runtime_options* options, hone_runtime** runtime) {
    if (runtime == nullptr) return fail(HONE_NULL_POINTER, "runtime is NULL");
    *runtime = nullptr;
    hone_runtime_options known = HONE_RUNTIME_OPTIONS_INIT;
    if (options != nullptr && !read_struct(*options, known, options_without_capture))
        return fail(HONE_BAD_STRUCT);
    return guarded("hone_runtime_create", [&] {
        *runtime = new hone_runtime(options_from(known));
        return HONE_OK;
    });
}

void hone_runtime_destroy(hone_runtime* runtime) { destroy(runtime); }

hone_status hone_runtime_freeze(hone_runtime* runtime) {
    if (const hone_status status = check_handle(runtime); status != HONE_OK) return status;
    return guarded("hone_runtime_freeze", [&] {
        runtime->runtime->freeze();
        return HONE_OK;
    });
}

const char* hone_runtime_device_name(const hone_runtime* runtime) {
    return check_handle(runtime) == HONE_OK ? runtime->device_name.c_str() : nullptr;
}

hone_status hone_runtime_counters(const hone_runtime* runtime, hone_counters* counters) {
    if (const hone_status status = check_handle(runtime); status != HONE_OK) return status;
    if (counters == nullptr) return fail(HONE_NULL_POINTER, "counters is NULL");
    // Written, not read: what a later header has beyond these fields is left as it is.
    if (counters->struct_size < sizeof(hone_counters)) return fail(HONE_BAD_STRUCT);
    return guarded("hone_runtime_counters", [&] {
        const hone::Counters now = runtime->runtime->counters();
        *counters = {.struct_size = counters->struct_size,
                     .reserved = 0,
                     .runs_exact = now.runs_exact,
                     .runs_neighbour = now.runs_neighbour,
                     .runs_foreign = now.runs_foreign,
                     .runs_fallback = now.runs_fallback,
                     .failed_launches = now.failed_launches,
                     .prepares = now.prepares,
                     .compiles = now.compiles,
                     .image_cache_hits = now.image_cache_hits};
        return HONE_OK;
    });
}

void hone_operator_destroy(hone_operator* op) { destroy(op); }

hone_status hone_operator_report(const hone_operator* op, hone_text_format format, char* text,
                                 size_t capacity, size_t* length) {
    if (const hone_status status = check_handle(op); status != HONE_OK) return status;
    return guarded("hone_operator_report", [&] {
        check_format(format);
        return hand_out(text_of_parts(op->reports(), format), text, capacity, length);
    });
}

hone_status hone_operator_workspace(const hone_operator* op, int64_t rows, size_t* bytes) {
    if (bytes == nullptr) return fail(HONE_NULL_POINTER, "bytes is NULL");
    *bytes = 0;
    if (const hone_status status = check_handle(op); status != HONE_OK) return status;
    return guarded("hone_operator_workspace", [&] {
        const std::optional<std::int64_t> needed = op->workspace_bytes(rows);
        if (!needed) return fail(HONE_BAD_HANDLE);
        *bytes = static_cast<std::size_t>(*needed);
        return HONE_OK;
    });
}
