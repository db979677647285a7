// What the opaque handles hold. A handle remembers how many forks its process had seen: in a child that
// inherited it the count is another, and nothing of CUDA may be touched there. Internal to the C interface.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hone/hone.h"
#include "runtime/c_api/guard.h"
#include "runtime/hone.h"

namespace hone::c_api {

/// Forks between the process that first loaded the library and this one. Reading it is no system call.
[[nodiscard]] std::uint32_t forks_seen() noexcept;

}  // namespace hone::c_api

struct hone_runtime {
    explicit hone_runtime(hone::RuntimeOptions options)
        : runtime(std::make_shared<hone::Runtime>(std::move(options))), device_name(runtime->device_name()) {}

    std::shared_ptr<hone::Runtime> runtime;
    std::string device_name;
    std::uint32_t born = hone::c_api::forks_seen();
};

struct hone_operator {
    hone_operator(const void* kind_, std::shared_ptr<hone::Runtime> runtime_)
        : kind(kind_), runtime(std::move(runtime_)) {}
    hone_operator(const hone_operator&) = delete;
    hone_operator& operator=(const hone_operator&) = delete;
    virtual ~hone_operator() = default;

    [[nodiscard]] virtual std::vector<hone::PrepareReport> reports() const = 0;
    /// Bytes for a call of up to `rows` rows; nothing: calls of this operator have several sizes.
    [[nodiscard]] virtual std::optional<std::int64_t> workspace_bytes(std::int64_t rows) const = 0;

    const void* kind;                        ///< &kind_of<Kernel>
    std::shared_ptr<hone::Runtime> runtime;  ///< knows why a launch failed
    std::uint32_t born = hone::c_api::forks_seen();
};

namespace hone::c_api {

/// Its address tells handles of a Kernel from others.
template <class Kernel>
inline constexpr char kind_of = 0;

template <class Kernel>
struct OperatorOf final : hone_operator {
    OperatorOf(Kernel kernel_, std::shared_ptr<Runtime> runtime_)
        : hone_operator(&kind_of<Kernel>, std::move(runtime_)), kernel(std::move(kernel_)) {}

    [[nodiscard]] std::vector<PrepareReport> reports() const override { return kernel.reports(); }
    [[nodiscard]] std::optional<std::int64_t> workspace_bytes(std::int64_t rows) const override {
        if constexpr (requires { kernel.workspace_bytes(rows); }) return kernel.workspace_bytes(rows);
        return std::nullopt;
    }

    Kernel kernel;
};

/// The kernel object of a handle, or nullptr when it is another operator's.
template <class Kernel>
[[nodiscard]] const Kernel* kernel_of(const hone_operator& op) noexcept {
    return op.kind == &kind_of<Kernel> ? &static_cast<const OperatorOf<Kernel>&>(op).kernel : nullptr;
}

}  // namespace hone::c_api

namespace hone::c_api {

/// HONE_OK, or why a handle cannot be used.
template <class Handle>
[[nodiscard]] hone_status check_handle(const Handle* handle) noexcept {
    if (handle == nullptr) return fail(HONE_BAD_HANDLE);
    return handle->born == forks_seen() ? HONE_OK : fail(HONE_FORKED);
}

/// Frees what this process made. What it inherited over fork() is left alone: its destructors would call a
/// driver that does not work there.
template <class Handle>
void destroy(Handle* handle) noexcept {
    if (handle != nullptr && handle->born == forks_seen()) delete handle;
}

/// Makes a handle for what `prepare` returns.
template <class Prepare>
hone_status prepare_into(hone_runtime* runtime, hone_operator** op, const char* where,
                         Prepare&& prepare) noexcept {
    if (op == nullptr) return fail(HONE_NULL_POINTER, "op is NULL");
    *op = nullptr;
    if (const hone_status status = check_handle(runtime); status != HONE_OK) return status;
    return guarded(where, [&] {
        auto kernel = prepare(*runtime->runtime);
        *op = new OperatorOf<decltype(kernel)>(std::move(kernel), runtime->runtime);
        return HONE_OK;
    });
}

/// Copies a text out as snprintf does: at most `capacity` bytes with the final 0; `length` gets all of it.
hone_status hand_out(const std::string& text, char* buffer, std::size_t capacity,
                     std::size_t* length) noexcept;

}  // namespace hone::c_api
