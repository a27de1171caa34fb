// Checks of the tests of the C++ layer. Each one that fails prints its line.

#ifndef SELVEDGE_TESTS_CLASSES_CHECK_HPP
#define SELVEDGE_TESTS_CLASSES_CHECK_HPP

#include <selvedge.hpp>

#include <sstream>

using namespace selvedge;

namespace {

int failures = 0;

void check(bool holds, const char *text, int line)
{
    if (!holds) {
        std::fprintf(stderr, "line %d: %s\n", line, text);
        failures++;
    }
}

#define CHECK(...) check(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__, __LINE__)

/// Returns the status of the error that a function raises, or `SV_OK`.
template <class Function>
std::int32_t status_of(Function &&function)
{
    const auto result = attempt([&] { static_cast<void>(function()); });
    return result ? SV_OK : result.error().status();
}

/// Returns the message of the error that a function raises, or an empty one.
template <class Function>
std::string message_of(Function &&function)
{
    const auto result = attempt([&] { static_cast<void>(function()); });
    return result ? std::string() : result.error().what();
}

#define FAILS(status, ...) CHECK(status_of([&] { return __VA_ARGS__; }) == (status))

template <class T>
using List = std::vector<T>;

template <class T>
std::string text(const T &value)
{
    std::ostringstream stream;
    stream << value;
    return stream.str();
}

} // namespace

#endif
