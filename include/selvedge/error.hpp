// Errors: exceptions of the type Error, and results without exceptions by attempt().

#ifndef SELVEDGE_ERROR_HPP
#define SELVEDGE_ERROR_HPP

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "../selvedge.h"

#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
#define SELVEDGE_HAS_EXCEPTIONS 1
#define SELVEDGE_BEGIN namespace selvedge {
#define SELVEDGE_END }
#else
// Another namespace, so that a program may link objects that were compiled with and without exceptions.
#define SELVEDGE_HAS_EXCEPTIONS 0
#define SELVEDGE_BEGIN namespace selvedge { inline namespace without_exceptions {
#define SELVEDGE_END } }
#endif

SELVEDGE_BEGIN

/// Returns the name of a status, such as `SV_ERROR_FILE`, or "an unknown status".
inline const char *status_name(std::int32_t status) noexcept { return sv_status_name(status); }

/// The error of a call: its status, the name of the status, and the library's message as what().
class Error : public std::runtime_error {
public:
    Error(std::int32_t status, const std::string &message) : std::runtime_error(message), status_(status) {}

    /// Returns the status, one of `SV_ERROR_...`.
    std::int32_t status() const noexcept { return status_; }

    /// Returns the name of the status, such as `SV_ERROR_FILE`.
    const char *name() const noexcept { return status_name(status_); }

    friend std::ostream &operator<<(std::ostream &stream, const Error &error)
    {
        return stream << error.name() << ": " << error.what();
    }

private:
    std::int32_t status_;
};

namespace detail {

#if SELVEDGE_HAS_EXCEPTIONS

/// Returns whether an earlier call of the running attempt() failed, in a program without exceptions.
constexpr bool has_failed() noexcept { return false; }

[[noreturn]] inline void fail(const Error &error) { throw error; }

#else

/// The failures of a thread: how many attempts run, and the first error of the innermost one.
struct Failures {
    int attempts = 0;
    std::optional<Error> first;
};

inline Failures &failures() noexcept
{
    static thread_local Failures state;
    return state;
}

inline bool has_failed() noexcept { return failures().first.has_value(); }

inline void fail(const Error &error)
{
    Failures &state = failures();
    if (state.attempts == 0) {
        std::fprintf(stderr, "%s: %s\n", error.name(), error.what());
        std::abort();
    }
    if (!state.first)
        state.first = error;
}

#endif

inline void check(std::int32_t status)
{
    if (status != SV_OK)
        fail(Error(status, sv_last_error()));
}

/// Calls a function of the C ABI, and fails with its message. After a failure without exceptions it does nothing.
template <class Function, class... Arguments>
void call(Function function, Arguments... arguments)
{
    if (!has_failed())
        check(function(arguments...));
}

/// Calls a function whose last parameter points to its result, and returns the result.
template <class Value, class Function, class... Arguments>
Value get(Function function, Arguments... arguments)
{
    Value value{};
    call(function, arguments..., &value);
    return value;
}

/// Calls a function whose last parameter points to a new handle, and returns the object.
template <class Object, class Function, class... Arguments>
Object make(Function function, Arguments... arguments)
{
    return Object::adopt(get<typename Object::Handle>(function, arguments...));
}

} // namespace detail

/// A value, or the error that took its place. attempt() makes results.
template <class Value>
class [[nodiscard]] Result {
public:
    Result(Value value) : content_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : content_(std::in_place_index<1>, std::move(error)) {}

    bool has_value() const noexcept { return content_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    /// Returns the value, or raises the error.
    const Value &value() const & { return check(), *std::get_if<0>(&content_); }
    Value &value() & { return check(), *std::get_if<0>(&content_); }
    Value &&value() && { return check(), std::move(*std::get_if<0>(&content_)); }

    /// Returns the value, or another one after an error.
    Value value_or(Value other) && { return has_value() ? std::move(*std::get_if<0>(&content_)) : std::move(other); }
    Value value_or(Value other) const & { return has_value() ? *std::get_if<0>(&content_) : std::move(other); }

    /// Returns the value. There must be one.
    const Value &operator*() const & noexcept { return *std::get_if<0>(&content_); }
    Value &operator*() & noexcept { return *std::get_if<0>(&content_); }
    Value &&operator*() && noexcept { return std::move(*std::get_if<0>(&content_)); }
    const Value *operator->() const noexcept { return std::get_if<0>(&content_); }
    Value *operator->() noexcept { return std::get_if<0>(&content_); }

    /// Returns the error. There must be one.
    const Error &error() const noexcept { return *std::get_if<1>(&content_); }

private:
    // A result without a value has no value to give: without exceptions that ends the program.
    void check() const
    {
        if (has_value())
            return;
        detail::fail(error());
#if !SELVEDGE_HAS_EXCEPTIONS
        std::abort();
#endif
    }

    std::variant<Value, Error> content_;
};

/// Success, or the error of a function without a value.
template <>
class [[nodiscard]] Result<void> {
public:
    Result() noexcept = default;
    Result(Error error) : error_(std::move(error)) {}

    bool has_value() const noexcept { return !error_; }
    explicit operator bool() const noexcept { return has_value(); }

    /// Raises the error, if there is one.
    void value() const
    {
        if (error_)
            detail::fail(*error_);
    }

    /// Returns the error. There must be one.
    const Error &error() const noexcept { return *error_; }

private:
    std::optional<Error> error_;
};

/// Calls a function, and returns its value or the first Error of the calls of this library in it. Memory of the host that
/// runs out is an error too; any other exception ends the program.
///
/// Without exceptions, the function goes on after a failed call. The failed call and every later one in the function do
/// nothing, and return empty objects and zeros.
template <class Function>
auto attempt(Function &&function) noexcept -> Result<std::decay_t<decltype(function())>>
{
    using Value = std::decay_t<decltype(function())>;
#if SELVEDGE_HAS_EXCEPTIONS
    try {
        if constexpr (std::is_void_v<Value>) {
            function();
            return {};
        } else {
            return Result<Value>(function());
        }
    } catch (const Error &error) {
        return Result<Value>(error);
    } catch (const std::bad_alloc &) {
        return Result<Value>(Error(SV_ERROR_OUT_OF_MEMORY, "attempt: the host has no memory left"));
    }
#else
    detail::Failures &state = detail::failures();
    if (state.first)
        return Result<Value>(*state.first);
    state.attempts++;
    auto finish = [&state] {
        state.attempts--;
        return std::exchange(state.first, std::nullopt);
    };
    if constexpr (std::is_void_v<Value>) {
        function();
        std::optional<Error> error = finish();
        return error ? Result<void>(*std::move(error)) : Result<void>();
    } else {
        Value value = function();
        std::optional<Error> error = finish();
        return error ? Result<Value>(*std::move(error)) : Result<Value>(std::move(value));
    }
#endif
}

SELVEDGE_END

#endif
