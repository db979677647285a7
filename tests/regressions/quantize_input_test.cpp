// hone quantize, whose input changes while it is read, or whose output cannot be finished.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "checkpoints/error.h"
#include "checkpoints/pack/quantize_checkpoint.h"
#include "runtime/system/input_error.h"
#include "tests/cli/made_checkpoints.h"
#include "tests/cli/program.h"

using namespace hone::test;
namespace checkpoints = hone::checkpoints;
namespace fs = std::filesystem;

namespace {

/// Names in the sandbox that begin so.
std::vector<fs::path> named(const Sandbox& sandbox, const std::string& beginning) {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(sandbox.path(""))) {
        if (entry.path().filename().string().starts_with(beginning)) found.push_back(entry.path());
    }
    return found;
}

TensorFile large_model() {
    TensorFile model;
    const TensorFile::Entry matrix = bf16_matrix(256, 1024, 1);
    for (int i = 0; i < 64; ++i) model["l" + std::to_string(i) + ".weight"] = matrix;
    return model;
}

/// Runs `hone quantize` on a large model and kills it once it has begun its output.
void kill_at_work(const Sandbox& sandbox) {
    const Ended ended = sandbox.run({"quantize", "in", "--format", "w4a16", "-o", "out"}, [&](pid_t pid) {
        for (int i = 0; i < 2000 && named(sandbox, "out").empty(); ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        kill(pid, SIGKILL);
    });
    REQUIRE(ended.code == 128 + SIGKILL);
}

}  // namespace

TEST_CASE("an input that is cut off after it was opened is an error, for weights and for copied tensors") {
    for (const bool in_copied : {false, true}) {
        CAPTURE(in_copied);
        const Sandbox sandbox;
        TensorFile model = small_model();
        if (in_copied) model["zz"] = bf16_matrix(512, 512, 3);  // stands last in the file
        write_checkpoint(sandbox.path("in"), model);
        const fs::path file = sandbox.path("in/model.safetensors");
        const checkpoints::Checkpoint checkpoint = checkpoints::Checkpoint::open(sandbox.path("in"));
        const auto source =
            checkpoints::layer_source(checkpoint, {.format = hone::QuantFormat::w4a16, .search = false});
        fs::resize_file(file, in_copied ? fs::file_size(file) - 4096 : 4096);
        const std::atomic<bool> stop{false};
        CHECK_THROWS_WITH_AS((void)checkpoints::quantize_checkpoint(
                                 checkpoint, *source, sandbox.path("out"), [](const auto&) {}, stop),
                             doctest::Contains("has to stay as it is while it is read"),
                             checkpoints::CheckpointError);
        CHECK(named(sandbox, "out").empty());
    }
}

TEST_CASE("a file beside the weights that cannot be read is said before any layer is packed") {
    const Sandbox sandbox;
    write_checkpoint(sandbox.path("in"), small_model());
    fs::create_directory(sandbox.path("in/tokenizer.json"));
    const checkpoints::Checkpoint checkpoint = checkpoints::Checkpoint::open(sandbox.path("in"));
    const auto source =
        checkpoints::layer_source(checkpoint, {.format = hone::QuantFormat::w4a16, .search = false});
    const std::atomic<bool> stop{false};
    int layers_begun = 0;
    CHECK_THROWS_WITH_AS(
        (void)checkpoints::quantize_checkpoint(
            checkpoint, *source, sandbox.path("out"), [&](const auto&) { ++layers_begun; }, stop),
        doctest::Contains("tokenizer.json: not a regular file"), hone::runtime::InputError);
    CHECK(layers_begun == 0);
    CHECK(named(sandbox, "out").empty());
}

TEST_CASE("what a killed run has left is removed by the next run of the same output") {
    const Sandbox sandbox;
    write_checkpoint(sandbox.path("in"), large_model());
    kill_at_work(sandbox);
    REQUIRE(named(sandbox, "out.part-").size() == 1);
    write_checkpoint(sandbox.path("small"), small_model());
    const Ended ended = sandbox.run({"quantize", "small", "--format", "w4a16", "-o", "out"});
    CHECK(ended.code == 0);
    CHECK(named(sandbox, "out") == std::vector<fs::path>{sandbox.path("out")});
}

TEST_CASE("what a killed run has left stays for other outputs, and while a process holds it") {
    const Sandbox sandbox;
    write_checkpoint(sandbox.path("in"), large_model());
    kill_at_work(sandbox);
    const std::vector<fs::path> left = named(sandbox, "out.part-");
    REQUIRE(left.size() == 1);
    write_checkpoint(sandbox.path("small"), small_model());
    CHECK(sandbox.run({"quantize", "small", "--format", "w4a16", "-o", "other"}).code == 0);
    CHECK(fs::exists(left.front()));
    const int held = ::open(left.front().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(::flock(held, LOCK_EX | LOCK_NB) == 0);
    CHECK(sandbox.run({"quantize", "small", "--format", "w4a16", "-o", "out"}).code == 0);
    CHECK(fs::exists(left.front()));
    ::close(held);
}
