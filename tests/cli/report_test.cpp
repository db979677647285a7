// hone report: what is packed into the page, how large it gets, and that texts of a cache stay texts.
#include <zlib.h>

#include <doctest/doctest.h>

#include "tests/cli/made_trials.h"
#include "tests/cli/program.h"

using namespace hone::test;
using Json = nlohmann::json;

namespace {

/// What stands in `<script type="text/plain" id="NAME">...</script>`.
std::string element(const std::string& page, const std::string& name) {
    const std::string tag = "<script type=\"text/plain\" id=\"" + name + "\">";
    const std::size_t begin = page.find(tag);
    REQUIRE(begin != std::string::npos);
    REQUIRE(page.find(tag, begin + 1) == std::string::npos);
    return page.substr(begin + tag.size(), page.find("</script>", begin) - begin - tag.size());
}

std::string from_base64(const std::string& text) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes;
    std::uint32_t bits = 0;
    int count = 0;
    for (const char c : text) {
        if (c == '=') break;
        bits = bits << 6 | static_cast<std::uint32_t>(digits.find(c));
        count += 6;
        if (count < 8) continue;
        count -= 8;
        bytes += static_cast<char>(bits >> count & 0xFF);
    }
    return bytes;
}

std::string inflated(const std::string& bytes) {
    std::string text(bytes.size() * 40 + 1000, '\0');
    uLongf length = text.size();
    REQUIRE(uncompress(reinterpret_cast<Bytef*>(text.data()), &length,
                       reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()) == Z_OK);
    text.resize(length);
    return text;
}

Json unpacked(const std::string& page, const std::string& name) {
    return Json::parse(inflated(from_base64(element(page, name))));
}

/// The page without what it shows.
std::string frame(std::string page) {
    for (const char* name : {"packed-results", "packed-trials"}) {
        const std::string text = element(page, name);
        page.erase(page.find(text), text.size());
    }
    return page;
}

struct Reported {
    Sandbox sandbox;

    explicit Reported(const MadeTrials& made) { write_made_cache(sandbox.path("cache/cache.db"), made); }

    std::string page(Sandbox::Words words = {}) {
        words.insert(words.begin(), "report");
        const Ended ended = sandbox.run(words);
        INFO(ended.err);
        REQUIRE(ended.code == 0);
        return sandbox.read("report.html");
    }
};

/// Column `name` of the winners where it points into a list of texts.
std::string text_at(const Json& results, const char* list, const char* name, std::size_t row) {
    return results[list][results["winners"][name][row].get<std::size_t>()];
}

}  // namespace

TEST_CASE("the page has the winners that list shows, digit by digit") {
    Reported reported({});
    const Json results = unpacked(reported.page(), "packed-results");
    const Json winners = reported.sandbox.run({"list", "--json"}).json()["data"]["winners"];
    REQUIRE(winners.size() == 80);
    REQUIRE(results["winners"]["problem"].size() == winners.size());
    for (std::size_t i = 0; i < winners.size(); ++i) {
        const Json& winner = winners[i];
        const std::size_t problem = results["winners"]["problem"][i];
        const auto of_problem = [&](const char* list, const char* column) -> Json {
            return results[list][results["problems"][column][problem].get<std::size_t>()];
        };
        CHECK(of_problem("families", "family")["name"] == winner["family"]);
        CHECK(of_problem("static_fields", "static") == winner["static"]);
        CHECK(of_problem("dynamic_fields", "dynamic") == winner["dynamic"]);
        CHECK(text_at(results, "candidates", "candidate", i) == winner["candidate"]);
        CHECK(text_at(results, "layers", "layer", i) == winner["layer"]);
        CHECK(text_at(results, "provenances", "provenance", i) == winner["provenance"]);
        for (const char* number : {"median_us", "p10_us", "p90_us", "samples", "energy_mj", "created_at_ms"})
            CHECK(results["winners"][number][i] == winner[number]);
        CHECK(results["gpus"][results["winners"]["gpu"][i].get<std::size_t>()]["name"] ==
              winner["gpu"]["name"]);
    }
}

TEST_CASE("the page has the trials that show shows, to five digits and in their order") {
    Reported reported({.problems = 3, .trials_a_problem = 40, .gpus = 1});
    const std::string page = reported.page();
    const Json results = unpacked(page, "packed-results");
    const Json trials = unpacked(page, "packed-trials");
    const std::vector<hone::cache::Trial> made =
        made_trials({.problems = 3, .trials_a_problem = 40, .gpus = 1});
    REQUIRE(trials["columns"]["problem"].size() == made.size());
    std::int64_t at = 0;
    for (std::size_t i = 0; i < made.size(); ++i) {
        const auto place = [&](const char* column) {
            return trials["columns"][column][i].get<std::size_t>();
        };
        const std::size_t known = results["candidates"].size();
        CHECK((place("candidate") < known
                   ? results["candidates"][place("candidate")]
                   : trials["candidates"][place("candidate") - known]) == made[i].candidate);
        CHECK(results["statuses"][place("status")] == name(made[i].status));
        CHECK(trials["details"][place("detail")] == made[i].detail);
        CHECK(trials["columns"]["median_us"][i].get<double>() ==
              doctest::Approx(made[i].timing.median_us).epsilon(1e-4));
        at += trials["columns"]["after_ms"][i].get<std::int64_t>();
        CHECK(at == made[i].created_at);
        CHECK(place("winner") == (made[i].winner ? 1 : 0));
    }
}

TEST_CASE("1,000 winners and 100,000 trials take less than 5 MB") {
    Reported reported({.problems = 500, .trials_a_problem = 130});
    const Ended ended = reported.sandbox.run({"report", "--json"});
    REQUIRE(ended.code == 0);
    const Json data = ended.json()["data"];
    CHECK(data["winners"] >= 1000);
    CHECK(data["trials"] >= 100'000);
    CHECK(data["gpus"] == 2);
    CHECK(data["bytes"].get<std::size_t>() == reported.sandbox.read("report.html").size());
    CHECK(data["bytes"].get<std::size_t>() < 5'000'000);
    MESSAGE("a page of ", data["trials"].get<int>(), " trials has ", data["bytes"].get<int>(), " bytes");
}

TEST_CASE("what a cache says changes nothing of the page but the two packed texts") {
    Reported plain({.problems = 2, .trials_a_problem = 5});
    Reported hostile({.problems = 2, .trials_a_problem = 5, .hostile = true});
    const std::string page = hostile.page();
    CHECK(frame(page) == frame(plain.page()));
    CHECK(page.find("owned") == std::string::npos);
    CHECK(unpacked(page, "packed-results").dump().find("document.title='owned'") != std::string::npos);
    for (const char* name : {"packed-results", "packed-trials"})
        CHECK(element(page, name)
                  .find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                     "+/=") == std::string::npos);
}

TEST_CASE("the page asks nothing of anybody") {
    Reported reported({.problems = 1, .trials_a_problem = 3});
    const std::string page = frame(reported.page());
    CHECK(
        page.find("content=\"default-src 'none'; base-uri 'none'; form-action 'none'; script-src 'sha256-") !=
        std::string::npos);
    CHECK(page.find("unsafe-") == std::string::npos);
    for (const char* loading : {" src=", "<link", "@import", "url(", "fetch(", "XMLHttpRequest", "import("}) {
        CAPTURE(loading);
        CHECK(page.find(loading) == std::string::npos);
    }
    for (std::size_t at = page.find(" href="); at != std::string::npos; at = page.find(" href=", at + 1))
        CHECK(page.substr(at, 8) == " href=\"#");
}

TEST_CASE("the filters of list are those of report") {
    Reported reported({});
    const auto counts = [&](Sandbox::Words words) {
        words.insert(words.begin(), "report");
        words.emplace_back("--json");
        return reported.sandbox.run(words).json()["data"];
    };
    CHECK(counts({"--gpu", "a100"})["winners"] == 40);
    CHECK(counts({"rmsnorm", "dtype=BF16", "--gpu", "h100"})["gpus"] == 1);
    const std::size_t norms =
        reported.sandbox.run({"list", "rmsnorm", "--json"}).json()["data"]["winners"].size();
    CHECK(counts({"rmsnorm"})["winners"] == norms);
    CHECK(reported.sandbox.run({"report", "rmsnorm", "hiden=1"}).err.find("did you mean 'hidden'?") !=
          std::string::npos);
}

TEST_CASE("nothing to report is said, and no file is written") {
    const Sandbox empty;
    const Ended ended = empty.run({"report", "--json"});
    CHECK(ended.code == 1);
    CHECK(ended.json()["error"]["code"] == "nothing_to_report");
    CHECK(ended.json()["error"]["hint"] == "hone tune MODEL");
    CHECK_FALSE(std::filesystem::exists(empty.path("report.html")));
    Reported reported({.problems = 1, .trials_a_problem = 3});
    const Ended none = reported.sandbox.run({"report", "layernorm", "-o", "x.html"});
    CHECK(none.code == 1);
    CHECK(none.err.find("no winner and no trial is like that") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(reported.sandbox.path("x.html")));
}

TEST_CASE("winners that ship with the build are reported without a cache") {
    Sandbox sandbox;
    sandbox.unset("HONE_PACKAGED");
    const Ended ended = sandbox.run({"report", "--json", "-o", "packaged.html"});
    REQUIRE(ended.code == 0);
    CHECK(ended.json()["data"]["winners"].get<int>() > 100);
    CHECK(ended.json()["data"]["trials"] == 0);
    const Json results = unpacked(sandbox.read("packaged.html"), "packed-results");
    CHECK(results["gpus"][0]["bytes_per_s"] == 3.35e12);
    CHECK(results["gpus"][0]["operations_per_s"].get<double>() == doctest::Approx(1.07e15).epsilon(0.01));
}

// Winners and trials were read one after the other, and each time everything was said.
TEST_CASE("a report says once what it could not read") {
    Reported reported({.problems = 1, .trials_a_problem = 3});
    reported.sandbox.set("HONE_PACKAGED", "no");
    reported.sandbox.set("HONE_SITE_CACHE", "/nonexistent/cache.db");
    const std::string err = reported.sandbox.run({"report", "layernorm", "-o", "x.html"}).err;
    for (const char* said : {"HONE_PACKAGED is 'no'", "site cache left out"}) {
        INFO(said);
        const std::size_t first = err.find(said);
        REQUIRE(first != std::string::npos);
        CHECK(err.find(said, first + 1) == std::string::npos);
    }
}

TEST_CASE("a model's steps name their problems and how often each is called") {
    Reported reported({});
    const Json results =
        unpacked(reported.page({"--model", "llama-3-8b", "--tokens", "1,512"}), "packed-results");
    REQUIRE(results["model"]["name"] == "llama-3-8b");
    const Json& steps = results["model"]["steps"];
    CHECK(steps[0]["kind"] == "decode");
    CHECK(steps[0]["kv_len"] == 256);
    CHECK(steps.back()["kind"] == "prompt");
    CHECK(steps.back()["tokens"] == 512);
    const auto problem_of = [&](const Json& step, const std::string& role) -> Json {
        for (const Json& op : step["operators"]) {
            if (op["role"] != role) continue;
            const std::size_t place = op["problem"];
            return results["dynamic_fields"][results["problems"]["dynamic"][place].get<std::size_t>()];
        }
        return nullptr;
    };
    CHECK(problem_of(steps[0], "language head") == "tokens=1");
    CHECK(problem_of(steps.back(), "language head") == "tokens=1");  // of a prompt, the last token's
    CHECK(problem_of(steps.back(), "output projection") == "tokens=512");
    CHECK(problem_of(steps[0], "attention over a prompt").is_null());
    CHECK(problem_of(steps.back(), "attention over a prompt") == "batch=1 q_len=512 kv_len=512");
    for (const Json& op : steps[0]["operators"])
        CHECK_FALSE(op["role"].get<std::string>().ends_with("paged cache"));
}

TEST_CASE("other libraries come from a file of the comparison, which is checked") {
    Reported reported({.problems = 1, .trials_a_problem = 3});
    const char* good = R"({"schema":"hone.compare/1","name":"linear","date":"2026-11-21T10:00:00+00:00",
        "machine":{"device":"H100","torch":"2.11.0","cudnn":91900},"results":[{"case":{"op":"linear","tokens":4},
        "sets":1,"bytes":1,"flops":1,"peers":[{"name":"hone","us":2.5},{"name":"eager","us":3},
        {"name":"inductor","error":"RuntimeError"}]}]})";
    reported.sandbox.write("peers.json", good);
    const Json peers = unpacked(reported.page({"--peers", "peers.json"}), "packed-results")["peers"];
    REQUIRE(peers.size() == 1);
    CHECK(peers[0]["machine"] == "H100, cudnn 91900, torch 2.11.0");
    CHECK(peers[0]["cases"][0]["sizes"] == "tokens 4");
    CHECK(peers[0]["cases"][0]["hone_us"] == 2.5);
    REQUIRE(peers[0]["cases"][0]["peers"].size() == 1);
    CHECK(peers[0]["cases"][0]["peers"][0]["us"] == 3);
    const std::vector<std::pair<std::string, std::string>> bad{
        {R"({"schema":"hone.tuned/1"})", "schema is 'hone.tuned/1', known is 'hone.compare/1'"},
        {R"({"schema":"hone.compare/1","name":"x","date":"d","machine":{"device":"d"}})",
         "no member 'results'"},
        {R"({"schema":"hone.compare/1","name":"x","date":"d","machine":{"device":"d"},"results":[{"case":{"op":"a"},
            "peers":[{"name":"hone","us":-1}]}]})",
         "'us' of peer 'hone' is -1"},
        {"[]", "peers.json"}};
    for (const auto& [text, expected] : bad) {
        CAPTURE(text);
        reported.sandbox.write("peers.json", text);
        const Ended ended = reported.sandbox.run({"report", "--peers", "peers.json", "-o", "y.html"});
        CHECK(ended.code == 2);
        CHECK_MESSAGE(ended.err.find(expected) != std::string::npos, ended.err);
        CHECK_FALSE(std::filesystem::exists(reported.sandbox.path("y.html")));
    }
}
