// Build-time tool: writes the .cpp files that carry texts of the source tree into the libraries.
//
// - `embed templates ROOT OUTPUT FILE...` writes the kernel catalogue: every FILE (.cu, .cuh, family.cpp)
//   below ROOT.
// - `embed bundles OUTPUT FILE...` writes the packaged tuning results.
// - `embed closure ROOT FILE.cu` prints the files that the hash of a template covers, one a line.
//
// Not part of any library. The hash of a template is defined at `facts_of` below and in
// docs/cache-format.md.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cache/packed_bundle.h"
#include "cache/sha256.h"
#include "literal.h"
#include "normalize.h"

namespace {

namespace fs = std::filesystem;

/// Made in memory at run time from problem and config, so it has no file; both are part of a record's key
/// anyway.
constexpr std::string_view generated_header = "hone_constants.h";

/// Everything that decides what a template launches, each file once: path, newline, normalized text, newline.
class HashedText {
  public:
    explicit HashedText(const fs::path& root) : root_(root) {}

    /// A .cu or .cuh: after the headers that it includes, and before its launch plan.
    void add_device(const fs::path& file, const fs::path& included_by) {
        if (!seen_.insert(file).second) return;
        if (!fs::exists(root_ / file)) {
            throw std::runtime_error((root_ / included_by).string() + ": #include \"" + file.string() +
                                     "\" names no file below " + root_.string());
        }
        const std::string source = read_text(root_ / file);
        for (const std::string& include : quoted_includes(source)) {
            if (include != generated_header) add_device(include, file);
        }
        device_bytes_ += append(file, source);
        add_host(plan_of(file));
    }

    [[nodiscard]] std::string hash() const { return hone::cache::sha256_hex(text_).substr(0, 32); }
    [[nodiscard]] const std::vector<fs::path>& files() const { return files_; }
    [[nodiscard]] std::size_t device_bytes() const { return device_bytes_; }

  private:
    /// <variant>_plan.cpp beside <variant>.cu, or .cuh where families share it; plan.cpp beside kernel.cu
    /// where a variant has a folder. A plan of a few lines stands in <variant>_plan.h alone.
    [[nodiscard]] fs::path plan_of(const fs::path& template_file) const {
        const std::string stem = template_file.stem().string();
        const fs::path plan =
            template_file.parent_path() / (stem == "kernel" ? "plan.cpp" : stem + "_plan.cpp");
        return fs::exists(root_ / plan) ? plan : fs::path(plan).replace_extension(".h");
    }

    /// The contract's own folders, and what is generated from a declaration: kernels and plans meet by the
    /// names in it, so that its order and words change nothing.
    static bool is_contract(const fs::path& header) {
        return !header.has_parent_path() || *header.begin() == ".." || *header.begin() == "kit" ||
               header.stem() == "declaration";
    }

    /// A launch plan, after the host code of family folders that it includes, and the .cpp of those headers:
    /// a helper that computes a grid is part of the kernel.
    void add_host(const fs::path& file) {
        if (!fs::exists(root_ / file) || !seen_.insert(file).second) return;
        const std::string source = read_text(root_ / file);
        for (const std::string& include : quoted_includes(source)) {
            const fs::path header = fs::path(include).lexically_relative("kernel_templates");
            if (is_contract(header)) continue;
            add_host(header);
            add_host(fs::path(header).replace_extension(".cpp"));
        }
        append(file, source);
    }

    /// Returns the bytes of the normalized text.
    std::size_t append(const fs::path& file, std::string_view source) {
        const std::string text = normalized(source);
        text_ += file.generic_string() + '\n' + text + '\n';
        files_.push_back(file);
        return text.size();
    }

    const fs::path& root_;
    std::set<fs::path> seen_;
    std::vector<fs::path> files_;
    std::string text_;
    std::size_t device_bytes_ = 0;
};

/// The members of an EmbeddedSource behind its text: the hash is SHA-256, first 32 hex digits, over
/// HashedText.
std::string facts_of(const fs::path& root, const fs::path& file) {
    if (file.extension() != ".cu") return "\"\"";
    HashedText text(root);
    text.add_device(file, file);
    return '"' + text.hash() + "\", " + std::to_string(text.device_bytes());
}

std::string catalogue(const fs::path& root, std::span<const fs::path> files) {
    std::ostringstream sources;
    std::ostringstream declarations;
    std::ostringstream families;
    std::size_t source_count = 0;
    std::size_t family_count = 0;
    for (const fs::path& file : files) {
        if (file.filename() == "family.cpp") {
            const std::string symbol = file.parent_path().filename().string() + "_family";
            declarations << "extern const Family " << symbol << ";\n";
            families << "    &" << symbol << ",\n";
            ++family_count;
        } else {
            sources << "    {" << as_literal(file.generic_string()) << ",\n    std::string_view("
                    << as_literal(read_text(root / file)) << ", " << fs::file_size(root / file) << "),\n    "
                    << facts_of(root, file) << "},\n";
            ++source_count;
        }
    }
    std::ostringstream out;
    out << "#include \"kernel_templates/catalog.h\"\n\n#include <array>\n\nnamespace hone {\n\n"
        << declarations.str() << "\nnamespace {\n"
        << "constexpr std::array<EmbeddedSource, " << source_count << "> all_sources{{\n"
        << sources.str() << "}};\n"
        << "constexpr std::array<const Family*, " << family_count << "> all_families{{\n"
        << families.str() << "}};\n"
        << "}  // namespace\n\n"
        << "std::span<const Family* const> families() { return all_families; }\n"
        << "std::span<const EmbeddedSource> embedded_sources() { return all_sources; }\n\n}  // namespace "
           "hone\n";
    return out.str();
}

/// The bytes as a view of a literal, in which zeros may stand.
std::string as_view(std::string_view bytes) {
    return "std::string_view(" + as_literal(bytes) + ", " + std::to_string(bytes.size()) + ")";
}

/// The rows of one bundle, each static problem's by itself, under a name that its description uses.
std::string rows_array(const hone::cache::PackedBundle& bundle, const std::string& name) {
    std::ostringstream out;
    out << "constexpr std::array<PackagedRows, " << bundle.rows.size() << "> " << name << "{{\n";
    for (const hone::cache::PackedRows& rows : bundle.rows) {
        out << "    {" << as_view(rows.family) << ", " << as_view(rows.static_fields) << ",\n    "
            << as_view(rows.block) << ", " << rows.length << "},\n";
    }
    out << "}};\n";
    return out.str();
}

std::string bundles(std::span<const fs::path> files) {
    std::ostringstream arrays;
    std::ostringstream all;
    for (std::size_t i = 0; i < files.size(); ++i) {
        const hone::cache::PackedBundle bundle = hone::cache::pack_bundle(read_text(files[i]));
        const std::string rows = "rows_" + std::to_string(i);
        arrays << rows_array(bundle, rows);
        all << "    {" << as_view(files[i].stem().string()) << ", " << as_view(bundle.head) << ", " << rows
            << ", " << as_view(bundle.tail) << "},\n";
    }
    std::ostringstream out;
    out << "#include \"cache/packaged.h\"\n\n#include <array>\n\nnamespace hone::cache {\n\nnamespace {\n"
        << arrays.str() << "constexpr std::array<PackagedBundle, " << files.size() << "> all_bundles{{\n"
        << all.str() << "}};\n}  // namespace\n\n"
        << "std::span<const PackagedBundle> packaged_bundles() { return all_bundles; }\n\n}  // namespace "
           "hone::cache\n";
    return out.str();
}

void run(std::span<const std::string> arguments) {
    const auto files_from = [&](std::size_t first) {
        std::vector<fs::path> files(arguments.begin() + static_cast<std::ptrdiff_t>(first), arguments.end());
        std::ranges::sort(files);
        return files;
    };
    if (arguments.size() >= 3 && arguments[0] == "templates") {
        write_text(arguments[2], catalogue(arguments[1], files_from(3)));
    } else if (arguments.size() >= 2 && arguments[0] == "bundles") {
        write_text(arguments[1], bundles(files_from(2)));
    } else if (arguments.size() == 3 && arguments[0] == "closure") {
        const fs::path root = arguments[1];
        HashedText text(root);
        text.add_device(arguments[2], arguments[2]);
        for (const fs::path& file : text.files()) std::cout << file.generic_string() << '\n';
    } else {
        throw std::runtime_error(
            "usage: embed templates ROOT OUTPUT FILE... | embed bundles OUTPUT FILE... | embed closure ROOT "
            "FILE");
    }
}

}  // namespace

int main(int argc, char** argv) {
    try {
        run(std::vector<std::string>(argv + 1, argv + argc));
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "embed: error: " << error.what() << '\n';
        return 1;
    }
}
