# What cmake/units.cmake takes for a file's names: cmake -P units_test.cmake
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/units.cmake)

function(expect what)
    list(SORT ARGN)
    set(found ${${what}})
    list(SORT found)
    if(NOT "${found}" STREQUAL "${ARGN}")
        message(FATAL_ERROR "${what} are ${found}, expected ${ARGN}")
    endif()
endfunction()

hone_names_of([[
#include "a/b.h"  // comments say nothing
using namespace hone::test;
using namespace hone;

namespace hone::a {
namespace {

constexpr std::array<int, 2> sizes{1, 2};
const char* const texts[] = {"x;y", "["};
struct Row {
    int member = 0;
};
enum class Kind : int { first };

template <typename T>
std::vector<T> wide(const std::vector<T>& of) {
    return of;
}

long_name_of_a_type
broken_line(int x) {
    return x;
}

}  // namespace

static int old(int x);

int open(int x) {
    return b::qualified(x) + row.field + pointer->field + called(x);
}

namespace {
int second = 1;
}  // namespace
}  // namespace hone::a
]] own uses namespaces)
expect(own sizes texts Row Kind wide broken_line second old)
expect(namespaces in_using_namespace_hone__using_namespace_hone__test)
foreach(name sizes Row wide called row pointer)
    if(NOT name IN_LIST uses)
        message(FATAL_ERROR "${name} is not among what is used: ${uses}")
    endif()
endforeach()
foreach(name field qualified comments)
    if(name IN_LIST uses)
        message(FATAL_ERROR "${name} is among what is used: ${uses}")
    endif()
endforeach()
