// Build-time tool: `embed_page PAGE.html OUTPUT.cpp` writes the page of `hone report` as one text, without
// what it shows. The page's source is a page that a browser opens as it stands; each of these has a line of
// its own:
//
// - `<link rel="stylesheet" href="FILE">` and `<script src="FILE"></script>` become the file's text.
// - `<script type="text/plain" id="NAME" src="FILE"></script>` becomes the file packed (deflate, base64), for
//   libraries that the page unpacks when it needs them.
// - `<!-- text: FILE -->` becomes the file's text, escaped.
// - `<!-- data -->` is where `hone report` puts its results: the text ends there, and a second one begins.
//
// Scripts and styles are named by their SHA-256 in the page's Content-Security-Policy, at `POLICY`: no others
// run.
#include <iostream>
#include <optional>
#include <sstream>
#include <vector>

#include "cache/sha256.h"
#include "literal.h"
#include "tuner/report/page/packed.h"

namespace {

namespace fs = std::filesystem;
using hone::tuner::base64;
using hone::tuner::packed;

/// "'sha256-...'", as a Content-Security-Policy names a script or a style.
std::string source_hash(std::string_view text) {
    const std::string hex = hone::cache::sha256_hex(text);
    std::string bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2)
        bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    return "'sha256-" + base64(bytes) + "'";
}

std::string escaped(std::string_view text) {
    std::string html;
    for (const char c : text) html += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
    return html;
}

/// A browser with its tools open would look for these.
std::string without_source_map(const std::string& text) {
    return text.substr(0, text.find("//# sourceMappingURL="));
}

/// What stands between `begin` and `end` where the line is these three.
std::optional<std::string> between(const std::string& line, std::string_view begin, std::string_view end) {
    const std::size_t first = line.find_first_not_of(' ');
    if (first == std::string::npos || !std::string_view(line).substr(first).starts_with(begin)) return {};
    const std::string rest = line.substr(first + begin.size());
    if (!rest.ends_with(end)) return {};
    return rest.substr(0, rest.size() - end.size());
}

class Page {
  public:
    explicit Page(const fs::path& file) : folder_(file.parent_path()) {
        std::istringstream lines(read_text(file));
        for (std::string line; std::getline(lines, line);) add(line);
    }

    /// Before the results, and behind them.
    [[nodiscard]] std::vector<std::string> parts() const {
        if (parts_.size() != 2) throw std::runtime_error("the page needs one line <!-- data -->");
        std::vector<std::string> parts = parts_;
        const std::size_t at = parts.front().find("POLICY");
        if (at == std::string::npos) throw std::runtime_error("the page has no POLICY");
        parts.front().replace(at, 6,
                              "default-src 'none'; base-uri 'none'; form-action 'none'; script-src" +
                                  scripts_ + "; style-src" + styles_);
        return parts;
    }

  private:
    void add(const std::string& line) {
        if (const auto href = between(line, "<link rel=\"stylesheet\" href=\"", "\">")) {
            put("<style>" + hashed(*href, styles_) + "</style>");
        } else if (const auto src = between(line, "<script src=\"", "\"></script>")) {
            put("<script>" + hashed(*src, scripts_) + "</script>");
        } else if (const auto library = between(line, "<script type=\"text/plain\" id=\"", "\"></script>")) {
            add_library(*library);
        } else if (const auto file = between(line, "<!-- text: ", " -->")) {
            put(escaped(read_text(folder_ / *file)));
        } else if (between(line, "<!-- data -->", "")) {
            parts_.emplace_back();
        } else {
            put(line);
        }
    }

    void put(const std::string& text) { parts_.back() += text + '\n'; }

    /// `NAME" src="FILE`
    void add_library(const std::string& attributes) {
        constexpr std::string_view source = "\" src=\"";
        const std::size_t at = attributes.find(source);
        if (at == std::string::npos) throw std::runtime_error(attributes + ": a library needs a src");
        const std::string text =
            without_source_map(read_text(folder_ / attributes.substr(at + source.size())));
        scripts_ += ' ' + source_hash(text);
        put("<script type=\"text/plain\" id=\"" + attributes.substr(0, at) + "\">" + packed(text) +
            "</script>");
    }

    std::string hashed(const std::string& file, std::string& hashes) const {
        const std::string text = '\n' + read_text(folder_ / file);
        if (text.find("</s") != std::string::npos || text.find("<!--") != std::string::npos)
            throw std::runtime_error(file + ": \"</s\" and \"<!--\" would end the element that it stands in");
        hashes += ' ' + source_hash(text);
        return text;
    }

    fs::path folder_;
    std::vector<std::string> parts_{""};
    std::string scripts_;
    std::string styles_;
};

void run(const fs::path& page, const fs::path& output) {
    const std::vector<std::string> parts = Page(page).parts();
    std::ostringstream out;
    out << "#include \"tuner/report/page/page.h\"\n\nnamespace hone::tuner {\n\n";
    for (const char* name : {"page_before_results", "page_behind_results"}) {
        const std::string& text = parts[std::string_view(name) == "page_before_results" ? 0 : 1];
        out << "std::string_view " << name << "() {\n    return std::string_view(" << as_literal(text) << ", "
            << text.size() << ");\n}\n\n";
    }
    out << "}  // namespace hone::tuner\n";
    write_text(output, out.str());
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc != 3) throw std::runtime_error("usage: embed_page PAGE.html OUTPUT.cpp");
        run(argv[1], argv[2]);
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "embed_page: error: " << error.what() << '\n';
        return 1;
    }
}
