#include "hone/attention.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "kernel_templates/attention_decode/attention_decode.h"
#include "kernel_templates/attention_prefill/tile.h"
#include "tests/runtime/attention_under_test.h"

namespace hone::runtime {
namespace {

using namespace hone::test;

TEST_CASE("a call of few queries is one of decode, its strides filled in") {
    namespace family = attention_decode;
    NotingMachine noting(family::kernel_args);
    Dispatcher dispatcher({.use_cache = false}, noting.driver);
    const AttentionKernel attention = prepare(dispatcher, small);
    AttentionArgs args = usual_args();
    args.out_strides = {.batch = 5000, .token = 50, .head = 500};
    REQUIRE(attention.run(nullptr, args, {.batch = 2, .q_len = 3, .kv_len = 90}) == Status::ok);
    CHECK(noting.launched() ==
          std::vector<std::uint64_t>{
              mebibyte(1), mebibyte(2), mebibyte(3), 0,   0,  0,           0,                    //
              mebibyte(4), 0,           mebibyte(5),                                             //
              2,           90,          3,           126, 42, 7,           5000,       50, 500,  //
              1260,        14,          7,           0,   2,  bits(0.25F), bits(1.0F), 0,  0,   6});
}

TEST_CASE("a call from pages hands on the table, the pool, the scales and the sinks") {
    namespace family = attention_decode;
    NotingMachine noting(family::kernel_args);
    Dispatcher dispatcher({.use_cache = false}, noting.driver);
    Attention described = small;
    described.max_q_len = 1;
    described.kv_dtype = KvDtype::fp8;
    described.page_size = 16;
    described.lengths = described.lse = described.softcap = described.sinks = true;
    const AttentionKernel attention = prepare(dispatcher, described);
    AttentionArgs args = usual_args();
    args.kv_lengths = address<std::int32_t>(6);
    args.page_table = address<std::int32_t>(7);
    args.k_scale = address<float>(8);
    args.v_scale = address<float>(9);
    args.lse = address<float>(10);
    args.softcap = 30.0F;
    args.scale = 0.0F;
    CHECK(attention.run(nullptr, args, {4, 1, 90}) == Status::bad_pages);
    args.pool_pages = 77;
    CHECK(attention.run(nullptr, args, {4, 1, 90}) == Status::null_pointer);
    CHECK(attention.refusal(args, {4, 1, 90}).find("sinks") != std::string::npos);
    args.sinks = address<float>(11);
    REQUIRE(attention.run(nullptr, args, {4, 1, 90}) == Status::ok);
    CHECK(noting.launched() == std::vector<std::uint64_t>{mebibyte(1),
                                                          mebibyte(2),
                                                          mebibyte(3),
                                                          mebibyte(6),
                                                          mebibyte(7),
                                                          mebibyte(8),
                                                          mebibyte(9),
                                                          mebibyte(4),
                                                          mebibyte(10),
                                                          mebibyte(5),
                                                          4,
                                                          90,
                                                          1,
                                                          42,
                                                          42,
                                                          7,
                                                          42,
                                                          42,
                                                          7,  //
                                                          224,
                                                          14,
                                                          7,
                                                          6,
                                                          77,
                                                          bits(1.0F / std::sqrt(7.0F)),
                                                          bits(30.0F),
                                                          mebibyte(11),
                                                          0,
                                                          4});
}

TEST_CASE("a call of more queries is one of prefill, where k and v have strides of their own") {
    namespace family = attention_prefill;
    NotingMachine noting(
        std::span(family::tile_args).first(std::size(family::call_args) - std::size(family::later_args)));
    Dispatcher dispatcher({.use_cache = false}, noting.driver);
    const AttentionKernel attention = prepare(dispatcher, small);
    AttentionArgs args = usual_args();
    args.k_strides = {.batch = 1400, .token = 14, .head = 7};
    args.v_strides = {.token = 28};
    CHECK(attention.run(nullptr, args, {2, 16, 90}) == Status::bad_stride);
    REQUIRE(attention.run(nullptr, args, {2, 17, 90}) == Status::ok);
    CHECK(noting.launched() ==
          std::vector<std::uint64_t>{
              mebibyte(1), mebibyte(2), mebibyte(3), 0,   0,   0,                                         //
              mebibyte(4), 0,           mebibyte(5),                                                      //
              2,           17,          90,          34,  180, 714, 42,          7,         1400, 14, 7,  //
              2520,        28,          7,           714, 42,  7,   bits(0.25F), bits(1.0F)});
}

TEST_CASE("packed calls are prefill's however short they are, with the tokens of all sequences") {
    namespace family = attention_prefill;
    NotingMachine noting(
        std::span(family::tile_args).first(std::size(family::call_args) - std::size(family::later_args)));
    Dispatcher dispatcher({.use_cache = false}, noting.driver);
    Attention described = small;
    described.packed = true;
    const AttentionKernel attention = prepare(dispatcher, described);
    AttentionArgs args = usual_args();
    args.kv_tokens = 200;
    CHECK(attention.run(nullptr, args, {4, 1, 90}) == Status::ok);  // no queries
    args.q_tokens = 3;
    CHECK(attention.run(nullptr, args, {4, 1, 90}) == Status::null_pointer);
    args.q_starts = address<std::int32_t>(6);
    args.kv_starts = address<std::int32_t>(7);
    CHECK(noting.launched().empty());
    REQUIRE(attention.run(nullptr, args, {4, 1, 90}) == Status::ok);
    CHECK(noting.launched() ==
          std::vector<std::uint64_t>{mebibyte(1), mebibyte(2), mebibyte(3), mebibyte(6), mebibyte(7), 0,
                                     mebibyte(4), 0,           mebibyte(5),  //
                                     4,           1,           90,          3,           200,         126,
                                     42,          7,           2800,        14,          7,  //
                                     2800,        14,          7,           126,         42,          7,
                                     bits(0.25F), bits(1.0F)});
    args.kv_tokens = 0;
    CHECK(attention.run(nullptr, args, {4, 1, 90}) == Status::bad_rows);
    args.q_tokens = -1;
    CHECK(attention.run(nullptr, args, {4, 1, 90}) == Status::bad_rows);
}

TEST_CASE(
    "packed calls over pages hand on table, pool, scales and sinks, behind all else, and no starts of keys") {
    namespace family = attention_prefill;
    NotingMachine noting(family::tile_args);
    const AttentionSizes sizes{.batch = 4, .q_len = 2, .kv_len = 90};  // as many tokens: no single ones
    Dispatcher dispatcher({.use_cache = false}, noting.driver);
    Attention described = small;
    described.packed = described.sinks = true;
    described.page_size = 16;
    described.kv_dtype = KvDtype::fp8;
    const AttentionKernel attention = prepare(dispatcher, described);
    AttentionArgs args = usual_args();
    args.q_tokens = 8;
    args.q_starts = address<std::int32_t>(6);
    args.page_table = address<std::int32_t>(8);
    CHECK(attention.run(nullptr, args, sizes) == Status::bad_pages);
    args.pool_pages = 77;
    CHECK(attention.run(nullptr, args, sizes) == Status::null_pointer);
    args.kv_lengths = address<std::int32_t>(7);
    for (const float** needed : {&args.k_scale, &args.v_scale, &args.sinks}) {
        CHECK(attention.run(nullptr, args, sizes) == Status::null_pointer);
        *needed = address<float>(needed == &args.k_scale ? 9 : needed == &args.v_scale ? 10 : 11);
    }
    args.page_table_stride = -1;
    CHECK(attention.run(nullptr, args, sizes) == Status::bad_pages);
    CHECK(attention.refusal(args, sizes).find("page_table_stride") != std::string::npos);
    args.page_table_stride = 0;
    CHECK(noting.launched().empty());
    REQUIRE(attention.run(nullptr, args, sizes) == Status::ok);
    const std::vector<std::uint64_t> launched = noting.launched();
    const std::uint64_t section = launched.at(launched.size() - 8);
    CHECK(launched == std::vector<std::uint64_t>{mebibyte(1),
                                                 mebibyte(2),
                                                 mebibyte(3),
                                                 mebibyte(6),
                                                 0,
                                                 mebibyte(7),
                                                 mebibyte(4),
                                                 0,
                                                 mebibyte(5),  //
                                                 4,
                                                 2,
                                                 90,
                                                 8,
                                                 360,
                                                 336,
                                                 42,
                                                 7,
                                                 224,
                                                 14,
                                                 7,
                                                 224,
                                                 14,
                                                 7,
                                                 336,
                                                 42,
                                                 7,
                                                 bits(0.25F),
                                                 bits(1.0F),
                                                 section,  //
                                                 mebibyte(8),
                                                 6,
                                                 77,
                                                 mebibyte(9),
                                                 mebibyte(10),
                                                 mebibyte(11),
                                                 1});
}

TEST_CASE("single tokens among queries packed over pages are decode's, the others prefill's") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    Attention described = small;
    described.packed = true;
    described.page_size = 16;
    const AttentionKernel attention = prepare(dispatcher, described);
    REQUIRE(attention.reports().size() == 2);
    AttentionArgs args = usual_args();
    args.q_starts = address<std::int32_t>(6);
    args.kv_lengths = address<std::int32_t>(7);
    args.page_table = address<std::int32_t>(8);
    args.pool_pages = 28;
    const auto kernels = [&](std::int64_t q_tokens, AttentionSizes sizes) {
        args.q_tokens = q_tokens;
        const int before = machine.launch_count();
        REQUIRE(attention.run(nullptr, args, sizes) == Status::ok);
        CHECK(attention.refusal(args, sizes).empty());
        std::string families;
        for (int i = before; i < machine.launch_count(); ++i) {
            const std::string kernel = machine.launch(i)->kernel;
            if (!kernel.ends_with("_combine")) families += kernel.substr(10, 1);
        }
        return families;
    };
    CHECK(kernels(4, {4, 1, 90}) == "d");
    CHECK(kernels(43, {4, 40, 90}) == "dp");
    CHECK(kernels(160, {4, 40, 90}) == "p");  // as many tokens as all sequences may have
    CHECK(kernels(0, {4, 40, 90}).empty());
    args.prompts = 4;
    CHECK(kernels(43, {4, 40, 90}) == "p");  // the host knows that there are no single tokens
    args.prompts = 1;
    CHECK(kernels(43, {4, 40, 90}) == "dp");
    CHECK(kernels(160, {4, 40, 90}) == "dp");  // what is known counts more than what sizes say
    CHECK(kernels(4, {4, 1, 90}) == "d");
    for (const std::int64_t wrong : {-1, 5}) {
        args.prompts = wrong;
        CHECK(attention.run(nullptr, args, {4, 40, 90}) == Status::bad_rows);
        CHECK(attention.refusal(args, {4, 40, 90}).find("prompts") != std::string::npos);
    }
    args.prompts = 0;
    args.v_strides = {.token = 28};  // decode's kernels read k and v with the same strides
    CHECK(kernels(43, {4, 40, 90}) == "p");
    CHECK(kernels(4, {4, 1, 90}) == "p");
    args.v_strides = {};
    args.kv_lengths = nullptr;
    const int before = machine.launch_count();
    CHECK(attention.run(nullptr, args, {4, 40, 90}) == Status::null_pointer);
    CHECK(machine.launch_count() == before);
    CHECK(attention.refusal(args, {4, 40, 90}).find("kv_lengths") != std::string::npos);
    CHECK(explain_with(dispatcher, described, {4, 1, 90}).problem.starts_with("attention_decode"));
    CHECK(explain_with(dispatcher, described, {4, 9, 90}).problem.starts_with("attention_prefill"));
}

TEST_CASE(
    "the launch for prompts starts beside that for single tokens, and what these have to join comes last") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    Attention described{.heads = 32,
                        .kv_heads = 8,
                        .head_dim = 128,
                        .max_batch = 64,
                        .max_q_len = 512,
                        .max_kv_len = 4096,
                        .packed = true,
                        .page_size = 16};
    const AttentionKernel attention = prepare(dispatcher, described);
    AttentionArgs args{.q = address<char>(1),
                       .k = address<char>(2),
                       .v = address<char>(3),
                       .out = address<char>(4),
                       .kv_lengths = address<std::int32_t>(7),
                       .q_starts = address<std::int32_t>(6),
                       .page_table = address<std::int32_t>(8),
                       .workspace = address<char>(5),
                       .pool_pages = 28,
                       .q_tokens = 575};
    const AttentionSizes sizes{.batch = 64, .q_len = 512, .kv_len = 4096};
    for (const std::int64_t prompts : {0, 1}) {
        CAPTURE(prompts);
        args.prompts = prompts;
        const int before = machine.launch_count();
        REQUIRE(attention.run(nullptr, args, sizes) == Status::ok);
        REQUIRE(machine.launch_count() >= before + 2);
        CHECK(std::string(machine.launch(before)->kernel) == "attention_decode_ring");
        CHECK(machine.launch(before)->grid[0] <= 132);
        CHECK(std::string(machine.launch(before + 1)->kernel) == "attention_prefill_wgmma");
        CHECK(machine.launch(before + 1)->programmatic == 1);
        for (int i = before + 2; i < machine.launch_count(); ++i)
            CHECK(std::string(machine.launch(i)->kernel) == "attention_decode_combine");
    }
}

TEST_CASE("calls of more than 16 queries from pages are prefill's, those of fewer are decode's") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    Attention described = small;
    described.page_size = 16;
    const AttentionKernel attention = prepare(dispatcher, described);
    AttentionArgs args = usual_args();
    args.page_table = address<std::int32_t>(8);
    args.pool_pages = 28;
    for (const std::int64_t q_len : {1, 16, 17, 40}) {
        const int before = machine.launch_count();
        REQUIRE(attention.run(nullptr, args, {4, q_len, 100}) == Status::ok);
        const std::string kernel = machine.launch(before)->kernel;
        CHECK(kernel.starts_with(q_len <= 16 ? "attention_decode" : "attention_prefill"));
    }
}

TEST_CASE("queries choose the kernel") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const AttentionKernel attention = prepare(dispatcher, small);
    for (const std::int64_t q_len : {1, 2, 3, 8, 16, 17, 40}) {
        const int before = machine.launch_count();
        REQUIRE(attention.run(nullptr, usual_args(), {4, q_len, 100}) == Status::ok);
        const std::string kernel = machine.launch(before)->kernel;
        CHECK(kernel.starts_with(q_len <= 16 ? "attention_decode" : "attention_prefill"));
    }
    CHECK(attention.reports().size() == 6);
}

TEST_CASE("calls of fewer queries than described are refused, and nothing was prepared for them") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    Attention described = small;
    described.min_q_len = 17;
    const AttentionKernel prompts = prepare(dispatcher, described);
    REQUIRE(prompts.reports().size() == 1);
    CHECK(prompts.reports()[0].buckets.front().sizes[1].last == 32);
    CHECK(prompts.run(nullptr, usual_args(), {4, 16, 100}) == Status::bad_rows);
    CHECK(prompts.run(nullptr, usual_args(), {4, 17, 100}) == Status::ok);
    CHECK(prompts.run(nullptr, usual_args(), {4, 0, 100}) == Status::ok);
    CHECK(prompts.workspace_bytes({4, 16, 100}) == 0);
    described.min_q_len = described.max_q_len = 5;
    const AttentionKernel few = prepare(dispatcher, described);
    CHECK(few.reports().size() == 1);
    CHECK(few.run(nullptr, usual_args(), {4, 5, 100}) == Status::ok);
    CHECK(few.workspace_bytes({4, 5, 100}) >= 0);
}

TEST_CASE(
    "a wrong argument of attention is refused before anything is enqueued, and nothing is done for nothing") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    Attention described = small;
    described.softcap = described.lse = true;
    const AttentionKernel attention = prepare(dispatcher, described);
    const auto changed = [&](auto change, AttentionSizes sizes = {.batch = 2, .q_len = 3, .kv_len = 90}) {
        AttentionArgs args = usual_args();
        args.softcap = 30.0F;
        args.lse = address<float>(6);
        change(args);
        const Status decoded = attention.run(nullptr, args, sizes);
        sizes.q_len *= 10;
        const Status prefilled = attention.run(nullptr, args, sizes);
        CHECK(decoded == prefilled);
        return decoded;
    };
    const auto as_is = [](AttentionArgs&) {};
    CHECK(changed([](AttentionArgs& a) { a.q = nullptr; }) == Status::null_pointer);
    CHECK(changed([](AttentionArgs& a) { a.v = nullptr; }) == Status::null_pointer);
    CHECK(changed([](AttentionArgs& a) { a.lse = nullptr; }) == Status::null_pointer);
    CHECK(changed([](AttentionArgs& a) { a.out = address<char>(4) + 1; }) == Status::misaligned);
    CHECK(changed([](AttentionArgs& a) { a.q_strides.head = 6; }) == Status::bad_stride);
    CHECK(changed([](AttentionArgs& a) { a.scale = std::nanf(""); }) == Status::bad_scale);
    CHECK(changed([](AttentionArgs& a) { a.scale = std::numeric_limits<float>::infinity(); }) ==
          Status::bad_scale);
    for (const float softcap : {0.0F, -1.0F, std::nanf("")})
        CHECK(changed([&](AttentionArgs& a) { a.softcap = softcap; }) == Status::bad_scale);
    CHECK(changed(as_is, {5, 3, 90}) == Status::bad_rows);
    CHECK(changed(as_is, {2, 41, 90}) == Status::bad_rows);
    CHECK(changed(as_is, {2, 3, 101}) == Status::bad_rows);
    CHECK(changed(as_is, {2, 3, 0}) == Status::bad_rows);
    CHECK(changed(as_is, {-1, 3, 90}) == Status::bad_rows);
    CHECK(changed(as_is, {0, 3, 0}) == Status::ok);
    CHECK(changed(as_is, {2, 0, 0}) == Status::ok);
    CHECK(AttentionKernel().run(nullptr, usual_args(), {2, 3, 90}) == Status::not_prepared);
    CHECK(machine.launch_count() == 0);
}

TEST_CASE("one workspace serves every call up to its sizes") {
    const FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const AttentionKernel attention = prepare(dispatcher, Attention{.heads = 8,
                                                                    .kv_heads = 2,
                                                                    .head_dim = 128,
                                                                    .max_batch = 4,
                                                                    .max_q_len = 64,
                                                                    .max_kv_len = 20000});
    const std::int64_t most = attention.workspace_bytes({4, 64, 20000});
    for (const AttentionSizes sizes :
         {AttentionSizes{1, 1, 20000}, {4, 16, 20000}, {2, 9, 700}, {4, 64, 64}}) {
        const std::int64_t bytes = attention.workspace_bytes(sizes);
        CHECK(bytes <= most);
        CHECK(bytes >= attention.workspace_bytes({1, 1, sizes.kv_len}));
        AttentionArgs args = usual_args();
        args.workspace = nullptr;
        if (bytes == 0) CHECK(attention.run(nullptr, args, sizes) == Status::ok);
    }
    CHECK(attention.workspace_bytes({4, 0, 20000}) == 0);
    CHECK_THROWS_WITH(static_cast<void>(attention.workspace_bytes({5, 1, 1})),
                      doctest::Contains("batch is 5; allowed: 0 to 4"));
    CHECK_THROWS_WITH(static_cast<void>(attention.workspace_bytes({1, 65, 1})),
                      doctest::Contains("q_len is 65; allowed: 0 to 64"));
    CHECK_THROWS_AS(static_cast<void>(AttentionKernel().workspace_bytes({1, 1, 1})), Error);
    CHECK_THROWS_AS(static_cast<void>(AttentionKernel().reports()), Error);
}

}  // namespace
}  // namespace hone::runtime
