// What the cases of attention_prefill (attention_prefill_test.cpp) and those of its variants
// (attention_prefill_<variant>_test.cpp) share: problems, and a candidate's tunables by name.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernel_templates/attention_prefill/attention_prefill.h"
#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"
#include "tests/kernel_templates/drawn_cases.h"

namespace hone::attention_prefill_cases {

inline Problem problem_of(const std::string& text) { return *parse_problem("attention_prefill " + text); }

using test::tunable;

inline const std::vector<std::string> shapes{
    "dtype=bf16 heads=16 kv_heads=16 head_dim=128",
    "dtype=bf16 causal=yes heads=32 kv_heads=8 head_dim=128",
    "dtype=fp16 causal=yes lse=yes heads=12 kv_heads=12 head_dim=64",
    "dtype=bf16 causal=yes window=1024 heads=16 kv_heads=4 head_dim=96",
    "dtype=fp16 causal=yes softcap=yes heads=8 kv_heads=1 head_dim=256",
    "dtype=bf16 causal=yes lengths=kv heads=32 kv_heads=8 head_dim=192",
    "dtype=fp16 causal=yes lengths=cumulative lse=yes heads=32 kv_heads=32 head_dim=80",
    "dtype=bf16 causal=yes window=300 softcap=yes lengths=cumulative heads=4 kv_heads=2 head_dim=8",
    "dtype=fp32 causal=yes heads=32 kv_heads=32 head_dim=128",
    "dtype=fp32 lengths=kv heads=3 kv_heads=1 head_dim=77",
    "dtype=bf16 causal=yes heads=5 kv_heads=5 head_dim=50",
    "dtype=bf16 causal=yes lengths=kv kv_dtype=fp8_e4m3 heads=32 kv_heads=8 head_dim=128",
    "dtype=bf16 causal=yes window=128 sinks=yes heads=64 kv_heads=8 head_dim=64",
};
inline const std::vector<std::string> sizes{
    "batch=1 q_len=1 kv_len=1",       "batch=3 q_len=17 kv_len=1000",    "batch=1 q_len=512 kv_len=512",
    "batch=32 q_len=512 kv_len=512",  "batch=8 q_len=700 kv_len=333",    "batch=1 q_len=4096 kv_len=4096",
    "batch=2 q_len=8192 kv_len=8192", "batch=1 q_len=16384 kv_len=16384"};

template <class Check>
void for_every_problem_and_device(Check check) {
    test::for_every_problem_and_device(*find_family("attention_prefill"), 24, check);
}

}  // namespace hone::attention_prefill_cases
