// Operations of the program's own on tensors.

#ifndef SELVEDGE_CUSTOM_HPP
#define SELVEDGE_CUSTOM_HPP

#include <functional>

#include "tensor.hpp"

SELVEDGE_BEGIN

/// An input or an output of a custom operation, valid during the call.
class Array {
public:
    explicit Array(const sv_array &array) noexcept : array_(&array) {}

    DType dtype() const noexcept { return static_cast<DType>(array_->dtype); }
    Elements<const std::int64_t> shape() const noexcept
    {
        return {array_->shape, static_cast<std::size_t>(array_->rank)};
    }

    /// Returns the address of the first element: on the host, or on the CUDA device.
    void *data() const noexcept { return array_->data; }
    std::uint64_t bytes() const noexcept { return array_->bytes; }

    /// Returns the elements on the CPU. `T` is the type of the dtype.
    template <class T>
    Elements<T> elements() const
    {
        if (dtype() != dtype_of<std::remove_cv_t<T>>) {
            detail::fail(Error(SV_ERROR_DTYPE_MISMATCH, std::string("elements: found an array of ") + name(dtype()) +
                                                            ", wanted " + name(dtype_of<std::remove_cv_t<T>>)));
            return {};
        }
        return {static_cast<T *>(array_->data), static_cast<std::size_t>(array_->bytes) / sizeof(T)};
    }

private:
    const sv_array *array_;
};

/// An operation with a function for tensors on the CPU, one for CUDA devices, or both.
class CustomOperation {
public:
    using Host = std::function<void(const std::vector<Array> &inputs, const std::vector<Array> &outputs)>;
    using Cuda =
        std::function<void(const Stream &stream, const std::vector<Array> &inputs, const std::vector<Array> &outputs)>;

    /// `cuda` gives its work to the stream that it gets; Stream::raw() is the `CUstream`.
    explicit CustomOperation(Host host, Cuda cuda = nullptr) : host_(std::move(host)), cuda_(std::move(cuda)) {}

    /// An output's dtype and shape.
    struct Output {
        DType dtype;
        Shape shape;
    };

    /// Runs the operation on tensors of one device. An error or an exception of its functions is that of the call.
    std::vector<Tensor> operator()(const std::vector<Tensor> &inputs, const std::vector<Output> &outputs,
                                   Device device = Device::cpu()) const
    {
        const std::vector<sv_tensor> handles = detail::handles(inputs);
        std::vector<sv_array_type> types;
        for (const Output &output : outputs)
            types.push_back({static_cast<std::int32_t>(output.dtype), static_cast<std::int32_t>(output.shape.size()),
                             output.shape.data()});
        Run run{this, nullptr};
        sv_custom_operation operation{};
        operation.size = sizeof operation;
        operation.host = host_ ? on_host : nullptr;
        operation.cuda = cuda_ ? on_cuda : nullptr;
        operation.user = &run;
        std::vector<sv_tensor> results(outputs.size());
        if (!detail::has_failed()) {
            const std::int32_t status = sv_custom_run(&operation, device.ordinal(), handles.data(), handles.size(),
                                                      types.data(), types.size(), results.data());
#if SELVEDGE_HAS_EXCEPTIONS
            if (run.exception)
                std::rethrow_exception(run.exception);
#endif
            if (!detail::has_failed())
                detail::check(status);
        }
        std::vector<Tensor> tensors;
        for (sv_tensor result : results)
            tensors.push_back(Tensor::adopt(result));
        return tensors;
    }

private:
    struct Run {
        const CustomOperation *operation;
        std::exception_ptr exception;
    };

    static std::vector<Array> arrays(const sv_array *array, std::size_t count)
    {
        std::vector<Array> arrays;
        for (std::size_t position = 0; position < count; position++)
            arrays.emplace_back(array[position]);
        return arrays;
    }

    // No exception may pass through the library.
    template <class Function>
    static std::int32_t guarded(void *user, Function &&function) noexcept
    {
#if SELVEDGE_HAS_EXCEPTIONS
        Run &run = *static_cast<Run *>(user);
        try {
            function(*run.operation);
        } catch (...) {
            run.exception = std::current_exception();
            return 1;
        }
        return 0;
#else
        function(*static_cast<Run *>(user)->operation);
        return detail::has_failed() ? 1 : 0;
#endif
    }

    static std::int32_t on_host(void *user, const sv_array *inputs, std::size_t inputs_count, const sv_array *outputs,
                                std::size_t outputs_count)
    {
        return guarded(user, [&](const CustomOperation &operation) {
            operation.host_(arrays(inputs, inputs_count), arrays(outputs, outputs_count));
        });
    }

    static std::int32_t on_cuda(void *user, sv_stream stream, const sv_array *inputs, std::size_t inputs_count,
                                const sv_array *outputs, std::size_t outputs_count)
    {
        return guarded(user, [&](const CustomOperation &operation) {
            // The handle is the library's; the object has a reference of its own.
            detail::call(sv_retain, stream);
            operation.cuda_(Stream::adopt(stream), arrays(inputs, inputs_count), arrays(outputs, outputs_count));
        });
    }

    Host host_;
    Cuda cuda_;
};

SELVEDGE_END

#endif
