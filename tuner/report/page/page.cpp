#include "tuner/report/page/page.h"

#include <fmt/format.h>

#include "tuner/report/page/packed.h"

namespace hone::tuner {
namespace {

/// What comes from caches and files is in here alone, in letters and digits.
std::string data_element(std::string_view id, const Json& json) {
    return fmt::format("<script type=\"text/plain\" id=\"{}\">{}</script>\n", id,
                       packed(json.dump(-1, ' ', false, Json::error_handler_t::replace)));
}

}  // namespace

std::string page_of(const PageData& data) {
    std::string page(page_before_results());
    page += data_element("packed-results", data.results);
    page += data_element("packed-trials", data.trials);
    page += page_behind_results();
    return page;
}

}  // namespace hone::tuner
