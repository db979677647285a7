#include "runtime/c_api/operator.h"

#include <cstring>

namespace hone::c_api {

void refuse(const char* field, std::int64_t value, const char* allowed) {
    throw Error(std::string(field) + " is " + std::to_string(value) + "; allowed: " + allowed, "", "",
                ErrorKind::bad_argument);
}

void check_reserved(std::uint32_t given) {
    if (given != 0) refuse("reserved", given, "0");
}

void check_format(const hone_text_format& given) {
    std::int32_t value = 0;
    static_assert(sizeof value == sizeof given);
    std::memcpy(&value, &given, sizeof value);
    if (value != HONE_TEXT && value != HONE_JSON) refuse("format", value, "HONE_TEXT (0), HONE_JSON (1)");
}

bool flag_from(const char* field, std::int32_t given) {
    if (given != 0 && given != 1) refuse(field, given, "0, 1");
    return given == 1;
}

}  // namespace hone::c_api
