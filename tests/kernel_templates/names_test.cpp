#include "kernel_templates/names.h"

#include <doctest/doctest.h>

#include "kernel_templates/catalog.h"
#include "kernel_templates/text.h"

using namespace hone;

TEST_CASE("an operator is found by its name in every language, a family by its own") {
    const auto names = [](std::string_view text) {
        std::vector<std::string_view> found;
        for (const Family* family : families_named(text)) found.push_back(family->name);
        return join(found);
    };
    for (const char* name : {"RmsNorm", "rms_norm", "RMSNorm", "rmsnorm"}) CHECK(names(name) == "rmsnorm");
    CHECK(names("Attention") == "attention_decode, attention_prefill");
    CHECK(names("FusedFFN") == "linear");
    CHECK(names("attention_decode") == "attention_decode");
    CHECK(names("Attention_Decode") == "attention_decode");
    CHECK(families_named("conv").empty());
    for (const OperatorName& one : operator_names()) CHECK_FALSE(families_named(one.title).empty());
    for (const Family* family : families()) CHECK(names(family->name) == family->name);
}

TEST_CASE("every family is one of an operator's, but for those of products of the decoder's steps") {
    for (const Family* family : families()) {
        if (family->name.starts_with("shared_norm_")) continue;
        CAPTURE(family->name);
        bool is_named = false;
        for (const OperatorName& one : operator_names()) {
            for (const std::string_view name : one.families) is_named = is_named || name == family->name;
        }
        CHECK(is_named);
    }
}

TEST_CASE("what is no operator is told beside what there is") {
    CHECK(no_operator("Atention")
              .starts_with("no operator 'Atention' (did you mean 'Attention'?): this build has Attention "
                           "(attention_decode, "
                           "attention_prefill), AttentionAppend, Embedding, ExpertLinear, ExpertRouting, "
                           "FusedFfn (linear), "));
}

TEST_CASE("element types are taken as PyTorch and Hone write them") {
    for (const char* text : {"bf16", "BF16", "bfloat16", "BFloat16"}) CHECK(dtype_word(text) == "bf16");
    for (const char* text : {"fp16", "Fp16", "half", "float16"}) CHECK(dtype_word(text) == "fp16");
    for (const char* text : {"fp32", "float", "Float32"}) CHECK(dtype_word(text) == "fp32");
    CHECK(dtype_word("fp61") == "fp61");
    const Family& norm = *find_family("rmsnorm");
    CHECK(spelled_fields(norm, "dtype=BFLOAT16 residual=YES hidden=64") ==
          "dtype=bf16 residual=yes hidden=64");
    CHECK(spelled_fields(norm, "dtype=bf17 hiden=A") == "dtype=bf17 hiden=A");
}

TEST_CASE("a problem in a person's words is the one in the family's") {
    std::string error;
    const auto read = read_problem("RmsNorm dtype=Half hidden=64 rows=2", &error);
    REQUIRE(read);
    CHECK(*read == *parse_problem("rmsnorm dtype=fp16 hidden=64 rows=2"));
    const auto decode =
        read_problem("attention dtype=bf16 heads=8 kv_heads=2 head_dim=64 batch=1 q_tokens=1 kv_len=9");
    REQUIRE(decode);
    CHECK(decode->family->name == "attention_decode");
    CHECK_FALSE(read_problem("attention dtype=bf16", &error));
    CHECK(error.find("(as attention_decode); attention_prefill needs") != std::string::npos);
    CHECK_FALSE(
        read_problem("attention dtype=bf16 heads=8 kv_heads=2 head_dim=64 batch=1 q_len=1 kv_len=9", &error));
    CHECK(error.find("may be attention_decode or attention_prefill: name one of them") != std::string::npos);
}
