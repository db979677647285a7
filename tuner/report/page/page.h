// The file that `hone report` writes: a page that needs nothing but itself, with the results packed inside.
// Its source stands in web/; cmake/tools/embed_page.cpp makes one text of that, with the libraries that draw
// charts.
#pragma once

#include <string>
#include <string_view>

#include "tuner/report/report_json.h"

namespace hone::tuner {

/// What a page shows.
struct PageData {
    Json results;  ///< ResultColumns::results(), with "model" and "peers" beside them
    Json trials;   ///< ResultColumns::trials(), which the page reads after it has shown the results
};

[[nodiscard]] std::string page_of(const PageData& data);

/// The page's two texts, generated at build time.
[[nodiscard]] std::string_view page_before_results();
[[nodiscard]] std::string_view page_behind_results();

}  // namespace hone::tuner
