// hone completion and hone manual, run by the shells and by roff themselves where they are installed; and the
// examples of --help, which have to work.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <regex>
#include <thread>

#include "tests/cli/made_checkpoints.h"
#include "tests/cli/program.h"

using namespace hone::test;
namespace fs = std::filesystem;

namespace {

std::string script_for(const Sandbox& sandbox, const std::string& shell) {
    const Ended ended = sandbox.run({"completion", shell});
    REQUIRE(ended.code == 0);
    return sandbox.write("hone." + shell, ended.out).string();
}

/// What bash offers for the last of these words, one a line.
std::vector<std::string> bash_offers(const Sandbox& sandbox, const std::string& words) {
    const std::string script =
        "source " + script_for(sandbox, "bash") + "; COMP_WORDS=(" + words +
        "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _hone; printf '%s\\n' \"${COMPREPLY[@]}\"";
    const Ended ended = sandbox.run_other("/bin/bash", {"--norc", "-c", script});
    INFO(ended.err);
    CHECK(ended.err.empty());
    return lines_of(ended.out);
}

bool has(const std::vector<std::string>& lines, const std::string& line) {
    return std::ranges::find(lines, line) != lines.end();
}

/// "tune", "model" ... as hone --help lists them.
std::vector<std::string> command_names(const Sandbox& sandbox) {
    const std::vector<std::string> lines = lines_of(sandbox.run({"--help"}).out);
    std::vector<std::string> names;
    auto line =
        std::ranges::find_if(lines, [](const std::string& text) { return text.starts_with("Subcommands:"); });
    REQUIRE(line != lines.end());
    for (++line; line != lines.end() && line->starts_with("  "); ++line) {
        if ((*line)[2] != ' ') names.push_back(line->substr(2, line->find(' ', 2) - 2));
    }
    return names;
}

/// "--effort" ... as a command's --help lists them.
std::vector<std::string> option_names(const Sandbox& sandbox, const std::string& command) {
    std::vector<std::string> names;
    const std::regex option("^  (?:-[a-z],)?(--[a-z-]+)");
    for (const std::string& line : lines_of(sandbox.run({command, "--help"}).out)) {
        std::smatch found;
        if (std::regex_search(line, found, option)) names.push_back(found[1]);
    }
    return names;
}

/// Examples of --help, without comments.
std::vector<std::string> examples_of(const Sandbox& sandbox, const std::string& command) {
    std::vector<std::string> examples;
    const std::vector<std::string> lines = lines_of(sandbox.run({command, "--help"}).out);
    REQUIRE(lines.front() == "Examples:");
    for (std::size_t i = 1; i < lines.size() && lines[i].starts_with("  hone "); ++i)
        examples.push_back(lines[i].substr(2, lines[i].find(" #") - 2));
    return examples;
}

bool is_server(const std::string& example) { return example.starts_with("hone serve"); }

/// The same command, less work.
std::string with_less_work(std::string line) {
    const auto add = [&](std::string_view command, std::string_view option, const char* words) {
        if (line.starts_with(command) && line.find(option) == std::string::npos) line += words;
    };
    add("hone tune", "--tokens", " --tokens 16");
    add("hone tune", "--effort", " --effort quick");
    add("hone compile", "--tokens", " --tokens 16");
    add("hone bench", "--rounds", " --rounds 1");
    for (const std::string_view large : {"llama-3-8b --made-up", "llama-3-8b --tokens 1,8 --kv",
                                         "llama-3-8b --chain", "llama-3-8b --format w4a16 --group"}) {
        if (const std::size_t at = line.find(large); at != std::string::npos) line.replace(at, 10, "gpt2");
    }
    if (line.find("--energy") != std::string::npos) line += " --seconds 0.1";
    if (is_server(line)) {  // at a port that is free
        if (const std::size_t at = line.find(" --port 9000"); at != std::string::npos) line.erase(at, 12);
        line = "exec " + line + " --port 0 >address.txt";
    }
    return line;
}

/// Asks it to stop as soon as it has said where it listens, or when it has not within half a minute.
void stop_server(const Sandbox& sandbox, pid_t pid) {
    for (int i = 0; i < 3000 && !sandbox.read("address.txt").starts_with("listening on "); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(kill(pid, SIGINT) == 0);
}

/// The files that the examples name.
void write_files_of_examples(Sandbox& sandbox) {
    sandbox.write("config.json",
                  R"({"hidden_size":256,"intermediate_size":512,"num_attention_heads":4,"num_hidden_layers":2,
        "vocab_size":100,"rms_norm_eps":1e-5,"torch_dtype":"bfloat16"})");
    write_checkpoint(sandbox.path("checkpoint"), small_model());
    const nlohmann::json gptq{
        {"quantization_config", {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}}}};
    write_checkpoint(sandbox.path("gptq-checkpoint"), gptq_layer({}).tensors, gptq);
    write_runnable_model(sandbox.path("FOLDER"));
    for (const char* file : {"story.txt", "text.txt"}) sandbox.write(file, "Once upon a time");
    for (const char* file : {"linear.json", "attention.json"}) {
        sandbox.write(file,
                      R"({"schema":"hone.compare/1","name":"linear","date":"2026-11-21T10:00:00+00:00",
            "machine":{"device":"H100","torch":"2.11.0","cudnn":91900},"results":[{"case":{"op":"linear","tokens":4},
            "sets":1,"bytes":1,"flops":1,"peers":[{"name":"hone","us":2.5},{"name":"eager","us":3}]}]})");
    }
    sandbox.set("HONE_CACHE", sandbox.path("other/cache.db").string());
    REQUIRE(sandbox
                .run({"tune", "--op", "rmsnorm", "--fields", "dtype=bf16 hidden=4096", "--tokens", "16",
                      "--effort", "quick"})
                .code == 0);
    sandbox.set("HONE_CACHE", sandbox.path("cache/cache.db").string());
}

}  // namespace

TEST_CASE("bash completes commands, options and their values") {
    const Sandbox sandbox;
    const std::vector<std::string> commands = command_names(sandbox);
    CHECK(commands.size() >= 16);
    CHECK(bash_offers(sandbox, "hone ''").size() == commands.size());
    CHECK(bash_offers(sandbox, "hone tu") == std::vector<std::string>{"tune"});
    for (const std::string& command : commands) {
        CAPTURE(command);
        const std::vector<std::string> offered = bash_offers(sandbox, "hone " + command + " -");
        for (const std::string& option : option_names(sandbox, command)) CHECK(has(offered, option));
    }
    CHECK(bash_offers(sandbox, "hone tune gpt2 --effort s") == std::vector<std::string>{"standard"});
    CHECK(bash_offers(sandbox, "hone tune gpt2 --effort = s") == std::vector<std::string>{"standard"});
    CHECK(has(bash_offers(sandbox, "hone tune --op A"), "Attention"));
    CHECK(has(bash_offers(sandbox, "hone tune llama-3-8"), "llama-3-8b"));
    CHECK(has(bash_offers(sandbox, "hone tune hone.b"), "hone.bash"));  // a file
    CHECK(has(bash_offers(sandbox, "hone list --model gp"), "gpt2"));
    CHECK(has(bash_offers(sandbox, "hone compile --arch sm_9"), "sm_90a"));
    CHECK(has(bash_offers(sandbox, "hone list Rms"), "RmsNorm"));
    CHECK(has(bash_offers(sandbox, "hone cache v"), "verify"));
    CHECK(bash_offers(sandbox, "hone completion f") == std::vector<std::string>{"fish"});
}

TEST_CASE("bash completes files whole, whatever is in their names") {
    const Sandbox sandbox;
    const std::vector<std::string> names{"*", "a b.json", "a(1).json"};
    for (const std::string& name : names) sandbox.write(name, "");
    for (const std::string& name : names)
        CHECK(std::ranges::count(bash_offers(sandbox, "hone import ''"), name) == 1);
    CHECK(bash_offers(sandbox, "hone import 'a '") == std::vector<std::string>{"a b.json"});
    CHECK(bash_offers(sandbox, "hone import '*'") == std::vector<std::string>{"*"});
}

TEST_CASE("a model's file whose name is a command is none to complete") {
    Sandbox sandbox;
    fs::create_directories(sandbox.path("data/models"));
    for (const char* name : {"$(touch made)", "`touch made`", "a b", "-x", "own-1.5_b"})
        fs::copy_file(HONE_SOURCE_DIR "/configs/models/gpt2.yaml",
                      sandbox.path("data/models") / (std::string(name) + ".yaml"));
    sandbox.set("HONE_DATA_DIR", sandbox.path("data").string());
    const std::vector<std::string> offers = bash_offers(sandbox, "hone tune \"\"");
    CHECK(has(offers, "own-1.5_b"));
    CHECK_FALSE(has(offers, "-x"));
    CHECK_FALSE(has(offers, "a"));
    CHECK_FALSE(fs::exists(sandbox.path("made")));
}

TEST_CASE("zsh takes its script" * doctest::skip(!fs::exists("/usr/bin/zsh"))) {
    const Sandbox sandbox;
    const std::string script = script_for(sandbox, "zsh");
    const Ended ended = sandbox.run_other(
        "/usr/bin/zsh",
        {"-f", "-c", "autoload -U compinit && compinit -D && source " + script + " && print $_comps[hone]"});
    CHECK(ended.err.empty());
    CHECK(ended.out == "_hone\n");
    const std::string text = sandbox.read("hone.zsh");
    for (const std::string& command : command_names(sandbox)) {
        CAPTURE(command);
        CHECK(text.find("\n    " + command + ")\n") != std::string::npos);
    }
}

TEST_CASE("fish completes commands, options and their values" * doctest::skip(!fs::exists("/usr/bin/fish"))) {
    const Sandbox sandbox;
    const std::string script = script_for(sandbox, "fish");
    const auto offers = [&](const std::string& words) {
        const Ended ended = sandbox.run_other(
            "/usr/bin/fish", {"--no-config", "-c", "source " + script + "; complete -C '" + words + "'"});
        CHECK(ended.err.empty());
        std::vector<std::string> offered;
        for (const std::string& line : lines_of(ended.out))
            offered.push_back(line.substr(0, line.find('\t')));
        return offered;
    };
    for (const std::string& command : command_names(sandbox)) CHECK(has(offers("hone "), command));
    CHECK(has(offers("hone tune --eff"), "--effort"));
    CHECK(offers("hone tune --effort ").size() == 4);
    CHECK(has(offers("hone list --model gp"), "gpt2"));
    CHECK(has(offers("hone tune --op At"), "Attention"));
}

TEST_CASE("the man page has every command and option, and roff takes it without a warning") {
    const Sandbox sandbox;
    const std::string page = sandbox.run({"manual"}).out;
    const std::regex hyphen("-");
    for (const std::string& command : command_names(sandbox)) {
        CAPTURE(command);
        CHECK(page.find(".SS \"" + command + "\"\n") != std::string::npos);
        for (const std::string& option : option_names(sandbox, command)) {
            CAPTURE(option);
            CHECK(page.find(std::regex_replace(option, hyphen, "\\-")) != std::string::npos);
        }
    }
    if (!fs::exists("/usr/bin/groff")) return;
    sandbox.write("hone.1", page);
    const Ended rendered = sandbox.run_other("/usr/bin/groff", {"-man", "-ww", "-Tascii", "hone.1"});
    CHECK(rendered.code == 0);
    CHECK(rendered.err.empty());
}

TEST_CASE("every example of --help works") {
    Sandbox sandbox;
    sandbox.use_fake_gpus("nvml:power_mw=400000;" + all_weights_have_codes());
    write_files_of_examples(sandbox);
    sandbox.set("PATH", fs::path(HONE_PROGRAM).parent_path().string() + ":/usr/bin:/bin");
    for (const std::string& command : command_names(sandbox)) {
        const std::vector<std::string> examples = examples_of(sandbox, command);
        CHECK_FALSE(examples.empty());
        for (const std::string& example : examples) {
            CAPTURE(example);
            const auto stop = [&](pid_t pid) {
                if (is_server(example)) stop_server(sandbox, pid);
            };
            sandbox.write("address.txt", "");
            const Ended ended = sandbox.run_other("/bin/sh", {"-c", with_less_work(example)}, stop);
            INFO(ended.err);
            CHECK(ended.code == 0);
        }
    }
}
