#include "runtime/compile/compile_time.h"

#include <doctest/doctest.h>

using namespace hone::runtime;

TEST_CASE("a template takes as long as its text says, some longer, and one that is not there nothing") {
    CHECK(compile_time("rmsnorm/group_rows.cu") < compile_time("linear/wgmma/kernel.cu"));
    CHECK(compile_time("linear/wgmma/kernel.cu") < compile_time("quantized_linear/wgmma_w16/kernel.cu"));
    // Shorter than linear's, and two to three times as long to compile.
    CHECK(compile_time("sample/row.cu") > compile_time("quantized_linear/wgmma_w16/kernel.cu"));
    CHECK(compile_time("sample/row.cu") < compile_time("attention_prefill/wgmma/kernel.cu"));
    CHECK(compile_time("no/such.cu").count() == 0);
}
