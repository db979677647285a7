#include "runtime/c_api/operator.h"

using namespace hone::c_api;

hone_status hone_attention_workspace(const hone_operator* op, int64_t batch, int64_t q_len, int64_t kv_len,
                                     size_t* bytes) {
    if (bytes == nullptr) return fail(HONE_NULL_POINTER);
    *bytes = 0;
    if (const hone_status status = check_handle(op); status != HONE_OK) return status;
    const auto* kernel = kernel_of<hone::AttentionKernel>(*op);
    if (kernel == nullptr) return fail(HONE_BAD_HANDLE);
    return guarded("hone_attention_workspace", [&] {
        *bytes = static_cast<std::size_t>(kernel->workspace_bytes({batch, q_len, kv_len}));
        return HONE_OK;
    });
}
