#include "kernel_templates/catalog.h"

#include <doctest/doctest.h>

#include <cctype>
#include <set>
#include <string>
#include <string_view>

#include "kernel_templates/source.h"

using namespace hone;

namespace {

/// The text of a template and of all headers that it includes.
std::string device_text(std::string_view path, std::set<std::string_view>& seen) {
    const EmbeddedSource* source = find_source(path);
    if (source == nullptr || !seen.insert(source->path).second) return {};
    std::string text(source->text);
    constexpr std::string_view include = "#include \"";
    for (auto at = source->text.find(include); at != std::string_view::npos;
         at = source->text.find(include, at + 1)) {
        const auto begin = at + include.size();
        text += device_text(source->text.substr(begin, source->text.find('"', begin) - begin), seen);
    }
    return text;
}

bool reads(const std::string& text, std::string_view tunable) {
    const std::string word = "::" + std::string(tunable);
    for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
        const char next = text[at + word.size()];
        if (std::isalnum(static_cast<unsigned char>(next)) == 0 && next != '_') return true;
    }
    return false;
}

}  // namespace

TEST_CASE("every family is complete") {
    REQUIRE_FALSE(families().empty());
    std::set<std::string_view> names;
    for (const Family* family : families()) {
        INFO(family->name);
        CHECK(names.insert(family->name).second);
        CHECK_FALSE(family->summary.empty());
        CHECK(family->fields.size() <= max_fields);
        CHECK(dynamic_fields(*family).count >= 1);
        CHECK(dynamic_fields(*family).count <= max_dynamic_fields);
        CHECK(run_time_fields(*family).count <= max_run_time_fields);
        CHECK(find_source(family->reference_source) != nullptr);
        for (const Field& field : family->fields) {
            CHECK_FALSE(field.meaning.empty());
            CHECK(field.min <= field.max);
            CHECK((field.kind != Field::Kind::choice ||
                   field.choices.size() == static_cast<std::size_t>(field.max) + 1));
        }
    }
}

TEST_CASE("a field that is as another one when left out takes all that one's values") {
    for (const Family* family : families()) {
        for (std::size_t i = 0; i < family->fields.size(); ++i) {
            const Field& field = family->fields[i];
            if (field.default_as.empty()) continue;
            INFO(family->name << " " << field.name);
            const int index = field_index(*family, field.default_as);
            REQUIRE(index >= 0);
            const Field& as = family->fields[static_cast<std::size_t>(index)];
            CHECK(index < static_cast<int>(i));
            CHECK(as.kind != Field::Kind::choice);
            CHECK(field.min <= as.min);
            CHECK(field.max >= as.max);
        }
    }
}

TEST_CASE("every variant is complete, embedded, and explains its tunables and constraints") {
    for (const Family* family : families()) {
        for (const Variant* variant : family->variants) {
            INFO(family->name << " " << variant->name);
            CHECK(find_variant(*family, variant->name) == variant);
            REQUIRE(find_source(variant->source) != nullptr);
            CHECK(template_hash(*variant).size() == 32);
            CHECK(find_source(variant->source)->device_bytes > 1000);
            CHECK(variant->tunables.size() <= max_tunables);
            CHECK_FALSE(variant->summary.empty());
            for (const Tunable& tunable : variant->tunables) {
                CHECK_FALSE(tunable.meaning.empty());
                CHECK(tunable.values.count >= 1);
            }
            for (const Constraint& constraint : variant->constraints) CHECK_FALSE(constraint.reason.empty());
            REQUIRE((variant->plan != nullptr));
            REQUIRE((variant->fallback != nullptr));
            REQUIRE((variant->predict_us != nullptr));
            REQUIRE((variant->access_elements != nullptr));
        }
    }
}

TEST_CASE(
    "a tunable is of the launch alone where no device code reads it, and then only one value has an image") {
    std::set<std::string_view> of_launch_alone;
    for (const Family* family : families()) {
        for (const Variant* variant : family->variants) {
            std::set<std::string_view> seen;
            const std::string text = device_text(variant->source, seen);
            for (std::size_t i = 0; i < variant->tunables.size(); ++i) {
                const Tunable& tunable = variant->tunables[i];
                INFO(family->name << " " << variant->name << " " << tunable.name);
                if (tunable.values.count == 1) continue;
                CHECK(tunable.of_launch_alone != reads(text, tunable.name));
                if (!tunable.of_launch_alone) continue;
                of_launch_alone.insert(tunable.name);
                Candidate first{variant, {}};
                for (std::size_t j = 0; j < variant->tunables.size(); ++j)
                    first.config[j] = variant->tunables[j].values.items[0];
                Candidate last = first;
                last.config[i] = tunable.values.span().back();
                for (const Arch arch : supported_archs())
                    CHECK(image_candidate(last, arch) == image_candidate(first, arch));
            }
        }
    }
    CHECK(of_launch_alone == std::set<std::string_view>{"neighbours", "programmatic", "residents",
                                                        "section_mib", "spread", "tiles"});
}

TEST_CASE("the generated constants carry static fields and tunables, and no dynamic field") {
    const Problem problem = *parse_problem("rmsnorm dtype=bf16 output=fp8 hidden=4096 rows=77");
    const Candidate candidate =
        *parse_candidate(*problem.family, "streamed_row threads=512 vector=8 store_hint=1 programmatic=0");
    const std::string text = render_constants(problem, candidate);
    CHECK(text.find("long long hidden = 4096;") != std::string::npos);
    CHECK(text.find("long long dtype = 2;") != std::string::npos);
    CHECK(text.find("long long output = 2;") != std::string::npos);
    CHECK(text.find("long long threads = 512;") != std::string::npos);
    CHECK(text.find("long long rows =") == std::string::npos);
    CHECK(text.find("    long long rows;\n") !=
          std::string::npos);  // a member of the struct that kernels take
    CHECK(text.find("77") == std::string::npos);
}

TEST_CASE("nothing but identifiers and integers can get into the generated constants") {
    for (const Family* family : families()) {
        for (const Field& field : family->fields) {
            CHECK(field.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") ==
                  std::string_view::npos);
        }
        for (const Variant* variant : family->variants) {
            for (const Tunable& tunable : variant->tunables) {
                CHECK(tunable.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") ==
                      std::string_view::npos);
            }
        }
    }
}
