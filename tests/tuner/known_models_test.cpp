#include "tuner/models/known_models.h"

#include <doctest/doctest.h>

#include "tests/support/fake_machine.h"
#include "tuner/errors.h"

using namespace hone;
using namespace hone::tuner;

TEST_CASE("every shipped model can be read") {
    const std::vector<std::string> names = known_models();
    CHECK(names.size() >= 8);
    for (const std::string& name : names) {
        CAPTURE(name);
        CHECK(read_model(name).hidden_size > 0);
    }
    CHECK(read_model("gpt2").norm == "layernorm");
    CHECK(read_model("gpt2").dtype == Dtype::fp16);
    CHECK(read_model("mistral-7b").sliding_window == 4096);
}

TEST_CASE("a folder without models is named where a model is looked for in it") {
    const test::ScopedVariable nowhere("HONE_DATA_DIR", "/nonexistent");
    CHECK_THROWS_WITH_AS((void)read_model("llama-3-8b"),
                         doctest::Contains("since /nonexistent has no models"), ConfigError);
}
