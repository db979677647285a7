// hone score on the fake GPU, which computes nothing: all tokens are as likely as each other.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/cli/program.h"

using namespace hone::test;

TEST_CASE("score says the perplexity of a text, also to programs") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const std::string model = HONE_SOURCE_DIR "/examples/tiny-llama";
    const Ended text = sandbox.run({"score", model, model + "/held_back.txt", "--window", "512"});
    INFO(text.err);
    CHECK(text.code == 0);
    CHECK(text.out == "perplexity 1024.0000 a token, of 2065 in windows of 512; 3.4399 bits a byte\n");
    sandbox.write("short.txt", "It is a truth");
    const nlohmann::json data = sandbox.run({"score", model, "short.txt", "--json"}).json()["data"];
    CHECK(data["tokens"] == data["log_probabilities"].size());
    CHECK(data["window"] == 1024);
    CHECK(data["nats_a_token"].get<double>() == doctest::Approx(std::log(1024)));
}

TEST_CASE("score refuses what it cannot read or fit") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    const std::string model = HONE_SOURCE_DIR "/examples/tiny-llama";
    sandbox.write("empty.txt", "");
    const auto refused = [&](const Sandbox::Words& words, const std::string& expected) {
        const Ended ended = sandbox.run(words);
        CHECK(ended.code != 0);
        CHECK_MESSAGE(ended.err.find(expected) != std::string::npos, ended.err);
    };
    refused({"score", model, "empty.txt"}, "give a longer text");
    refused({"score", model, "missing.txt"}, "missing.txt");
    refused({"score", model, model + "/held_back.txt", "--window", "4096"}, "context is 4096");
    refused({"score", model, model + "/held_back.txt", "--window", "1"}, "--window");
    refused({"score", "missing", "empty.txt"}, "missing");
}

TEST_CASE(
    "a GPU that fails while a model runs is a failure with the driver's words, no mistake of the caller") {
    Sandbox sandbox;
    sandbox.use_fake_gpus("launch:fail=700:after=30");
    const std::string model = HONE_SOURCE_DIR "/examples/tiny-llama";
    for (const Sandbox::Words& words : {Sandbox::Words{"score", model, model + "/held_back.txt"},
                                        {"generate", model, "-p", "It is", "-n", "4"}}) {
        const Ended ended = sandbox.run(words);
        CAPTURE(ended.err);
        CHECK(ended.code == 1);
        CHECK(ended.err.find("CUDA_ERROR_ILLEGAL_ADDRESS (700)") != std::string::npos);
        CHECK(ended.err.find("last_launch_error") == std::string::npos);
    }
    sandbox.use_fake_gpus();
    sandbox.set("HONE_CHECK_INDICES", "1");
    CHECK(sandbox.run({"generate", model, "-p", "It is", "-n", "4"}).err.find("without HONE_CHECK_INDICES") !=
          std::string::npos);
}
