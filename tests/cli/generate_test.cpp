// hone generate from the outside, on the fake driver, whose kernels draw token 0 ("!").
#include <doctest/doctest.h>

#include <signal.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include "runtime/compile/compiler_count.h"
#include "tests/cli/made_checkpoints.h"
#include "tests/cli/program.h"

using namespace hone::test;

namespace {

namespace fs = std::filesystem;

struct Model {
    Sandbox sandbox;

    Model() {
        sandbox.use_fake_gpus();
        write_runnable_model(sandbox.path("model"));
    }
    [[nodiscard]] Ended generate(std::vector<std::string> words) const {
        words.insert(words.begin(), {"generate", "model"});
        return sandbox.run(words);
    }
    [[nodiscard]] std::string refusal(std::vector<std::string> words) const {
        const Ended ended = generate(std::move(words));
        CHECK(ended.code == 2);
        CHECK(ended.out.empty());
        return ended.err;
    }
};

bool has(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

/// How often a file is opened from now on.
class Openings {
  public:
    /// Events that are alike become one, so that closing is watched between opening and opening again.
    explicit Openings(const fs::path& file) : watch_(inotify_init1(IN_NONBLOCK)) {
        REQUIRE(inotify_add_watch(watch_, file.c_str(), IN_OPEN | IN_CLOSE) >= 0);
    }
    Openings(const Openings&) = delete;
    Openings& operator=(const Openings&) = delete;
    ~Openings() { close(watch_); }
    [[nodiscard]] int count() {
        inotify_event event{};
        while (read(watch_, &event, sizeof event) == ssize_t{sizeof event})
            opened_ += (event.mask & IN_OPEN) != 0 ? 1 : 0;
        return opened_;
    }

  private:
    int watch_;
    int opened_ = 0;
};

}  // namespace

TEST_CASE("a text comes as it grows, and as JSON with its times") {
    const Model model;
    const Ended shown = model.generate({"-p", "Once upon", "-n", "5"});
    CHECK(shown.code == 0);
    CHECK(shown.out == "!!!!!\n");
    const Ended json = model.generate({"-p", "Once upon", "-n", "5", "--json"});
    CHECK(json.code == 0);
    const nlohmann::json data = json.json()["data"];
    CHECK(data["text"] == "!!!!!");
    CHECK(data["tokens"] == nlohmann::json{{0, 0, 0, 0, 0}});
    CHECK(data["stats"]["new_tokens"] == 5);
    CHECK(data["stats"]["ms_to_first_token"] > 0);
    const Ended ids = model.generate({"--prompt-ids", "1,2,3", "-n", "3", "--stats"});
    CHECK(ids.out.starts_with("0,0,0\n"));
    CHECK(has(ids.out, "3 tokens after 3 of model"));
}

TEST_CASE("a folder's config.json is read once for what the model is, and once for its codes") {
    const Model model;
    Openings openings(model.sandbox.path("model/config.json"));
    CHECK(model.generate({"--prompt-ids", "1,2,3", "-n", "3"}).code == 0);
    CHECK(openings.count() == 2);
    // And once for its tokenizer, which looks there for end ids.
    CHECK(model.generate({"-p", "Once upon", "-n", "3"}).code == 0);
    CHECK(openings.count() == 2 + 3);
}

TEST_CASE("a text that Ctrl-C cuts short is no success") {
    Model model;
    model.sandbox.use_fake_gpus("driver:init_us=3000000");
    const Ended ended = model.sandbox.run({"generate", "model", "-p", "Once upon", "-n", "5"}, [](pid_t pid) {
        std::this_thread::sleep_for(std::chrono::seconds(1));
        kill(pid, SIGINT);
    });
    CHECK(ended.code == 130);
    CHECK(has(ended.err, "stopping after this token"));
    CHECK(has(ended.err, "error: stopped by Ctrl-C, before the end of the text"));
}

TEST_CASE("the times of a text say what they depend on") {
    const Model model;
    const Ended shown = model.generate({"-p", "Once upon", "-n", "5", "--stats"});
    INFO(shown.out);
    CHECK(shown.out.starts_with("!!!!!\n5 tokens after"));
    CHECK(has(shown.out, "a step's graph alone 0."));
    CHECK(has(shown.out, " MHz of "));
    CHECK(has(shown.out, "0 of its 7 kernels were measured on this kind of GPU\n"));
    CHECK(has(shown.out, "\n  output of attention (fallback): linear "));
    const nlohmann::json step =
        model.generate({"-p", "Once upon", "-n", "5", "--stats", "--json"}).json()["data"]["stats"]["step"];
    CHECK(step["graph_ms"] > 0);
    CHECK(step["sm_mhz"] > 0);
    CHECK(step["throttled"] == false);
    CHECK(step["kernels"] == 7);
    REQUIRE(step["not_measured"].size() == 7);
    for (const nlohmann::json& kernel : step["not_measured"]) CHECK(kernel["origin"] == "fallback");
    CHECK(step["other_processes"] == 0);
    CHECK_FALSE(model.generate({"-p", "Once", "-n", "5", "--json"}).json()["data"]["stats"].contains("step"));
}

TEST_CASE("of the processes that the GPU's monitor lists one is this one, under whatever number") {
    Model model;
    for (const auto& [script, others] :
         {std::pair{"nvml:tenant=4242", 0}, std::pair{"nvml:tenant=4242; nvml:tenant=4243", 1}}) {
        CAPTURE(script);
        model.sandbox.use_fake_gpus(script);
        const Ended ended = model.generate({"-p", "Once", "-n", "3", "--stats", "--json"});
        CHECK(ended.json()["data"]["stats"]["step"]["other_processes"] == others);
    }
}

TEST_CASE(
    "the kernels of a model are compiled side by side, each image once, and come from the cache later") {
    if (hone::runtime::compiler_count() < 2) {
        MESSAGE("skipped: there is one core, or memory for one compiler");
        return;
    }
    Model model;
    // None is done before a second one has begun.
    model.sandbox.set("HONE_FAKE_SCRIPT", "compile:log=" + model.sandbox.path("log").string() + ":meet=2");
    CHECK(model.generate({"-p", "Once", "-n", "2"}).code == 0);
    const std::string log = model.sandbox.read("log");
    std::set<std::string> processes;
    std::set<std::string> images;
    for (const std::string& line : lines_of(log)) {
        processes.insert(line.substr(0, line.find(' ')));
        CHECK(images.insert(line.substr(line.find(' '))).second);
    }
    CHECK(processes.size() > 1);
    CHECK(images.size() > 10);
    CHECK(model.generate({"-p", "Once", "-n", "2"}).code == 0);
    CHECK(model.sandbox.read("log") == log);
}

TEST_CASE("the model of examples/tiny-llama is loaded, and its text comes to its end") {
    const Model model;
    const std::string folder = (fs::path(HONE_SOURCE_DIR) / "examples/tiny-llama").string();
    const Ended ended =
        model.sandbox.run({"generate", folder, "-p", "It is a truth universally acknowledged, that", "-n",
                           "20", "--ignore-end", "--json"});
    INFO(ended.err);
    CHECK(ended.code == 0);
    const nlohmann::json data = ended.json()["data"];
    CHECK(data["tokens"] == nlohmann::json::array({std::vector<int>(20, 0)}));
    CHECK(data["stats"]["prompt_tokens"] == 21);
    CHECK(data["stats"]["weight_bytes"] > 6'000'000);
}

TEST_CASE("a text ends before its stop, and several are drawn side by side") {
    const Model model;
    CHECK(model.generate({"-p", "Once", "-n", "9", "--stop", "!!!!"}).out == "\n");
    CHECK(model.generate({"-p", "Once", "-n", "9", "--stop", "?"}).out == "!!!!!!!!!\n");
    const nlohmann::json data =
        model.generate({"-p", "Once", "-n", "4", "--sequences", "3", "--json"}).json()["data"];
    CHECK(data["tokens"].size() == 3);
    CHECK(data["stats"]["new_tokens"] == 12);
}

namespace {

/// A model whose conversations have the form of ChatML, and what is said to it: lines of stdin.
struct ChatModel : Model {
    ChatModel() {
        const fs::path root = HONE_SOURCE_DIR;
        for (const char* file : {"examples/tiny-llama/config.json", "examples/tiny-llama/model.safetensors",
                                 "tests/decoder/data/qwen/tokenizer.json"}) {
            const fs::path copy = sandbox.path("model") / fs::path(file).filename();
            fs::remove(copy);
            fs::create_symlink(root / file, copy);
        }
        const std::string chat =
            "{% if messages[0].role != 'system' %}{{ '<|im_start|>system\nBe brief.<|im_end|>\n' }}{% endif "
            "%}"
            "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
            "{% endfor %}{{ '<|im_start|>assistant\n' }}";
        sandbox.write("model/tokenizer_config.json",
                      nlohmann::json{{"eos_token", "<|endoftext|>"}, {"chat_template", chat}}.dump());
    }
    [[nodiscard]] Ended say(const std::string& lines, const std::string& options) const {
        return sandbox.run_other(
            "/bin/sh",
            {"-c", "printf '" + lines + "' | '" HONE_PROGRAM "' generate model --chat " + options});
    }
};

}  // namespace

TEST_CASE("lines of stdin are answered, until its end or /exit") {
    const ChatModel model;
    const Ended ended = model.say("Hello\n\n  \nAnd you?", "-n 5");
    INFO(ended.err);
    CHECK(ended.code == 0);
    CHECK(ended.out == "!!!!!\n!!!!!\n");
    CHECK(model.say("Hello\n/exit\nAnd you?\n", "-n 3 --system Short.").out == "!!!\n");
    CHECK(model.say("", "").out.empty());
}

TEST_CASE("a conversation that cannot be read or written is a failure, and ends where its reader has gone") {
    const ChatModel model;
    const auto shell = [&](const std::string& script) {
        return model.sandbox.run_other("/bin/bash", {"-c", script});
    };
    const std::string chat = "'" HONE_PROGRAM "' generate model --chat -n 3";
    const Ended folder = shell(chat + " <model");
    CHECK(folder.code == 2);
    CHECK(has(folder.err, "stdin cannot be read: Is a directory"));
    const Ended full = shell("printf 'a\nb\n' | " + chat + " >/dev/full");
    CHECK(full.code == 1);
    CHECK(has(full.err, "stdout cannot be written: No space left on device"));
    // The second line is never answered: its refusal would stand on stderr.
    const Ended gone = shell("{ sleep 0.5; printf 'a\n'; sleep 0.5; head -c 2000000 /dev/zero; } | " + chat +
                             " | true; echo ${PIPESTATUS[1]}");
    CHECK(gone.out == "0\n");
    CHECK(gone.err.empty());
}

TEST_CASE("an answer is as long as the context has room for, and what has none left is said") {
    const ChatModel model;
    const Ended ended = model.say("Hello\nHello again\n", "--context 64");
    CHECK(ended.code == 0);
    CHECK(ended.out.starts_with("!!!!"));
    CHECK(std::count(ended.out.begin(), ended.out.end(), '\n') == 1);
    CHECK(has(ended.err, "allowed: up to the context, 64"));
}

TEST_CASE("a conversation needs a template and nothing that makes none") {
    const ChatModel model;
    for (const char* options : {"-p Hello", "--sequences 2", "--stats", "--json", "--prompt-ids 1"}) {
        const Ended ended = model.say("Hello\n", options);
        CHECK(ended.code == 2);
        CHECK(has(ended.err + ended.out, "--chat reads what is said from stdin"));
    }
    CHECK(has(model.refusal({"-p", "a", "--system", "b"}), "--system goes with --chat"));
    CHECK(has(model.refusal({"-p", "a", "--no-thinking"}), "--no-thinking goes with --chat"));
    CHECK(has(model.say("Hello\n", "--no-thinking").err,
              "--no-thinking: the model's chat template has no such choice"));
    model.sandbox.write("model/tokenizer_config.json", R"({"chat_template": "{% if something %}"})");
    const Ended broken = model.say("Hello\n", "");
    CHECK(broken.code == 2);
    CHECK(has(broken.err, "tokenizer_config.json: chat_template: line 1: the template ends where"));
}

TEST_CASE("codes of 4 and 8 bits are made while weights are read") {
    Model model;
    model.sandbox.use_fake_gpus(all_weights_have_codes());
    for (const char* format : {"w4a16", "w8a16", "w8a8", "fp8"}) {
        const Ended ended = model.generate({"-p", "Once", "-n", "2", "--format", format});
        INFO(ended.err);
        CHECK(ended.code == 0);
    }
}

TEST_CASE("what hone quantize has packed runs as it is, with the tokenizer that it took along") {
    const Model model;
    for (const char* format : {"w4a16", "w8a16", "w8a8", "fp8"}) {
        const std::string packed = std::string("packed-") + format;
        REQUIRE(model.sandbox.run({"quantize", "model", "--format", format, "-o", packed}).code == 0);
        CHECK(model.sandbox.read(packed + "/tokenizer.json") == model.sandbox.read("model/tokenizer.json"));
        const Ended ended = model.sandbox.run({"generate", packed, "-p", "Once", "-n", "3"});
        INFO(ended.err);
        CHECK(ended.code == 0);
        CHECK(ended.out == "!!!\n");
        CHECK(model.sandbox.run({"generate", packed, "-p", "Once", "-n", "3", "--format", format}).code == 0);
    }
    const Ended other = model.sandbox.run({"generate", "packed-fp8", "-p", "Once", "--format", "w4a16"});
    CHECK(other.code == 2);
    CHECK(has(other.err,
              "--format w4a16: packed-fp8/config.json: quantization_config says that the weights have codes "
              "already, of the format fp8; allowed: what they are, or no --format"));
}

TEST_CASE("prompts are made up of tokens that the model knows, however few these are") {
    const Model model;
    const Ended ended = model.generate({"--prompt-tokens", "100", "--sequences", "2", "-n", "3", "--json"});
    INFO(ended.err);
    CHECK(ended.code == 0);
    CHECK(ended.json()["data"]["stats"]["prompt_tokens"] == 100);
}

TEST_CASE("what does not go is refused before anything is loaded, by its name") {
    const Model model;
    CHECK(has(model.refusal({"--prompt-ids", "1,x"}), "--prompt-ids: 'x' is no id of a token"));
    CHECK(has(model.refusal({"--prompt-ids", "1,422"}),
              "the prompt has the token 422; the model knows 0 to 421"));
    CHECK(has(model.refusal({"-p", "a", "--context", "2000"}), "context is 2000; allowed: 1 to 1024"));
    CHECK(has(model.refusal({"-p", "a", "--format", "w5"}), "--format"));
    CHECK(has(model.refusal({"-p", "a", "--stop", "b", "--stop", ""}), "--stop: an empty text"));
    CHECK(has(model.refusal({"-p", "a", "--zeros"}), "go with --format"));
    CHECK(has(model.refusal({"-p", "a", "--format", "w4a16", "--group", "7"}),
              "--group: group is 7; allowed with w4a16: 0, 32, 64, 128"));
    for (const std::vector<std::string>& two : {std::vector<std::string>{"-p", "a", "--prompt-ids", "5"},
                                                {"-p", "a", "--prompt-tokens", "3"},
                                                {"--prompt-ids", "1", "--prompt-tokens", "3"},
                                                {"--prompt-ids", "5", "--prompt-file", "/nonexistent"}})
        CHECK(has(model.refusal(two), "a text, --prompt-ids and --prompt-tokens are prompts by themselves"));
    CHECK(has(model.refusal({"--prompt-ids", "5", "--stop", "!"}), "--stop looks at text"));
    const Ended made_up = model.sandbox.run({"generate", "llama-3.2-1b", "--made-up", "-p", "x", "-n", "2"});
    CHECK(made_up.code == 2);
    CHECK(has(made_up.err, "--made-up has no tokenizer"));
    fs::remove(model.sandbox.path("model/model.safetensors"));
    CHECK(has(model.refusal({"-p", "a"}), "model"));
}

TEST_CASE("a folder whose weights do not fit its config.json is refused by tensor and shape") {
    Model model;
    std::string config = model.sandbox.read("model/config.json");
    const std::string wide = "\"intermediate_size\":256";
    config.replace(config.find(wide), wide.size(), "\"intermediate_size\":512");
    model.sandbox.write("model/config.json", config);
    CHECK(
        has(model.refusal({"-p", "a"}),
            "tensor 'model.layers.0.mlp.gate_proj.weight': has the shape [256, 128]; as config.json says, it "
            "has to be [512, 128]"));
}

TEST_CASE("a shard that is missing is named before any is read") {
    const Model model;
    fs::rename(model.sandbox.path("model/model.safetensors"),
               model.sandbox.path("model/model-00001-of-00002.safetensors"));
    model.sandbox.write("model/model.safetensors.index.json",
                        R"({"weight_map": {"model.embed_tokens.weight": "model-00001-of-00002.safetensors",
                                           "lm_head.weight": "model-00002-of-00002.safetensors"}})");
    const std::string refusal = model.refusal({"-p", "a"});
    INFO(refusal);
    CHECK(has(refusal, "model-00002-of-00002.safetensors"));
    CHECK(has(refusal, "No such file"));
    model.sandbox.write(
        "model/model.safetensors.index.json",
        R"({"weight_map": {"model.embed_tokens.weight": "model-00001-of-00002.safetensors"}})");
    CHECK(has(model.refusal({"-p", "a"}), "no tensor 'model.layers.0.input_layernorm.weight'"));
}

TEST_CASE("an architecture that is not run says what it lacks") {
    const Model model;
    const std::string config = model.sandbox.read("model/config.json");
    const auto refusal = [&](const std::string& from, const std::string& to) {
        std::string other = config;
        other.replace(other.find(from), from.size(), to);
        model.sandbox.write("model/config.json", other);
        return model.refusal({"-p", "a"});
    };
    const std::string llama = "\"model_type\":\"llama\"";
    CHECK(
        has(refusal(llama, "\"model_type\":\"mamba2\""),
            "model_type is 'mamba2' (state spaces in place of attention), whose layers Hone does not know"));
    const std::string bloom = refusal(llama, "\"model_type\":\"bloom\",\"n_head\":4,\"n_layer\":2");
    CHECK_MESSAGE(
        has(bloom, "model_type bloom is not run yet; those that are: cohere, cohere2, falcon, gemma"), bloom);
    CHECK(has(refusal(llama, "\"model_type\":\"gemma2\",\"final_logit_softcapping\":30.5"),
              "not run yet: a cap of logits that is no whole number up to 65536"));
}

TEST_CASE("a tokenizer of another kind is refused by its model") {
    const Model model;
    model.sandbox.write("model/tokenizer.json", R"({"model": {"type": "WordPiece", "vocab": {"a": 0}}})");
    CHECK(has(model.refusal({"-p", "a"}), "\"WordPiece\": a model that is not understood; known is BPE"));
}

TEST_CASE("a prompt over the context is refused with both lengths") {
    const Model model;
    std::string ids = "1";
    for (int i = 1; i < 1020; ++i) ids += ",1";
    const std::string refusal = model.refusal({"--prompt-ids", ids, "-n", "10", "--context", "1024"});
    CHECK(has(refusal, "prompt and max_new_tokens together is 1030; allowed: up to the context, 1024"));
}

TEST_CASE("a long prompt is continued as far as the model has positions, and refused beyond with its size") {
    const Model model;
    std::string ids = "1";
    for (int i = 1; i < 1020; ++i) ids += ",1";
    for (const Sandbox::Words& context : {Sandbox::Words{}, {"--context", "1024"}}) {
        Sandbox::Words words{"--prompt-ids", ids};
        words.insert(words.end(), context.begin(), context.end());
        CHECK(model.generate(words).out == "0,0,0,0\n");
    }
    CHECK(has(model.refusal({"--prompt-ids", ids, "-n", "5"}),
              "the prompt has 1020 tokens, and up to 5 follow; the model has 1024 positions for both"));
    CHECK(has(model.refusal({"--prompt-ids", ids + ",1,1,1,1,1"}), "the prompt has 1025 tokens"));
}

TEST_CASE("a GPU that is too small is told by what does not fit, and what would") {
    Model model;
    model.sandbox.use_fake_gpus("device:memory=700000");
    CHECK(has(model.refusal({"-p", "a"}),
              "the weights take 0.00 GB, and the GPU has 0.00 GB free; codes of 8 or 4 bits"));
    model.sandbox.use_fake_gpus("device:memory=4500000");
    const std::string refusal = model.refusal({"-p", "a", "--context", "1024"});
    INFO(refusal);
    CHECK(has(refusal, "left for keys and values; a text of 1024 tokens needs"));
    CHECK(has(refusal, "a context of up to"));
}

TEST_CASE("without a GPU, or one of that number, it says what is missing") {
    const Model model;
    Sandbox& sandbox = const_cast<Sandbox&>(model.sandbox);
    sandbox.set("HONE_CUDA_LIBRARY", "/nowhere/libcuda.so.1");
    const Ended ended = model.generate({"-p", "a"});
    CHECK(ended.code == 3);
    CHECK(has(ended.err, "libcuda"));
    sandbox.use_fake_gpus();
    const Ended other = model.generate({"-p", "a", "--gpu", "5"});
    CHECK(other.code == 3);
    CHECK(has(other.err, "GPU 5 of 1"));
}
