// What other libraries take, as bench/compare_torch.py writes it: text to the cases of `hone report --peers`.
#include "tuner/report/page/peers.h"
#include "runtime/system/input_error.h"
#include "tests/fuzz/fuzz.h"

using hone::fuzz::require;

const int hone::fuzz::mutations = 5000;

std::vector<hone::fuzz::Seed> hone::fuzz::seeds() {
    const std::string head =
        R"({"schema":"hone.compare/1","name":"linear","date":"2026-11-21T10:00:00+00:00",)"
        R"("machine":{"device":"H100","torch":"2.11.0","cudnn":91900,"cuda":null},"results":[)";
    const std::string first =
        R"({"case":{"op":"linear","tokens":4,"dtype":"bf16"},"sets":4,"bytes":1024,"flops":2048,"peers":[)"
        R"({"name":"hone","us":2.5,"p10":2.4,"p90":2.6,"samples":60,"relative_error":0.001},)"
        R"({"name":"eager","us":3}]})";
    const std::string second =
        R"({"case":{"op":"ffn_swiglu"},"peers":[{"name":"inductor","error":"RuntimeError: no"}]})";
    return {{"none.json", head + "]}"},
            {"one.json", head + first + "]}"},
            {"two.json", head + first + "," + second + "]}"}};
}

/// What is read can be written as JSON, and every time in it is one that a chart can show.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    hone::tuner::Json peers;
    try {
        peers = hone::tuner::peers_from_json(std::string(hone::fuzz::text_of(data, size)), "input");
    } catch (const hone::runtime::InputError& error) {
        require(std::string_view(error.what()).starts_with("input"), "a refusal names the file");
        return 0;
    }
    hone::fuzz::count_read();
    require(hone::tuner::Json::parse(peers.dump()) == peers, "what is read is JSON again");
    for (const hone::tuner::Json& one : peers["cases"]) {
        require(one["hone_us"].is_null() || one["hone_us"] > 0, "Hone's time is positive, or none");
        for (const hone::tuner::Json& peer : one["peers"])
            require(peer["us"] > 0, "a peer's time is positive");
    }
    return 0;
}
