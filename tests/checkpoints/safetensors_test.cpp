#include "checkpoints/files/safetensors.h"

#include <rapidcheck.h>
#include <sys/stat.h>

#include <doctest/doctest.h>

#include "checkpoints/files/safetensors_writer.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/support/scratch.h"

namespace fs = std::filesystem;
using namespace hone::checkpoints;
using namespace hone::test;

namespace {

std::string refusal_of(const std::string& header, std::size_t data_bytes) {
    const Bytes file = raw_safetensors(header, data_bytes);
    return refusal([&] { return parsed(file, "m.safetensors"); });
}

/// One tensor 'a' with these members.
std::string refusal_of_tensor(const std::string& members, std::size_t data_bytes) {
    return refusal_of(R"({"a":{)" + members + "}}", data_bytes);
}

std::size_t files_in(const fs::path& folder) {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("a header written by hand is read: types, shapes, bytes, metadata, in any order") {
    const Bytes file = raw_safetensors(
        R"({"b":{"data_offsets":[8,11],"shape":[3],"dtype":"U8"},"__metadata__":{"format":"pt"},)"
        R"("a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
        R"("n":{"dtype":"F16","shape":[],"data_offsets":[11,13]},)"
        R"("e":{"dtype":"I64","shape":[0,5],"data_offsets":[8,8]}}   )",
        13);
    const SafetensorsContents contents = parsed(file, "m.safetensors");
    REQUIRE(contents.tensors.size() == 4);
    CHECK(contents.metadata.at("format") == "pt");
    const StoredTensor& b = contents.tensors.at("b");
    CHECK(b.type == StoredType::u8);
    CHECK(b.shape == std::vector<std::uint64_t>{3});
    CHECK(b.offset == file.size() - 13 + 8);
    CHECK(b.size_bytes == 3);
    CHECK(b.place == "m.safetensors: tensor 'b'");
    CHECK(contents.tensors.at("a").shape == std::vector<std::uint64_t>{1, 2});
    CHECK(contents.tensors.at("n").shape.empty());
    CHECK(contents.tensors.at("n").size_bytes == 2);
    CHECK(contents.tensors.at("e").size_bytes == 0);
}

TEST_CASE("a file without tensors is a file") {
    CHECK(parsed(raw_safetensors("{}", 0), "m").tensors.empty());
}

TEST_CASE("every type has its name and size") {
    const std::map<std::string, std::size_t> sizes{{"F64", 8},  {"F32", 4},     {"F16", 2},    {"BF16", 2},
                                                   {"I64", 8},  {"I32", 4},     {"I16", 2},    {"I8", 1},
                                                   {"U64", 8},  {"U32", 4},     {"U16", 2},    {"U8", 1},
                                                   {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};
    for (const auto& [name, bytes] : sizes) {
        CAPTURE(name);
        const auto type = stored_type(name);
        REQUIRE(type);
        CHECK(name_of(*type) == name);
        CHECK(bytes_of(*type) == bytes);
    }
    CHECK_FALSE(stored_type("f32"));
    CHECK_FALSE(stored_type("F4"));
}

TEST_CASE("a length that is not the header's is refused with what is allowed") {
    CHECK(contains(refusal([] { return parsed({}, "m"); }), "0 bytes are too few"));
    CHECK(contains(refusal([] { return parsed(Bytes(7), "m"); }), "7 bytes are too few"));
    Bytes file = raw_safetensors("{}", 0);
    file[0] = std::byte{3};
    CHECK(contains(refusal([&] { return parsed(file, "m"); }), "a header of 3 bytes; allowed are 2"));
    file[7] = std::byte{0xFF};
    CHECK(contains(refusal([&] { return parsed(file, "m"); }), "allowed are 2"));
    file.resize(10 + max_header_bytes);
    file[7] = std::byte{0};
    const std::uint64_t length = max_header_bytes + 1;
    std::memcpy(file.data(), &length, 8);
    CHECK(contains(refusal([&] { return parsed(file, "m"); }),
                   "a header of 100000001 bytes; allowed are 100000000"));
    CHECK(contains(refusal([] { return parsed(Bytes(8), "m"); }), "does not begin with '{'"));
}

TEST_CASE("a header that is no such table is refused") {
    CHECK(contains(refusal_of(" {}", 0), "does not begin with '{'"));
    CHECK(contains(refusal_of("{", 0), "not valid JSON"));
    CHECK(contains(refusal_of("{}{}", 0), "not valid JSON"));
    CHECK(contains(refusal_of("{} /**/", 0), "not valid JSON"));
    CHECK(contains(refusal_of("{\"a\xFF\":1}", 0), "not valid JSON"));
    CHECK(contains(refusal_of(R"({"a":1e999})", 0), "not valid JSON"));
    CHECK(contains(refusal_of(std::string("{}\0{hidden}", 11), 0), "the header has a zero at its byte 3"));
    CHECK(contains(refusal_of(R"({"a":1})", 0), "tensor 'a' has '1' where only an object is allowed"));
    CHECK(contains(refusal_of(R"({"a":null})", 0), "tensor 'a' has 'null'"));
    CHECK(contains(refusal_of(R"({"a":[]})", 0), "tensor 'a' has 'a list'"));
    CHECK(
        contains(refusal_of(R"({"":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})", 1), "without a name"));
    const std::string tensor = R"("a":{"dtype":"U8","shape":[],"data_offsets":[0,1]})";
    CHECK(contains(refusal_of("{" + tensor + "," + tensor + "}", 1), "tensor 'a' stands twice"));
    CHECK(contains(refusal_of("{\"a\":" + std::string(100'000, '['), 0), "has 'a list'"));
    std::string deep = "{";
    for (int i = 0; i < 50'000; ++i) deep += R"("a":{)";
    CHECK(contains(refusal_of(deep, 0), "is not known"));
}

TEST_CASE("metadata is text, once") {
    CHECK(contains(refusal_of(R"({"__metadata__":"pt"})", 0), "__metadata__ has 'pt' where only an object"));
    CHECK(contains(refusal_of(R"({"__metadata__":{"a":1}})", 0), "__metadata__ has '1' where only text"));
    CHECK(contains(refusal_of(R"({"__metadata__":{"a":{}}})", 0), "__metadata__ has 'an object'"));
    CHECK(contains(refusal_of(R"({"__metadata__":{"a":"1","a":"2"}})", 0), "__metadata__ has key 'a' twice"));
    CHECK(contains(refusal_of(R"({"__metadata__":{},"__metadata__":{}})", 0), "__metadata__ stands twice"));
}

TEST_CASE("a tensor's members are refused one by one, with tensor, value and what is allowed") {
    const std::string type = R"("dtype":"U8")";
    const std::string shape = R"("shape":[2])";
    const std::string offsets = R"("data_offsets":[0,2])";
    const auto members = [](const std::string& a, const std::string& b, const std::string& c) {
        return a + "," + b + "," + c;
    };
    CHECK(refusal_of_tensor(members(type, shape, offsets), 2).empty());
    CHECK(contains(refusal_of_tensor("", 0), "tensor 'a' has no dtype"));
    CHECK(contains(refusal_of_tensor(type, 0), "tensor 'a' has no shape"));
    CHECK(contains(refusal_of_tensor(type + "," + shape, 0), "tensor 'a' has no data_offsets"));
    CHECK(contains(refusal_of_tensor(members(type, type, shape), 2), "'dtype' stands twice"));
    CHECK(contains(refusal_of_tensor(R"("strides":[1])", 2), "'strides' is not known; allowed are dtype"));
    CHECK(contains(refusal_of_tensor(members(R"("dtype":"F4")", shape, offsets), 2),
                   "'dtype' has 'F4' where only one of F64, F32"));
    CHECK(
        contains(refusal_of_tensor(members(R"("dtype":5)", shape, offsets), 2), "has '5' where only one of"));
    CHECK(contains(refusal_of_tensor(members(type, R"("shape":2)", offsets), 2), "where only a list"));
    CHECK(contains(refusal_of_tensor(members(type, R"("shape":[-2])", offsets), 2),
                   "has '-2' where only integers"));
    CHECK(contains(refusal_of_tensor(members(type, R"("shape":[2.0])", offsets), 2), "has '2.0' where only"));
    CHECK(contains(refusal_of_tensor(members(type, R"("shape":["2"])", offsets), 2), "has '2' where only"));
    CHECK(contains(refusal_of_tensor(members(type, R"("shape":[[2]])", offsets), 2),
                   "has 'a list' where only"));
    CHECK(
        contains(refusal_of_tensor(members(type, R"("shape":[true])", offsets), 2), "has 'true' where only"));
    CHECK(contains(refusal_of_tensor(members(type, R"("shape":[18446744073709551616])", offsets), 2),
                   "where only"));
    CHECK(contains(
        refusal_of_tensor(members(type, R"("shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2])", offsets), 2),
        "more than 16 numbers"));
    CHECK(contains(refusal_of_tensor(members(type, shape, R"("data_offsets":[0])"), 2),
                   "1 data_offsets instead"));
    CHECK(contains(refusal_of_tensor(members(type, shape, R"("data_offsets":[0,2,2])"), 2),
                   "more than 2 numbers"));
    CHECK(contains(refusal_of_tensor(members(type, shape, R"("data_offsets":[2,0])"), 2), "needs 2 bytes"));
    CHECK(contains(refusal_of_tensor(members(type, shape, R"("data_offsets":[0,1])"), 1),
                   "m.safetensors: tensor 'a': data_offsets [0, 1]; U8 of shape [2] needs 2 bytes"));
    CHECK(contains(
        refusal_of_tensor(members(type, R"("shape":[4294967296,4294967296])", R"("data_offsets":[0,0])"), 0),
        "more bytes than 64 bits"));
    CHECK(contains(
        refusal_of_tensor(
            members(R"("dtype":"F64")", R"("shape":[2305843009213693952])", R"("data_offsets":[0,0])"), 0),
        "more bytes than 64 bits"));
}

TEST_CASE("tensors overlap nowhere, leave no hole and end with the file") {
    const auto two = [](int begin, int end, std::size_t data_bytes) {
        const std::string b = "[" + std::to_string(begin) + "," + std::to_string(end) + "]";
        return refusal_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                          R"("b":{"dtype":"U8","shape":[4],"data_offsets":)" +
                              b + "}}",
                          data_bytes);
    };
    CHECK(two(4, 8, 8).empty());
    CHECK(contains(two(3, 7, 7), "tensor 'b': begins at 3, the tensor before it ends at 4: they overlap"));
    CHECK(contains(two(0, 4, 4), "they overlap"));
    CHECK(contains(two(5, 9, 9), "tensor 'b': begins at 5, the tensor before it ends at 4: a hole"));
    CHECK(contains(two(4, 8, 7), "tensor 'b': ends at 8, the file has 7 bytes"));
    CHECK(contains(two(4, 8, 9), "tensors end at 8, the file has 9 bytes"));
    CHECK(contains(refusal_of("{}", 1), "tensors end at 0, the file has 1 bytes"));
}

TEST_CASE("control characters and long names of a file do not reach messages") {
    const std::string message = refusal_of("{\"\\u001b[31m" + std::string(500, 'x') + "\":1}", 0);
    CHECK(contains(message, "'?[31mxxx"));
    CHECK(message.size() < 300);
}

TEST_CASE("what is written is read again, and each tensor is aligned to its type") {
    const Scratch scratch;
    const fs::path file = scratch.path("m.safetensors");
    const std::array types{StoredType::u8, StoredType::f16, StoredType::i32, StoredType::f64,
                           StoredType::f8_e4m3};
    CHECK(rc::check("write then read is the identity", [&] {
        TensorFile expected;
        std::vector<TensorToWrite> tensors;
        std::map<std::string, Bytes> bytes;
        const auto names =
            *rc::gen::container<std::set<std::string>>(rc::gen::nonEmpty(rc::gen::string<std::string>()));
        for (const std::string& raw : names) {
            std::string name;  // any bytes, as UTF-8
            for (const char letter : raw) name += static_cast<char>(letter & 0x7F);
            const StoredType type = types.at(*rc::gen::inRange<std::size_t>(0, types.size()));
            const auto shape = *rc::gen::container<std::vector<std::uint64_t>>(
                *rc::gen::inRange<std::size_t>(0, 4), rc::gen::inRange<std::uint64_t>(0, 5));
            Bytes content(*tensor_bytes(type, shape));
            for (std::byte& byte : content) byte = static_cast<std::byte>(*rc::gen::inRange(0, 256));
            if (bytes.contains(name)) continue;
            bytes[name] = content;
            tensors.push_back({name, type, shape, {}});
        }
        for (TensorToWrite& tensor : tensors) tensor.bytes = bytes.at(tensor.name);
        write_safetensors(file, tensors, {{"format", "pt"}, {"any", "\"text\"\n"}});
        const SafetensorsFile read = SafetensorsFile::open(file);
        RC_ASSERT(read.contents().tensors.size() == tensors.size());
        RC_ASSERT(read.contents().metadata.at("any") == "\"text\"\n");
        for (const TensorToWrite& tensor : tensors) {
            const StoredTensor& found = read.contents().tensors.at(tensor.name);
            RC_ASSERT(found.type == tensor.type);
            RC_ASSERT(found.shape == tensor.shape);
            RC_ASSERT(std::ranges::equal(found.bytes(), tensor.bytes));
            RC_ASSERT(found.offset % bytes_of(found.type) == 0U);
        }
    }));
    CHECK(files_in(file.parent_path()) == 1);
}

TEST_CASE("the header that is written has sorted names, and 64-byte alignment behind it") {
    const Scratch scratch;
    const fs::path file = scratch.path("m.safetensors");
    const Bytes data(8);
    write_safetensors(file, {{"b", StoredType::u8, {8}, data},
                             {"a", StoredType::u8, {8}, data},
                             {"c", StoredType::i64, {}, data}});
    const Bytes bytes = bytes_of_file(file);
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size() - 24);
    CHECK(text.size() % 64 == 0);
    CHECK(text.find("\"a\":") < text.find("\"b\":"));
    CHECK(text.find("\"b\":") < text.find("\"c\":"));
    CHECK(contains(text, R"("c":{"data_offsets":[0,8])"));
}

TEST_CASE("nothing is written of what could not be read, and the file that was there stays") {
    const Scratch scratch;
    const fs::path file = scratch.path("m.safetensors");
    write_text(file, "old");
    const Bytes data(4);
    const auto refused = [&](std::vector<TensorToWrite> tensors) {
        return refusal([&] {
            write_safetensors(file, tensors);
            return 0;
        });
    };
    CHECK(contains(refused({{"", StoredType::u8, {4}, data}}), "no tensor may have this name"));
    CHECK(contains(refused({{"__metadata__", StoredType::u8, {4}, data}}), "no tensor may have this name"));
    CHECK(contains(refused({{"a", StoredType::u8, {5}, data}}), "4 bytes do not fill U8 of shape [5]"));
    CHECK(contains(refused({{"a", StoredType::u8, {UINT64_MAX, 2}, data}}), "is too large"));
    CHECK(contains(refused({{"a", StoredType::u8, {4}, data}, {"a", StoredType::u8, {4}, data}}),
                   "stands twice"));
    CHECK(contains(refused({{"a", StoredType::u8, {4}, data}, {"a", StoredType::i32, {}, data}}),
                   "stands twice"));
    CHECK(contains(refused({{"\xFF", StoredType::u8, {4}, data}}), "not UTF-8"));
    CHECK(
        contains(refused({{"a", StoredType::u8, std::vector<std::uint64_t>(17, 1), data}}), "more than 16"));
    CHECK(fs::file_size(file) == 3);
    CHECK(files_in(file.parent_path()) == 1);
    CHECK(contains(refusal([&] {
                       write_safetensors(scratch.path("no/such/folder"), {});
                       return 0;
                   }),
                   "cannot be written: No such file"));
    fs::create_directory(scratch.path("folder"));
    CHECK(contains(refusal([&] {
                       write_safetensors(scratch.path("folder"), {});
                       return 0;
                   }),
                   "cannot be written: is a folder"));
    CHECK(files_in(file.parent_path()) == 2);
}

TEST_CASE("a writer takes each tensor once, in any order, and no file appears before the last") {
    const Scratch scratch;
    const fs::path file = scratch.path("m.safetensors");
    const Bytes small{std::byte{1}};
    const Bytes large(8, std::byte{2});
    {
        SafetensorsWriter writer(file, {{"small", StoredType::u8, {1}}, {"large", StoredType::i64, {}}});
        const auto refused = [&](const auto& action) {
            return refusal([&] {
                action();
                return 0;
            });
        };
        writer.write("small", small);
        CHECK(contains(refused([&] { writer.write("small", small); }), "'small': is written already"));
        CHECK(contains(refused([&] { writer.write("other", small); }), "'other': the file has no such"));
        CHECK(contains(refused([&] { writer.write("large", small); }), "1 bytes do not fill I64"));
        CHECK(contains(refused([&] { writer.publish(); }), "'large': is not written yet"));
        CHECK_FALSE(fs::exists(file));
        writer.write("large", large);
        writer.publish();
    }
    CHECK(files_in(file.parent_path()) == 1);
    const SafetensorsFile written = SafetensorsFile::open(file);
    CHECK(std::ranges::equal(written.contents().tensors.find("small")->second.bytes(), small));
    CHECK(std::ranges::equal(written.contents().tensors.find("large")->second.bytes(), large));
}

TEST_CASE("what is no regular file is refused without waiting for it") {
    const Scratch scratch;
    CHECK(contains(refusal([&] { return SafetensorsFile::open(scratch.path("missing")); }), "No such file"));
    CHECK(contains(refusal([&] { return SafetensorsFile::open(scratch.path("")); }), "not a regular file"));
    REQUIRE(::mkfifo(scratch.path("pipe").c_str(), 0600) == 0);
    CHECK(
        contains(refusal([&] { return SafetensorsFile::open(scratch.path("pipe")); }), "not a regular file"));
    write_text(scratch.path("empty"), "");
    CHECK(contains(refusal([&] { return SafetensorsFile::open(scratch.path("empty")); }),
                   "0 bytes are too few"));
}
