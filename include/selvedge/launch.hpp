// Modules, kernels, launches with typed arguments, and programs of CUDA C++.

#ifndef SELVEDGE_LAUNCH_HPP
#define SELVEDGE_LAUNCH_HPP

#include "memory.hpp"

SELVEDGE_BEGIN

/// Sizes in x, y and z.
struct Dimensions {
    constexpr Dimensions(std::uint32_t in_x = 0, std::uint32_t in_y = 0, std::uint32_t in_z = 0) noexcept
        : x(in_x), y(in_y), z(in_z)
    {
    }

    std::uint32_t x, y, z;
};

/// The shape of a launch.
struct LaunchConfig {
    Dimensions grid = 1;
    Dimensions block = 1;
    /// Blocks per cluster; zeros without clusters.
    Dimensions cluster = {};
    /// Dynamic shared memory per block in bytes.
    std::uint32_t shared = 0;
    bool cooperative = false;
    bool programmatic_dependent = false;
    /// A priority in place of the stream's.
    std::optional<std::int32_t> priority = std::nullopt;

    /// Returns a configuration with a thread for each element.
    static LaunchConfig for_elements(std::size_t elements, std::uint32_t block = 256)
    {
        LaunchConfig config;
        const std::size_t blocks = block == 0 ? 0 : elements / block + (elements % block != 0);
        config.grid = blocks > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(blocks);
        config.block = block;
        return config;
    }

    sv_launch_config raw() const noexcept
    {
        sv_launch_config raw{};
        raw.size = sizeof raw;
        set(raw.grid, grid);
        set(raw.block, block);
        set(raw.cluster, cluster);
        raw.shared = shared;
        raw.flags = (cooperative ? SV_LAUNCH_COOPERATIVE : 0u) |
                    (programmatic_dependent ? SV_LAUNCH_PROGRAMMATIC_DEPENDENT : 0u) |
                    (priority ? SV_LAUNCH_PRIORITY : 0u);
        raw.priority = priority.value_or(0);
        return raw;
    }

private:
    static void set(std::uint32_t (&raw)[3], const Dimensions &sizes) noexcept
    {
        raw[0] = sizes.x;
        raw[1] = sizes.y;
        raw[2] = sizes.z;
    }
};

/// An argument of a launch: a buffer that the kernel reads.
template <class T>
struct Read {
    Read(const Buffer<T> &from, std::size_t first = 0) noexcept : buffer(from.handle()), offset(first) {}

    sv_buffer buffer;
    std::size_t offset;
};

/// An argument of a launch: a buffer that the kernel writes, or reads and writes.
template <class T>
struct Write {
    Write(Buffer<T> &to, std::size_t first = 0) noexcept : buffer(to.handle()), offset(first) {}

    sv_buffer buffer;
    std::size_t offset;
};

template <class T>
Read<T> read(const Buffer<T> &buffer, std::size_t offset = 0) noexcept
{
    return {buffer, offset};
}

template <class T>
Write<T> write(Buffer<T> &buffer, std::size_t offset = 0) noexcept
{
    return {buffer, offset};
}

/// An argument of a launch: a device address that the library does not track.
struct Address {
    std::uint64_t value;
};

namespace detail {

template <class T>
sv_argument argument(const T &value) noexcept
{
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>,
                  "pass a buffer by read() or write(), a device address as Address, and others as trivial types");
    sv_argument argument{};
    argument.kind = std::is_floating_point_v<T>                    ? SV_ARGUMENT_FLOAT
                    : std::is_integral_v<T> || std::is_enum_v<T> ? SV_ARGUMENT_INTEGER
                                                                   : SV_ARGUMENT_BYTES;
    argument.value = &value;
    argument.bytes = sizeof value;
    return argument;
}

inline sv_argument argument(const Address &address) noexcept
{
    sv_argument argument{};
    argument.kind = SV_ARGUMENT_ADDRESS;
    argument.value = &address.value;
    argument.bytes = sizeof address.value;
    return argument;
}

inline sv_argument argument_of(std::uint32_t kind, sv_buffer buffer, std::uint64_t offset) noexcept
{
    sv_argument argument{};
    argument.kind = kind;
    argument.buffer = buffer;
    argument.offset = offset;
    return argument;
}

template <class T>
sv_argument argument(const Read<T> &read) noexcept
{
    return argument_of(SV_ARGUMENT_READ, read.buffer, std::uint64_t{read.offset} * sizeof(T));
}

template <class T>
sv_argument argument(const Write<T> &write) noexcept
{
    return argument_of(SV_ARGUMENT_WRITE, write.buffer, std::uint64_t{write.offset} * sizeof(T));
}

template <class T>
sv_argument argument(const Buffer<T> &) = delete;

} // namespace detail

/// A kernel of a module, which it keeps loaded.
class Function : public Object<Function, sv_function> {
public:
    Function() noexcept = default;

    /// Launches the kernel. Arguments are numbers, trivial structs, Address, and buffers by read() and write(); they are
    /// checked against the kernel's parameters. The kernel must stay inside of its buffers.
    template <class... Arguments>
    void launch(const Stream &stream, const LaunchConfig &config, const Arguments &...arguments) const
    {
        const sv_launch_config raw = config.raw();
        // One more, for an array without elements is none in C++.
        const sv_argument list[] = {detail::argument(arguments)..., sv_argument{}};
        detail::call(sv_launch, handle(), stream.handle(), &raw, static_cast<const sv_argument *>(list),
                     sizeof...(arguments));
    }

    sv_function_attributes attributes() const
    {
        sv_function_attributes attributes{};
        attributes.size = sizeof attributes;
        detail::call(sv_function_attributes_get, handle(), &attributes);
        return attributes;
    }

    /// A parameter: its kind, one of `SV_PARAMETER_...`, its size and its offset in bytes.
    struct Parameter {
        std::uint32_t kind = 0;
        std::size_t bytes = 0;
        std::size_t offset = 0;
    };
    Parameter parameter(std::uint32_t index) const
    {
        Parameter parameter;
        detail::call(sv_function_parameter, handle(), index, &parameter.kind, &parameter.bytes, &parameter.offset);
        return parameter;
    }

    /// Returns how many blocks of so many threads and bytes of shared memory one multiprocessor holds.
    std::uint32_t occupancy(std::uint32_t threads, std::uint32_t shared = 0) const
    {
        return detail::get<std::uint32_t>(sv_function_occupancy, handle(), threads, shared);
    }

    /// Returns the sizes of grid and block of the highest occupancy.
    LaunchConfig suggested_config(std::uint32_t shared = 0) const
    {
        LaunchConfig config;
        config.shared = shared;
        detail::call(sv_function_suggested_block_size, handle(), shared, &config.grid.x, &config.block.x);
        return config;
    }
};

/// A kernel with the C++ types of its parameters: `Kernel<Read<float>, Write<float>, std::uint32_t>`.
template <class... Parameters>
class Kernel {
public:
    explicit Kernel(Function function) noexcept : function_(std::move(function)) {}

    void operator()(const Stream &stream, const LaunchConfig &config,
                    const std::common_type_t<Parameters> &...arguments) const
    {
        function_.launch(stream, config, arguments...);
    }

    const Function &function() const noexcept { return function_; }

private:
    Function function_;
};

/// Code on a CUDA device.
class Module : public Object<Module, sv_module> {
public:
    Module() noexcept = default;

    /// Loads PTX, a cubin or a fatbin: a string, a vector, an array or a span of bytes.
    template <class Range, class = std::enable_if_t<detail::is_contiguous<const Range>::value>>
    Module(Device device, const Range &image) : Module(device, image.data(), image.size() * sizeof *image.data())
    {
    }
    Module(Device device, const char *ptx) : Module(device, std::string(ptx)) {}
    Module(Device device, const void *image, std::size_t bytes)
        : Object(detail::get<sv_module>(sv_module_load, device.ordinal(), image, bytes))
    {
    }

    Function function(const std::string &name) const
    {
        return detail::make<Function>(sv_module_function, handle(), name.c_str());
    }

    /// Returns a kernel with the types of its parameters.
    template <class... Parameters>
    Kernel<Parameters...> kernel(const std::string &name) const
    {
        return Kernel<Parameters...>(function(name));
    }

    /// Returns the names of the kernels.
    std::vector<std::string> function_names() const
    {
        const std::string lines = detail::text(sv_module_function_names, handle());
        std::vector<std::string> names;
        for (std::size_t start = 0, end; (end = lines.find('\n', start)) != std::string::npos; start = end + 1)
            names.push_back(lines.substr(start, end - start));
        return names;
    }

    /// Returns the log of the driver's assembler.
    std::string log() const { return detail::text(sv_module_log, handle()); }

    /// Returns the address and the bytes of a variable.
    std::pair<std::uint64_t, std::size_t> global(const std::string &name) const
    {
        std::pair<std::uint64_t, std::size_t> global;
        detail::call(sv_module_global, handle(), name.c_str(), &global.first, &global.second);
        return global;
    }

    template <class T>
    T read_global(const std::string &name) const
    {
        static_assert(std::is_trivially_copyable_v<T>, "variables are copied as bytes");
        T value{};
        detail::call(sv_module_global_read, handle(), name.c_str(), sv_stream{}, static_cast<void *>(&value),
                     sizeof value);
        return value;
    }

    template <class T>
    void write_global(const std::string &name, const T &value) const
    {
        static_assert(std::is_trivially_copyable_v<T>, "variables are copied as bytes");
        detail::call(sv_module_global_write, handle(), name.c_str(), sv_stream{},
                     static_cast<const void *>(&value), sizeof value);
    }
};

/// A program of CUDA C++ for NVRTC.
class Program : public Object<Program, sv_program> {
public:
    Program() noexcept = default;

    /// `name` stands in messages, such as `saxpy.cu`.
    Program(const std::string &name, const std::string &source)
        : Object(detail::get<sv_program>(sv_program_create, name.c_str(), source.c_str()))
    {
    }

    Program &add_header(const std::string &name, const std::string &source)
    {
        detail::call(sv_program_add_header, handle(), name.c_str(), source.c_str());
        return *this;
    }
    Program &add_option(const std::string &option)
    {
        detail::call(sv_program_add_option, handle(), option.c_str());
        return *this;
    }
    /// Asks for the lowered name of a template instance, such as `scale<float>`.
    Program &add_expression(const std::string &expression)
    {
        detail::call(sv_program_add_expression, handle(), expression.c_str());
        return *this;
    }

    /// Compiles for a target, such as `sm_90a` or `compute_80`, or for a device. log() has the log, also after an error.
    void compile(const std::string &target) const { detail::call(sv_program_compile, handle(), target.c_str()); }
    void compile(Device device) const { detail::call(sv_program_compile_for_device, handle(), device.ordinal()); }

    std::string log() const { return detail::text(sv_program_log, handle()); }
    std::string lowered_name(const std::string &expression) const
    {
        return detail::text(sv_program_lowered_name, handle(), expression.c_str());
    }

    /// Returns the cubin or the PTX.
    std::vector<std::uint8_t> image() const
    {
        std::size_t length = 0;
        detail::call(sv_program_image, handle(), nullptr, std::size_t{0}, &length);
        std::vector<std::uint8_t> image(length);
        detail::call(sv_program_image, handle(), static_cast<void *>(image.data()), image.size(), &length);
        return image;
    }

    /// Loads the compiled program.
    Module load(Device device) const { return detail::make<Module>(sv_program_load, handle(), device.ordinal()); }
};

SELVEDGE_END

#endif
