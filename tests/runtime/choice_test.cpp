#include "runtime/dispatch/choice.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"

namespace hone::runtime {
namespace {

const DeviceTraits& h100() {
    static const DeviceTraits traits = *representative_device({9, 0, true});
    return traits;
}

Problem rmsnorm(std::int64_t rows) {
    std::string error;
    const auto problem = parse_problem("rmsnorm dtype=bf16 hidden=4096 rows=" + std::to_string(rows), &error);
    REQUIRE_MESSAGE(problem, error);
    return *problem;
}

/// Candidates that no number of rows rules out.
const std::vector<RankedCandidate>& space() {
    static const std::vector<RankedCandidate> ranked = [] {
        std::vector<RankedCandidate> all = ranked_space(rmsnorm(256), h100());
        std::erase_if(all, [](const RankedCandidate& one) {
            return std::ranges::any_of(bucket_edges(8192), [&](std::int64_t rows) {
                return !allowed(rmsnorm(rows), one.candidate, h100());
            });
        });
        return all;
    }();
    REQUIRE(ranked.size() > 3);
    return ranked;
}

cache::LoadedWinner winner_of(const Problem& problem, const Candidate& candidate, cache::Trust trust) {
    cache::LoadedWinner loaded;
    loaded.trial.key = {{}, std::string(problem.family->name), static_text(problem), dynamic_text(problem)};
    loaded.trial.candidate = to_string(candidate);
    loaded.trial.template_hash = template_hash(*candidate.variant);
    loaded.trial.winner = true;
    loaded.trial.timing.median_us = 2;
    loaded.trust = trust;
    loaded.layer = "user";
    return loaded;
}

/// The n-th candidate of the space won at `rows`.
cache::LoadedWinner winner(std::int64_t rows, std::size_t n, cache::Trust trust = cache::Trust::exact) {
    return winner_of(rmsnorm(rows), space()[n].candidate, trust);
}

/// As the layers would find them.
WinnersOf those_of(std::vector<cache::LoadedWinner> all) {
    return [all = std::move(all)](std::string_view family, std::string_view static_fields) {
        cache::StaticWinners found;
        std::ranges::copy_if(all, std::back_inserter(found.winners), [&](const cache::LoadedWinner& winner) {
            return winner.trial.key.family == family && winner.trial.key.static_fields == static_fields;
        });
        return found;
    };
}

Choice chosen(std::vector<cache::LoadedWinner> winners, std::int64_t rows) {
    const WinnerTable table(those_of(std::move(winners)));
    const auto choice = choose(rmsnorm(rows), table.find(rmsnorm(rows)).winners, h100());
    REQUIRE(choice);
    return {choice->candidate, choice->origin, choice->trust, choice->measured_at, nullptr};
}

TEST_CASE("without any record the family's fallback runs") {
    const Choice choice = chosen({}, 16);
    CHECK(choice.origin == Origin::fallback);
    CHECK(choice.trust == Trust::none);
    CHECK(choice.candidate == *fallback(rmsnorm(16), h100()));
}

TEST_CASE("the winner of the very bucket comes before nearer knowledge of other kinds") {
    const Choice choice = chosen({winner(8, 1), winner(16, 2), winner(16, 3, cache::Trust::foreign)}, 16);
    CHECK(choice.origin == Origin::exact);
    CHECK(choice.candidate == space()[2].candidate);
    CHECK(choice.measured_at == "rows=16");
}

TEST_CASE("a record of another driver or compiler is dispatched and called compatible") {
    const Choice choice = chosen({winner(16, 2, cache::Trust::compatible)}, 16);
    CHECK(choice.origin == Origin::exact);
    CHECK(choice.trust == Trust::compatible);
}

TEST_CASE("a winner reaches two doublings beyond what was measured, not further") {
    CHECK(chosen({winner(16, 2)}, 64).origin == Origin::neighbour);
    CHECK(chosen({winner(16, 2)}, 4).origin == Origin::neighbour);
    CHECK(chosen({winner(16, 2)}, 128).origin == Origin::fallback);
    CHECK(chosen({winner(16, 2)}, 2).origin == Origin::fallback);
}

TEST_CASE("between two measured buckets the nearest in log space serves, however far") {
    const std::vector<cache::LoadedWinner> winners{winner(1, 1), winner(4096, 2)};
    CHECK(chosen(winners, 32).candidate == space()[1].candidate);
    CHECK(chosen(winners, 128).candidate == space()[2].candidate);
    CHECK(chosen(winners, 64).candidate == space()[2].candidate);  // equally near: the larger
    CHECK(chosen(winners, 64).origin == Origin::neighbour);
}

TEST_CASE("a neighbour on this GPU comes before another GPU's exact bucket") {
    const Choice choice = chosen({winner(8, 1), winner(16, 3, cache::Trust::foreign)}, 16);
    CHECK(choice.origin == Origin::neighbour);
    CHECK(choice.candidate == space()[1].candidate);
}

TEST_CASE("another GPU's winner comes before the fallback and is called foreign") {
    const Choice choice = chosen({winner(16, 3, cache::Trust::foreign)}, 16);
    CHECK(choice.origin == Origin::foreign);
    CHECK(choice.trust == Trust::foreign);
}

TEST_CASE("a product's winners between two buckets make buckets of their own, and no other family's do") {
    const Problem problem = *parse_problem("linear in=4096 out=4096 dtype=bf16 tokens=4096");
    const Candidate candidate = *fallback(with(problem, Sizes{384}), h100());
    const auto known = [&](std::int64_t tokens, Trust trust) {
        return KnownWinner{
            .problem = with(problem, Sizes{tokens}), .candidate = candidate, .trust = trust, .of_kin = {}};
    };
    Knowledge knowledge;
    for (const std::int64_t tokens : {96, 256, 300, 384, 512, 768, 1000, 1792})
        knowledge.winners.push_back(known(tokens, Trust::exact));
    knowledge.winners.push_back(known(640, Trust::compatible));
    knowledge.winners.push_back(known(384, Trust::compatible));
    knowledge.winners.push_back(known(448, Trust::foreign));
    CHECK(measured_between(problem, knowledge, h100()) == std::vector<std::int64_t>{384, 640, 768, 1792});

    const WinnerTable table(those_of({winner(512, 1), winner(768, 2)}));
    CHECK(measured_between(rmsnorm(4096), table.find(rmsnorm(4096)), h100()).empty());
}

Problem product(std::string_view norm, std::string_view residual) {
    std::string error;
    const auto problem =
        parse_problem("linear dtype=bf16 norm=" + std::string(norm) + " residual=" + std::string(residual) +
                          " in=4096 out=4096 tokens=1",
                      &error);
    REQUIRE_MESSAGE(problem, error);
    return *problem;
}

cache::LoadedWinner product_winner(const Problem& problem, const std::string& candidate,
                                   cache::Trust trust = cache::Trust::exact) {
    std::string error;
    const std::optional<Candidate> parsed = parse_candidate(*problem.family, candidate, &error);
    REQUIRE_MESSAGE(parsed, error);
    return winner_of(problem, *parsed, trust);
}

TEST_CASE(
    "a product with a norm or a sum that nobody tuned takes the plain product's winner, its norm folded") {
    const std::string gemv =
        "gemv tokens=1 rows=1 k_warps=8 row_warps=1 unroll=2 load_hint=1 blocks_per_sm=0 programmatic=1 "
        "fold_norm=";
    const std::string other =
        "gemv tokens=1 rows=2 k_warps=8 row_warps=1 unroll=1 load_hint=1 blocks_per_sm=0 programmatic=1 "
        "fold_norm=1";
    const cache::LoadedWinner plain = product_winner(product("no", "no"), gemv + "0");
    const auto chosen_for = [](const Problem& problem, std::vector<cache::LoadedWinner> winners) {
        const WinnerTable table(those_of(std::move(winners)));
        const auto choice = choose(problem, table.find(problem).winners, h100());
        REQUIRE(choice);
        return Choice{choice->candidate, choice->origin, choice->trust, choice->measured_at, nullptr};
    };

    const Choice normed = chosen_for(product("yes", "no"), {plain});
    CHECK(normed.origin == Origin::neighbour);
    CHECK(to_string(normed.candidate) == gemv + "1");
    CHECK(normed.measured_at == "tokens=1 norm=no");

    const Choice summed = chosen_for(product("no", "yes"), {plain});
    CHECK(summed.origin == Origin::neighbour);
    CHECK(to_string(summed.candidate) == gemv + "0");
    CHECK(summed.measured_at == "tokens=1 residual=no");

    CHECK(chosen_for(product("no", "no"), {product_winner(product("yes", "no"), gemv + "1")}).origin ==
          Origin::fallback);

    const Choice own = chosen_for(product("yes", "no"), {plain, product_winner(product("yes", "no"), other)});
    CHECK(own.origin == Origin::exact);
    CHECK(to_string(own.candidate) == other);
    const cache::LoadedWinner foreign = product_winner(product("yes", "no"), other, cache::Trust::foreign);
    CHECK(to_string(chosen_for(product("yes", "no"), {plain, foreign}).candidate) == gemv + "1");
}

TEST_CASE("of winners of kin the nearer kin's come first, whatever their sizes, and each way changes them") {
    const auto append = [](const std::string& rest) {
        const auto problem = parse_problem(
            "attention_append dtype=bf16 page_size=16 heads=32 kv_heads=8 head_dim=128 batch=1 " + rest);
        REQUIRE(problem);
        return *problem;
    };
    const auto ring = [](const std::string& config) {
        return "ring rows=8 warps=4 " + config + " join=0 side_by_side=0 blocks_per_sm=1 ahead=0";
    };
    const auto record = [&](const Problem& problem, const std::string& config) {
        return winner_of(problem, *parse_candidate(*problem.family, ring(config)), cache::Trust::exact);
    };
    const Problem normed = append("norm=yes style=interleaved rotary_dim=64 kv_len=4096");
    const Problem plain = append("norm=no style=half rotary_dim=128 kv_len=4096");
    const Problem decode = *parse_problem(
        "attention_decode dtype=bf16 lengths=yes page_size=16 heads=32 kv_heads=8 head_dim=128 batch=1 "
        "kv_len=4096");
    const std::string of_decode = "unit=16 stages=12 producers=4 cluster=8";
    const std::string of_append = "unit=32 stages=8 producers=4 cluster=8";
    const auto chosen_for = [&](std::vector<cache::LoadedWinner> winners) {
        const WinnerTable table(those_of(std::move(winners)));
        const auto choice = choose(normed, table.find(normed).winners, h100());
        REQUIRE(choice);
        return Choice{choice->candidate, choice->origin, choice->trust, choice->measured_at, nullptr};
    };
    const Choice far = chosen_for({record(decode, of_decode)});
    CHECK(far.origin == Origin::neighbour);
    const Candidate theirs = parse_candidate(*decode.family, ring(of_decode)).value();
    CHECK(to_string(far.candidate) == to_string(normed.family->from_kin(plain, theirs)));
    CHECK(far.measured_at == "batch=1 kv_len=4096 attention_decode");

    const Problem shorter = append("norm=no style=half rotary_dim=128 kv_len=1024");
    const Choice near = chosen_for({record(decode, of_decode), record(shorter, of_append)});
    CHECK(to_string(near.candidate).find(of_append) != std::string::npos);
    CHECK(near.measured_at == "batch=1 kv_len=1024 style=half norm=no rotary_dim=128");
}

TEST_CASE(
    "what nobody tuned in one type of 16 bits takes the other's winner, its own where both are as near") {
    const auto in_dtype = [](const std::string& dtype, const std::string& norm) {
        return parse_problem("linear dtype=" + dtype + " norm=" + norm + " in=4096 out=4096 tokens=1")
            .value();
    };
    const auto gemv = [](int rows, int fold_norm) {
        return fmt::format(
            "gemv tokens=1 rows={} k_warps=8 row_warps=1 unroll=2 load_hint=1 blocks_per_sm=0 programmatic=1 "
            "fold_norm={}",
            rows, fold_norm);
    };
    const auto chosen_for = [](const Problem& problem, std::vector<cache::LoadedWinner> winners) {
        const WinnerTable table(those_of(std::move(winners)));
        const auto choice = choose(problem, table.find(problem).winners, h100());
        REQUIRE(choice);
        return Choice{choice->candidate, choice->origin, choice->trust, choice->measured_at, nullptr};
    };
    const cache::LoadedWinner bf16 = product_winner(in_dtype("bf16", "yes"), gemv(1, 1));
    const cache::LoadedWinner plain_bf16 = product_winner(in_dtype("bf16", "no"), gemv(2, 0));
    const Problem half = in_dtype("fp16", "yes");

    const Choice same = chosen_for(half, {bf16, plain_bf16});
    CHECK(same.origin == Origin::neighbour);
    CHECK(to_string(same.candidate) == gemv(1, 1));
    CHECK(same.measured_at == "tokens=1 dtype=bf16");
    const Choice kin = chosen_for(half, {plain_bf16});
    CHECK(to_string(kin.candidate) ==
          gemv(2, 1));  // as the plain product's winner serves it: its norm folded
    CHECK(kin.measured_at == "tokens=1 dtype=bf16 norm=no");
    const cache::LoadedWinner own_kin = product_winner(in_dtype("fp16", "no"), gemv(4, 0));
    CHECK(to_string(chosen_for(half, {bf16, own_kin}).candidate) == gemv(1, 1));
    CHECK(to_string(chosen_for(half, {plain_bf16, own_kin}).candidate) == gemv(4, 1));
    CHECK(chosen_for(half, {bf16, product_winner(half, gemv(4, 1))}).origin == Origin::exact);
    cache::LoadedWinner own_neighbour = product_winner(half, gemv(4, 1));
    own_neighbour.trial.key.dynamic_fields = "tokens=2";
    CHECK(to_string(chosen_for(half, {bf16, own_neighbour}).candidate) == gemv(1, 1));
    const cache::LoadedWinner other_gpu = product_winner(half, gemv(4, 1), cache::Trust::foreign);
    CHECK(to_string(chosen_for(half, {bf16, other_gpu}).candidate) == gemv(1, 1));

    CHECK(chosen_for(in_dtype("fp32", "yes"), {bf16}).origin == Origin::fallback);
    CHECK(chosen_for(in_dtype("bf16", "yes"), {product_winner(half, gemv(2, 1))}).measured_at ==
          "tokens=1 dtype=fp16");
}

TEST_CASE("a size between two buckets has one of its own only where what was measured there is taken") {
    const auto at = [](const std::string& fields, std::int64_t tokens) {
        return parse_problem(fmt::format("linear in=4096 out=4096 {} tokens={}", fields, tokens)).value();
    };
    const auto edges = [](const Problem& asked, const std::vector<Problem>& measured) {
        std::vector<cache::LoadedWinner> winners;
        for (const Problem& problem : measured)
            winners.push_back(product_winner(problem, to_string(*fallback(problem, h100()))));
        const WinnerTable table(those_of(winners));
        return measured_between(asked, table.find(asked), h100());
    };
    const std::string own = "dtype=bf16";
    const std::string half = "dtype=fp16";
    const std::string with_sum = "dtype=bf16 residual=yes";
    using Edges = std::vector<std::int64_t>;
    CHECK(edges(at(own, 4096), {at(own, 256), at(own, 384), at(own, 512)}) == Edges{384});
    CHECK(edges(at(own, 4096), {at(own, 256), at(half, 384), at(own, 512)}) == Edges{384});
    CHECK(edges(at(with_sum, 4096), {at(own, 384)}) == Edges{384});
    CHECK(edges(at(with_sum, 4096), {at(with_sum, 256), at(own, 384), at(with_sum, 512)}).empty());
}

TEST_CASE("records that may not be dispatched are passed over, each with its reason") {
    cache::LoadedWinner stale = winner(16, 1, cache::Trust::stale);
    cache::LoadedWinner foreign_and_old = winner(16, 1, cache::Trust::foreign);
    foreign_and_old.trial.template_hash = std::string(32, '0');
    cache::LoadedWinner predicted = winner(16, 1);
    predicted.trial.provenance = cache::Provenance::predicted;
    cache::LoadedWinner failed = winner(16, 1);
    failed.trial.status = cache::TrialStatus::wrong_result;
    cache::LoadedWinner unknown = winner(16, 1);
    unknown.trial.candidate = "no_such_variant threads=1";
    cache::LoadedWinner unusable = winner(16, 1, cache::Trust::unusable);
    for (const auto& [record, word] : {std::pair{stale, "stale"},
                                       {foreign_and_old, "stale"},
                                       {predicted, "predicted"},
                                       {failed, "wrong_result"},
                                       {unknown, "no such candidate"},
                                       {unusable, "compute capability"}}) {
        CAPTURE(word);
        const WinnerTable table(those_of({record}));
        const Knowledge knowledge = table.find(rmsnorm(16));
        CHECK(knowledge.winners.empty());
        REQUIRE(knowledge.passed_over.size() == 1);
        CHECK(knowledge.passed_over[0].find(word) != std::string::npos);
        CHECK(chosen({record}, 16).origin == Origin::fallback);
    }
}

TEST_CASE(
    "a problem's records are asked for once, when it is first needed, and what is damaged is told, kin's "
    "too") {
    int asked = 0;
    const WinnerTable table([&](std::string_view family, std::string_view static_fields) {
        ++asked;
        CHECK(family == "rmsnorm");
        return cache::StaticWinners{.winners = {winner(16, 1)},
                                    .trouble = "damaged: " + std::string(static_fields.substr(0, 10))};
    });
    CHECK(asked == 0);
    const cache::LoadedWinner* record = table.find(rmsnorm(16)).winners.at(0).record;
    const Knowledge again = table.find(rmsnorm(1024));
    CHECK(asked == 2);  // of both types of 16 bits
    CHECK(again.winners.at(0).record == record);
    CHECK(again.passed_over == std::vector<std::string>{"damaged: dtype=bf16", "damaged: dtype=fp16"});
}

TEST_CASE("records of other problems are not looked at") {
    cache::LoadedWinner other = winner(16, 1);
    other.trial.key.static_fields = "dtype=bf16 output=same residual=yes hidden=4096";
    cache::LoadedWinner other_family = winner(16, 1);
    other_family.trial.key.family = "layernorm";
    CHECK(chosen({other, other_family}, 16).origin == Origin::fallback);
}

// An independent reading of the rules: every choice is allowed, and no usable exact record is ever left
// lying.
TEST_CASE("whatever is stored, the choice is allowed here and its origin is true") {
    const bool passed = rc::check([] {
        const auto exponents = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 14));
        std::vector<cache::LoadedWinner> winners;
        for (const int exponent : exponents) {
            const auto n = *rc::gen::inRange<std::size_t>(0, space().size());
            const auto trust = *rc::gen::element(cache::Trust::exact, cache::Trust::compatible,
                                                 cache::Trust::stale, cache::Trust::foreign);
            winners.push_back(winner(std::int64_t{1} << exponent, n, trust));
        }
        const std::int64_t rows = std::int64_t{1} << *rc::gen::inRange(0, 14);
        const Choice choice = chosen(winners, rows);
        RC_ASSERT(allowed(rmsnorm(rows), choice.candidate, h100()));

        const WinnerTable table(those_of(winners));
        const std::vector<KnownWinner> known = table.find(rmsnorm(rows)).winners;
        const bool has_exact = std::ranges::any_of(known, [&](const KnownWinner& one) {
            return one.trust != Trust::foreign && one.problem == rmsnorm(rows) &&
                   allowed(rmsnorm(rows), one.candidate, h100());
        });
        RC_ASSERT((choice.origin == Origin::exact) == has_exact);
        RC_ASSERT((choice.origin == Origin::foreign) == (choice.trust == Trust::foreign));
    });
    CHECK(passed);
}

TEST_CASE("the tune command names the operator, its static fields and the sizes") {
    const std::vector<std::int64_t> sizes{16, 64};
    CHECK(
        tune_command(rmsnorm(16), sizes) ==
        "hone tune --op rmsnorm --fields \"dtype=bf16 output=same residual=no hidden=4096\" --tokens 16,64");
    CHECK(tune_command(rmsnorm(16), {}).empty());
}

}  // namespace
}  // namespace hone::runtime
