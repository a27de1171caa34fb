// Traces: a file of what the program and its devices did and when (docs/tracing.md).

#ifndef SELVEDGE_TRACE_HPP
#define SELVEDGE_TRACE_HPP

#include <string>

#include "error.hpp"

SELVEDGE_BEGIN

/// Records a trace into a file while it lives. There is one trace at a time in a process.
class Trace {
public:
    explicit Trace(const std::string &path)
    {
        detail::call(sv_trace_start, path.c_str());
        is_on_ = !detail::has_failed();
    }
    Trace(const Trace &) = delete;
    Trace &operator=(const Trace &) = delete;
    ~Trace()
    {
        if (is_on_)
            sv_trace_stop();
    }

    /// Ends the trace and completes its file, and fails if it could not be written. The destructor then does nothing.
    void stop()
    {
        is_on_ = false;
        detail::call(sv_trace_stop);
    }

private:
    bool is_on_ = false;
};

/// A range of the program's own, from its construction to its end, on one thread.
class TraceRange {
public:
    explicit TraceRange(const std::string &name)
    {
        detail::call(sv_trace_push, name.c_str());
        is_open_ = !detail::has_failed();
    }
    TraceRange(const TraceRange &) = delete;
    TraceRange &operator=(const TraceRange &) = delete;
    ~TraceRange()
    {
        if (is_open_)
            sv_trace_pop();
    }

private:
    bool is_open_ = false;
};

SELVEDGE_END

#endif
