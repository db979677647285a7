// How the program behaves whatever the command: help, errors, JSON, colours.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "tests/cli/program.h"

using namespace hone::test;

TEST_CASE("help starts with examples, for the program and for each command") {
    const Sandbox sandbox;
    for (const char* command :
         {"", "tune", "model", "list", "show", "explain", "bench", "report", "export", "import", "merge",
          "compile", "quantize", "cache", "spaces", "doctor", "completion", "manual"}) {
        CAPTURE(command);
        const Ended help = *command == '\0' ? sandbox.run({"--help"}) : sandbox.run({command, "--help"});
        CHECK(help.code == 0);
        CHECK(help.out.starts_with("Examples:\n  hone "));
        CHECK(help.out.find("--json") != std::string::npos);
        CHECK(help.err.empty());
    }
}

TEST_CASE("--version prints the version") {
    const Sandbox sandbox;
    CHECK(sandbox.run({"--version"}).out.starts_with("hone 0."));
    CHECK(
        sandbox.run({"--version", "--json"}).json()["data"]["version"].get<std::string>().starts_with("0."));
}

TEST_CASE("usage errors end with 2, say what was meant, and print nothing on stdout") {
    const Sandbox sandbox;
    struct Case {
        Sandbox::Words words;
        std::string expected;
    };
    const std::vector<Case> cases{
        {{}, "no command given"},
        {{"tnue"}, "did you mean 'tune'"},
        {{"list", "--jsno"}, "did you mean '--json'"},
        {{"tune"}, "give a MODEL, --op or --captured"},
        {{"tune", "llama-3-8b", "--op", "rmsnorm", "--fields", "hidden=64"}, "without a MODEL"},
        {{"tune", "llama-3-8b", "--fields", "hidden=64"}, "goes with --op"},
        {{"tune", "llama-3-8b", "--op", "rmsnrom"}, "did you mean 'RmsNorm'"},
        {{"tune", "llama-3-8bb"}, "did you mean 'llama-3-8b'"},
        {{"tune", "--op", "rmsnrom"}, "did you mean 'RmsNorm'"},
        {{"tune", "--op", "Attentoin"},
         "did you mean 'Attention'?): this build has Attention (attention_decode,"},
        {{"tune", "--op", "rmsnorm", "--fields", "dtype=bf16 hiden=4096"}, "hidden"},
        {{"tune", "--op", "rmsnorm", "--fields", "dtype=bf17 hidden=4096"}, "bf16"},
        {{"tune", "--op", "rmsnorm", "--fields", "dtype=bf16 hidden=0"}, "hidden"},
        {{"tune", "--op", "rmsnorm", "--fields", "dtype=bf16 hidden=99999999999999999999"}, "hidden"},
        {{"tune", "llama-3-8b", "--tokens", "0"}, "allowed is 1"},
        {{"tune", "llama-3-8b", "--tokens", "1,x"}, "no whole number"},
        {{"tune", "llama-3-8b", "--dtype", "bf61"}, "did you mean 'bf16'"},
        {{"tune", "llama-3-8b", "--dtype", "BF17"}, "did you mean 'bf16'"},
        {{"tune", "llama-3-8b", "--dtype", "int8"}, "fp32, fp16, bf16"},
        {{"tune", "llama-3-8b", "--tp", "3"}, "does not divide num_attention_heads"},
        {{"tune", "llama-3-8b", "--tp", "0"}, "1 or more"},
        {{"tune", "llama-3-8b", "--effort", "quik"}, "did you mean 'quick'"},
        {{"tune", "llama-3-8b", "--budget", "10 minutes"}, "no duration"},
        {{"tune", "llama-3-8b", "--budget", "0s"}, "no duration"},
        {{"tune", "llama-3-8b", "--shard", "0/8"}, "'0/8' is no shard: allowed is N/M with N from 1 to M"},
        {{"tune", "llama-3-8b", "--shard", "9/8"}, "'9/8' is no shard"},
        {{"tune", "llama-3-8b", "--shard", "3"}, "'3' is no shard"},
        {{"tune", "llama-3-8b", "--shard", "3/"}, "'3/' is no shard"},
        {{"tune", "llama-3-8b", "--shard", "third/8"}, "'third/8' is no shard"},
        {{"tune", "llama-3-8b", "--shard", "1/1001"}, "M up to 1000"},
        {{"tune", "llama-3-8b", "--offline", "--arch", "sm_91"}, "sm_90a"},
        {{"tune", "llama-3-8b", "--offline", "--replay"}, "excludes"},
        {{"tune", "missing.json"}, "no model 'missing.json'"},
        {{"show", "rmsnorm"}, "dtype"},
        {{"show", "rmsnrom", "hidden=4096"}, "RmsNorm"},
        {{"show"}, "give a problem, --model or --captured"},
        {{"show", "Attention", "dtype=bf16"}, "needs the field 'heads': query heads (as attention_decode)"},
        {{"list", "rmsnrom"}, "did you mean 'RmsNorm'"},
        {{"list", "--tp", "2"}, "--tp requires --model"},
        {{"spaces", "rmsnrom"}, "did you mean 'RmsNorm'"},
        {{"cache", "clear"}, "add --yes"},
        {{"cache"}, ""},
        {{"import"}, "FILE"},
        {{"import", "missing.json"}, "no such file"},
        {{"tune", "llama-3-8b", "--format", "w4a61"}, "did you mean 'w4a16'"},
        {{"tune", "llama-3-8b", "--format", "int4"}, "w4a16, w8a16, w8a8, fp8, dense"},
        {{"tune", "llama-3-8b", "--group", "64"}, "--group goes with --format w4a16, w8a16, w8a8, fp8"},
        {{"tune", "llama-3-8b", "--zeros"}, "--zeros goes with --format"},
        {{"tune", "llama-3-8b", "--format", "dense", "--lm-head"}, "--lm-head goes with --format w4a16"},
        {{"tune", "llama-3-8b", "--format", "w8a8", "--zeros"}, "zeros=yes is for format=w4a16"},
        {{"tune", "llama-3-8b", "--format", "fp8", "--group", "64"}, "fp8 has blocks of 128 columns"},
        {{"tune", "--op", "linear", "--fields", "dtype=bf16", "--format", "fp8"},
         "--format goes with a MODEL"},
        {{"bench", "rmsnorm", "dtype=bf16", "--format", "fp8"}, "--format requires --model"},
        {{"bench", "rmsnorm", "dtype=bf16", "--seconds", "3"}, "--seconds requires --energy"},
        {{"bench", "rmsnorm", "dtype=bf16", "--energy", "--seconds", "0"}, "not in range"},
        {{"bench", "rmsnorm", "dtype=bf16", "--energy", "--seconds", "nan"}, "nan is no number"},
        {{"bench", "rmsnorm", "--chain", "--op", "linear"}, "--chain goes with one model"},
        {{"bench", "--chain", "--energy", "llama-3-8b"}, "--chain goes with one model"},
        {{"bench", "--chain", "llama-3-8b", "--tp", "2"}, "--tp 2: a step is measured on one GPU"},
        {{"bench", "llama-3-8b", "--kv", "8"}, "--kv requires --chain"},
        {{"tune", "llama-3-8b", "--kv", "8"}, "--kv requires --chain"},
        {{"tune", "llama-3-8b", "--chain", "--op", "linear"},
         "--chain is about all kernels of one model's step"},
        {{"tune", "--op", "linear", "--chain"}, "--chain is about all kernels of one model's step"},
        {{"tune", "llama-3-8b", "--chain", "--tp", "2"}, "--tp 2: a step is measured on one GPU"},
        {{"bench"}, "give a problem, --model or --captured"},
        {{"report", "rmsnrom"}, "did you mean 'RmsNorm'"},
        {{"report", "--tokens", "4"}, "--tokens requires --model"},
        {{"report", "--peers", "missing.json"}, "missing.json"},
        {{"tune", "llama-3-8b", "--tp", "3000000000"}, "--tp: Value 3000000000 is not from -2147483648 to 2147483647"},
        {{"tune", "llama-3-8b", "--tp", "two"}, "--tp: Value two is no whole number"},
        {{"tune", "llama-3-8b", "--tp", "1.5"}, "--tp: Value 1.5 is no whole number"},
        {{"quantize", "x", "--group", "", "--format", "w4a16", "-o", "y"}, "is no whole number"},
        {{"generate", "x", "--temperature", "0,5"}, "--temperature: Value 0,5 is no number"},
        {{"generate", "x", "-n", "many"}, "--max-new-tokens: Value many is no whole number"},
        {{"generate", "x", "--zeros=much"}, "--zeros = much; a flag takes true, false or nothing"},
        {{"explain", "rmsnorm", "--max", "-1"}, "not in range"},
        {{"compile", "gpt2", "--top", "-5"}, "not in range"},
        {{"generate", "x", "--prompt-tokens", "-1"}, "not in range"},
        {{"generate", "x", "--top-k", "-5"}, "not in range"},
        {{"generate", "x", "--temperature", "nan"}, "nan is no number"},
        {{"generate", "x", "--seed", "99999999999999999999"}, "has too many digits"},
        {{"generate", "x", "--context", "-1"}, "not in range"},
        {{"serve", "x", "--context", "-1"}, "not in range"},
        {{"serve", "x", "--memory-share", "nan"}, "nan is no number"},
        {{"quantize", "x", "-o", "y"}, "--format is required"},
        {{"quantize", "x", "--format", "w4a16"}, "--output is required"},
        {{"quantize", "missing", "--format", "w4a16", "-o", "y"}, "missing: cannot be read: No such file"},
    };
    for (const Case& one : cases) {
        CAPTURE(one.words);
        const Ended ended = sandbox.run(one.words);
        CHECK(ended.code == 2);
        CHECK(ended.out.empty());
        CHECK_MESSAGE(ended.err.find(one.expected) != std::string::npos, ended.err);
    }
}

TEST_CASE("--json has one shape on errors too, wherever it stands") {
    const Sandbox sandbox;
    for (const Sandbox::Words& words : {Sandbox::Words{"tnue", "--json"},
                                        {"--json"},
                                        {"list", "--json", "--nope"},
                                        {"tune", "nope", "--json"},
                                        {"--json", "show", "rmsnorm"}}) {
        CAPTURE(words);
        const Ended ended = sandbox.run(words);
        CHECK(ended.code == 2);
        const nlohmann::json json = ended.json();
        CHECK(json["schema"].get<std::string>().starts_with("hone."));
        CHECK(json["schema"].get<std::string>().ends_with("/1"));
        CHECK(json["ok"] == false);
        for (const char* key : {"code", "message", "hint"}) CHECK(json["error"][key].is_string());
    }
}

TEST_CASE("every command has the JSON envelope and a text form") {
    const Sandbox sandbox;
    for (Sandbox::Words words : sample_commands()) {
        CAPTURE(words);
        const Ended text = sandbox.run(words);
        CHECK(text.code == 0);
        CHECK_FALSE(text.out.empty());
        CHECK_FALSE(has_controls(text.out));
        words.push_back("--json");
        const Ended ended = sandbox.run(words);
        CHECK(ended.code == 0);
        const nlohmann::json json = ended.json();
        CHECK(json["ok"] == true);
        CHECK(json["data"].is_object());
        CHECK_FALSE(json.contains("error"));
        if (words.front() != "--version") CHECK(json["schema"] == "hone." + words.front() + "/1");
    }
}

TEST_CASE("colours on a terminal only, and not with NO_COLOR or a dumb one") {
    Sandbox sandbox;
    const Sandbox::Words words{"spaces", "rmsnorm"};
    CHECK(sandbox.run_on_terminal(words).out.find("\033[") != std::string::npos);
    CHECK(sandbox.run(words).out.find('\033') == std::string::npos);
    sandbox.set("NO_COLOR", "1");
    CHECK(sandbox.run_on_terminal(words).out.find('\033') == std::string::npos);
    sandbox.unset("NO_COLOR");
    sandbox.set("TERM", "dumb");
    CHECK(sandbox.run_on_terminal(words).out.find('\033') == std::string::npos);
}

TEST_CASE("control characters of outside strings are escaped") {
    const Sandbox sandbox;
    const Ended ended = sandbox.run({"tune", "evil\033[2Jname\x7f\xc2\x9b"});
    CHECK(ended.code == 2);
    CHECK_FALSE(has_controls(ended.err));
    CHECK(ended.err.find("evil\\x1b[2Jname\\x7f\\xc2\\x9b") != std::string::npos);
    const Ended json = sandbox.run({"tune", "evil\033\xff", "--json"});
    CHECK(json.json()["error"]["message"].is_string());
    const Ended high = sandbox.run({"tune", "evil\x7f\xc2\x9b\xc3\x9b", "--json"});
    CHECK_FALSE(has_controls(high.out));
    CHECK(high.out.find("evil\\u007f\\u009b\xc3\x9b") != std::string::npos);
    CHECK(high.json()["error"]["message"].get<std::string>().find("evil\x7f\xc2\x9b") != std::string::npos);
}

TEST_CASE("a full stdout is a failure") {
    const Sandbox sandbox;
    for (const std::string words : {"spaces", "--help", "list --json"}) {
        const Ended ended =
            sandbox.run_other("/bin/sh", {"-c", "exec \"$0\" " + words + " > /dev/full", HONE_PROGRAM});
        CHECK(ended.code == 1);
        CHECK(ended.err == "error: stdout cannot be written: No space left on device\n");
    }
}

TEST_CASE("a stdout that does not wait gets all of it none the less") {
    const Sandbox sandbox;
    const std::string whole = sandbox.run({"spaces"}).out;
    REQUIRE(whole.size() > 65536);  // more than a pipe holds
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) == 0);
    REQUIRE(::fcntl(ends[0], F_SETFL, 0) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        ::dup2(ends[1], STDOUT_FILENO);
        ::execl(HONE_PROGRAM, HONE_PROGRAM, "spaces", nullptr);
        ::_exit(126);
    }
    ::close(ends[1]);
    ::usleep(200'000);  // until the pipe is full
    std::string read;
    std::array<char, 4096> block{};
    for (ssize_t got = 1; got > 0;) {
        got = ::read(ends[0], block.data(), block.size());
        if (got > 0) read.append(block.data(), static_cast<std::size_t>(got));
    }
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(read == whole);
}
