// Functions of C++ as callbacks of the C ABI.

#ifndef SELVEDGE_CALLBACK_HPP
#define SELVEDGE_CALLBACK_HPP

#include <functional>

#include "error.hpp"

SELVEDGE_BEGIN

namespace detail {

/// A function that the C ABI calls, and the first exception that it threw. No exception passes through C.
template <class Function>
class Callback {
public:
    explicit Callback(Function function) : function_(std::move(function)) {}

    bool defined() const noexcept { return static_cast<bool>(function_); }
    void *user() noexcept { return this; }

    /// Calls the function of a callback's pointer. Returns its result, or false after an exception.
    template <class... Arguments>
    static bool run(void *user, Arguments... arguments) noexcept
    {
        Callback &self = *static_cast<Callback *>(user);
#if SELVEDGE_HAS_EXCEPTIONS
        if (self.exception_)
            return false;
        try {
            return self.invoke(arguments...);
        } catch (...) {
            self.exception_ = std::current_exception();
            return false;
        }
#else
        return self.invoke(arguments...);
#endif
    }

    /// Raises the exception of the function, if there was one.
    void rethrow() const
    {
#if SELVEDGE_HAS_EXCEPTIONS
        if (exception_)
            std::rethrow_exception(exception_);
#endif
    }

private:
    template <class... Arguments>
    bool invoke(Arguments... arguments)
    {
        if constexpr (std::is_void_v<decltype(function_(arguments...))>)
            return function_(arguments...), true;
        else
            return function_(arguments...);
    }

    Function function_;
    std::exception_ptr exception_;
};

} // namespace detail

SELVEDGE_END

#endif
