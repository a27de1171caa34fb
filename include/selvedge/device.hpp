// The library itself, devices, streams and events.

#ifndef SELVEDGE_DEVICE_HPP
#define SELVEDGE_DEVICE_HPP

#include "object.hpp"

SELVEDGE_BEGIN

/// Returns the report of the libraries that were looked for.
inline std::string library_report() { return detail::text(sv_library_report); }

/// Sets the number of CPU threads of an operation; 0 for the default.
inline void set_threads(std::uint32_t count) { detail::call(sv_set_threads, count); }

/// Returns the number of CPU threads of an operation.
inline std::uint32_t thread_count() { return detail::get<std::uint32_t>(sv_thread_count); }

/// Sets the function that runs the jobs of CPU operations; nullptr restores the library's own threads. It is called on any
/// thread, calls each job once, returns when all have returned, and must not throw.
inline void set_executor(sv_executor executor, void *user = nullptr)
{
    detail::call(sv_set_executor, executor, user);
}

/// Sends the library's messages of a level, `SV_LOG_...`, and more urgent ones to a function; nullptr ends that. The function is
/// called on any thread, on several at once, and must not throw.
inline void set_log_callback(std::int32_t level, sv_log_callback callback, void *user = nullptr)
{
    detail::call(sv_set_log_callback, level, callback, user);
}

/// Sets the functions that allocate and free the memory of CPU tensors, once and before the first of them. They are called on
/// any thread until the process ends, and must not throw.
inline void set_host_allocator(sv_host_allocate allocate, sv_host_free free, void *user = nullptr)
{
    detail::call(sv_set_host_allocator, allocate, free, user);
}

/// Frees every object of the library. Later calls fail.
inline void shutdown() { detail::call(sv_shutdown); }

/// The CPU, or a CUDA device by its ordinal.
class Device {
public:
    /// The CPU.
    constexpr Device() noexcept = default;

    static constexpr Device cpu() noexcept { return Device(); }
    static constexpr Device cuda(std::int32_t ordinal = 0) noexcept { return Device(Ordinal{ordinal}); }

    /// Returns the device of an ordinal as selvedge.h has it: `SV_CPU`, `SV_AUTO` or that of a CUDA device.
    static constexpr Device from_ordinal(std::int32_t ordinal) noexcept { return Device(Ordinal{ordinal}); }

    /// Returns CUDA device 0, or the CPU if there is none.
    static Device best() noexcept
    {
        std::int32_t count = 0;
        return sv_device_count(&count) == SV_OK && count > 0 ? cuda(0) : cpu();
    }

    /// Returns the number of CUDA devices.
    static std::int32_t count() { return detail::get<std::int32_t>(sv_device_count); }

    /// Returns the device of a `CUcontext`.
    static Device of_context(void *context)
    {
        return from_ordinal(detail::get<std::int32_t>(sv_device_of_context, context));
    }

    constexpr std::int32_t ordinal() const noexcept { return ordinal_; }
    constexpr bool is_cpu() const noexcept { return ordinal_ == SV_CPU; }

    /// Returns the name of a CUDA device, such as "NVIDIA H100 80GB HBM3", or "CPU".
    std::string name() const { return detail::text(sv_device_name, ordinal_); }

    /// Waits for all work. The CPU has none left when a call returns.
    void synchronize() const { detail::call(sv_device_synchronize, ordinal_); }

    /// Returns the statistics of the memory pool, or of the CPU's tensors.
    sv_pool_statistics pool_statistics() const
    {
        sv_pool_statistics statistics{};
        statistics.size = sizeof statistics;
        detail::call(sv_device_pool_statistics, ordinal_, &statistics);
        return statistics;
    }

    /// Returns cached memory to the driver, or to the allocator of the CPU's tensors.
    void trim() const { detail::call(sv_device_trim, ordinal_); }

    // The functions below need a CUDA device.

    /// Returns the major and the minor version.
    std::pair<std::int32_t, std::int32_t> compute_capability() const
    {
        std::pair<std::int32_t, std::int32_t> version;
        detail::call(sv_device_compute_capability, ordinal_, &version.first, &version.second);
        return version;
    }

    /// Returns a `CUdevice_attribute`.
    std::int32_t attribute(std::int32_t attribute) const
    {
        return detail::get<std::int32_t>(sv_device_attribute, ordinal_, attribute);
    }

    /// Returns the free and the total memory in bytes.
    std::pair<std::uint64_t, std::uint64_t> memory() const
    {
        std::pair<std::uint64_t, std::uint64_t> bytes;
        detail::call(sv_device_memory, ordinal_, &bytes.first, &bytes.second);
        return bytes;
    }

    /// Returns the blocks of the pool as JSON.
    std::string memory_snapshot() const { return detail::text(sv_device_memory_snapshot, ordinal_); }

    /// Limits the memory of the pool; `SV_NO_LIMIT` ends that.
    void set_memory_limit(std::uint64_t bytes) const { detail::call(sv_device_set_memory_limit, ordinal_, bytes); }

    /// Resets the device after a fault.
    void reset() const { detail::call(sv_device_reset, ordinal_); }

    bool can_access_peer(Device peer) const
    {
        return detail::get<std::int32_t>(sv_device_can_access_peer, ordinal_, peer.ordinal_) != 0;
    }
    void enable_peer_access(Device peer) const
    {
        detail::call(sv_device_enable_peer_access, ordinal_, peer.ordinal_);
    }
    void disable_peer_access(Device peer) const
    {
        detail::call(sv_device_disable_peer_access, ordinal_, peer.ordinal_);
    }

    /// Returns the `CUcontext`.
    void *context() const { return detail::get<void *>(sv_device_context, ordinal_); }

    friend constexpr bool operator==(Device left, Device right) noexcept { return left.ordinal_ == right.ordinal_; }
    friend constexpr bool operator!=(Device left, Device right) noexcept { return left.ordinal_ != right.ordinal_; }
    friend std::ostream &operator<<(std::ostream &stream, Device device)
    {
        if (device.ordinal_ == SV_AUTO)
            return stream << "auto";
        return device.is_cpu() ? stream << "cpu" : stream << "cuda:" << device.ordinal_;
    }

private:
    // A type of its own, so that a list of one number is a shape and no device.
    struct Ordinal {
        std::int32_t value;
    };
    explicit constexpr Device(Ordinal ordinal) noexcept : ordinal_(ordinal.value) {}

    std::int32_t ordinal_ = SV_CPU;
};

class Stream;

/// A point in the work of a stream.
class Event : public Object<Event, sv_event> {
public:
    Event() noexcept = default;

    /// Creates an event of a CUDA device. One with a time can be measured.
    explicit Event(Device device, bool with_time = false)
        : Object(detail::get<sv_event>(sv_event_create, device.ordinal(), std::int32_t{with_time}))
    {
    }

    /// Records the work that a stream has now.
    void record(const Stream &stream) const;

    bool is_complete() const { return detail::get<std::int32_t>(sv_event_is_complete, handle()) != 0; }
    void synchronize() const { detail::call(sv_event_synchronize, handle()); }

    /// Returns the milliseconds from an earlier event. Both have a time and were reached.
    float milliseconds_since(const Event &start) const
    {
        return detail::get<float>(sv_event_elapsed, start.handle(), handle());
    }
};

/// A queue of work on a CUDA device.
class Stream : public Object<Stream, sv_stream> {
public:
    Stream() noexcept = default;

    /// Creates a stream. A lower priority is more urgent.
    explicit Stream(Device device, std::int32_t priority = 0)
        : Object(detail::get<sv_stream>(sv_stream_create, device.ordinal(), priority))
    {
    }

    /// Returns the stream of this thread's tensor operations on a device.
    static Stream current(Device device) { return detail::make<Stream>(sv_stream_current, device.ordinal()); }

    /// Borrows a `CUstream` or `cudaStream_t`, which must outlive the result.
    static Stream from_raw(Device device, void *stream)
    {
        return detail::make<Stream>(sv_stream_from_raw, device.ordinal(), stream);
    }

    Device device() const { return Device::from_ordinal(detail::get<std::int32_t>(sv_stream_device, handle())); }
    bool is_idle() const { return detail::get<std::int32_t>(sv_stream_is_idle, handle()) != 0; }
    void synchronize() const { detail::call(sv_stream_synchronize, handle()); }

    /// Waits at most so long; then the error is `SV_ERROR_TIMED_OUT`, and the work goes on.
    void synchronize(std::uint64_t timeout_ms) const
    {
        detail::call(sv_stream_synchronize_timeout, handle(), timeout_ms);
    }

    /// Orders later work of this stream behind an event or behind the work that another stream has now.
    void wait(const Event &event) const { detail::call(sv_stream_wait_event, handle(), event.handle()); }
    void wait(const Stream &other) const { detail::call(sv_stream_wait_stream, handle(), other.handle()); }

    /// Returns the `CUstream`.
    void *raw() const { return detail::get<void *>(sv_stream_raw, handle()); }
};

inline void Event::record(const Stream &stream) const { detail::call(sv_event_record, handle(), stream.handle()); }

/// Sends this thread's tensor operations to a stream, until its destructor. Scopes end in the reverse order, on their thread.
class StreamScope {
public:
    explicit StreamScope(const Stream &stream)
    {
        detail::call(sv_stream_push, stream.handle());
        pushed_ = !detail::has_failed();
    }
    StreamScope(const StreamScope &) = delete;
    StreamScope &operator=(const StreamScope &) = delete;
    ~StreamScope()
    {
        if (pushed_)
            sv_stream_pop();
    }

private:
    bool pushed_ = false;
};

SELVEDGE_END

#endif
