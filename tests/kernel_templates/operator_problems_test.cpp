#include "kernel_templates/operator_problems.h"

#include <doctest/doctest.h>

#include "kernel_templates/catalog.h"
#include "kernel_templates/text.h"

using namespace hone;

namespace {

std::string linear(const std::string& fields) {
    std::string error;
    const auto problem = parse_problem(*find_family("linear"), fields + " tokens=1", &error);
    REQUIRE_MESSAGE(problem, error);
    return static_text(*problem);
}

std::string gate_up() { return linear("dtype=bf16 norm=yes activation=silu gated=yes in=4096 out=14336"); }
std::string down() { return linear("dtype=bf16 residual=yes in=14336 out=4096"); }
std::string ungated() { return linear("dtype=bf16 activation=gelu_erf bias=yes in=1024 out=4096"); }
std::string ungated_down() { return linear("dtype=bf16 bias=yes in=4096 out=1024"); }
std::string projection() { return linear("dtype=bf16 in=4096 out=6144"); }

}  // namespace

TEST_CASE("a feed-forward network is told by its gate or its activation, its second half by the first") {
    for (const char* name : {"FusedFfn", "fused_ffn", "FUSEDFFN"}) {
        OperatorProblems ffn{name};
        for (const std::string& first : {gate_up(), ungated()}) CHECK(ffn.contains("linear", first));
        CHECK_FALSE(ffn.contains("linear", down()));
        ffn.consider("linear", gate_up());
        CHECK(ffn.contains("linear", down()));
        CHECK_FALSE(ffn.contains("linear", ungated_down()));
        ffn.consider("linear", ungated());
        CHECK(ffn.contains("linear", ungated_down()));
        CHECK_FALSE(ffn.contains("linear", projection()));
        CHECK_FALSE(ffn.contains("linear", linear("dtype=fp16 in=14336 out=4096")));
        CHECK_FALSE(ffn.contains("linear", linear("dtype=bf16 bias=yes in=14336 out=4096")));
        CHECK_FALSE(ffn.contains("quantized_linear", gate_up()));
    }
}

TEST_CASE("a linear layer has no gate; its family has everything") {
    for (const char* name : {"Linear", "LINEAR"}) {
        const OperatorProblems layers{name};
        for (const std::string& one : {down(), ungated(), ungated_down(), projection()})
            CHECK(layers.contains("linear", one));
        CHECK_FALSE(layers.contains("linear", gate_up()));
    }
    const OperatorProblems family{"linear"};
    for (const std::string& one : {gate_up(), down(), ungated(), projection()})
        CHECK(family.contains("linear", one));
    CHECK_FALSE(OperatorProblems("conv").contains("linear", projection()));
}

TEST_CASE("every problem of a shared family is one of some operator's, and conditions name its fields") {
    for (const OperatorName& one : operator_names()) {
        for (const std::string_view condition : one.problems) {
            CAPTURE(condition);
            const std::string_view key = condition.substr(0, condition.find_first_of("!="));
            for (const std::string_view family : one.families)
                CHECK(field_index(*find_family(family), key) >= 0);
        }
    }
    for (const std::string& fields : {gate_up(), down(), ungated(), ungated_down(), projection()}) {
        CHECK((OperatorProblems("Linear").contains("linear", fields) ||
               OperatorProblems("FusedFfn").contains("linear", fields)));
    }
}

TEST_CASE("a problem that is written out has to be the operator's whose name it has") {
    const std::string fields = " dtype=bf16 gated=yes activation=silu in=64 out=64 tokens=1";
    std::string error;
    CHECK_FALSE(read_problem("Linear" + fields, &error));
    CHECK(error == "Linear has gated=no: 'linear' names the family, with all that it has");
    CHECK(read_problem("FusedFfn" + fields));
    CHECK(read_problem("linear" + fields));
    CHECK(read_problem("FusedFfn dtype=bf16 in=64 out=64 tokens=1"));  // a second half
}
