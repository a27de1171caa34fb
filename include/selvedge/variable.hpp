// Variables: tensors whose operations are recorded, for gradients of a loss of a program's own.

#ifndef SELVEDGE_VARIABLE_HPP
#define SELVEDGE_VARIABLE_HPP

#include "tensor.hpp"

SELVEDGE_BEGIN

namespace nn {

class Variable;

enum class Loss : std::int32_t {
    Mse = SV_LOSS_MSE,
    BinaryCrossEntropy = SV_LOSS_BINARY_CROSS_ENTROPY,
    BinaryCrossEntropyWithLogits = SV_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS,
    CrossEntropy = SV_LOSS_CROSS_ENTROPY,
    Nll = SV_LOSS_NLL,
    KlDiv = SV_LOSS_KL_DIV,
};

/// The form of a loss.
enum class LossReduction : std::int32_t {
    /// The batch mean for Loss::KlDiv, and the mean for the others.
    Default = SV_LOSS_REDUCTION_DEFAULT,
    None = SV_LOSS_REDUCTION_NONE,
    Sum = SV_LOSS_REDUCTION_SUM,
    Mean = SV_LOSS_REDUCTION_MEAN,
    BatchMean = SV_LOSS_REDUCTION_BATCH_MEAN,
};

/// The options of a loss. A loss refuses an option that it does not read.
struct LossOptions {
    LossReduction reduction = LossReduction::Default;
    /// The label that counts as no loss; -100 without one. Of the losses of labels.
    std::optional<std::int64_t> ignore_index;
    /// The part of the loss that all classes share equally. Of Loss::CrossEntropy.
    double label_smoothing = 0;
    /// True for a target of logarithms of probabilities. Of Loss::KlDiv.
    bool is_log_target = false;

    sv_loss_options raw() const
    {
        sv_loss_options raw{};
        raw.size = sizeof raw;
        raw.reduction = static_cast<std::int32_t>(reduction);
        raw.is_log_target = is_log_target;
        raw.has_ignore_index = ignore_index.has_value();
        raw.ignore_index = ignore_index.value_or(0);
        raw.label_smoothing = label_smoothing;
        return raw;
    }
};

/// An argument that is a variable, a tensor or a number, for the time of a call.
class VariableOperand {
public:
    VariableOperand(const Variable &variable);
    VariableOperand(const Tensor &tensor) : operand_(sv_variable_operand_with(nullptr, Operand(tensor).raw())) {}
    template <class T, class = std::enable_if_t<detail::is_number<T>>>
    VariableOperand(T number) noexcept : operand_(sv_variable_operand_with(nullptr, Operand(number).raw()))
    {
    }

    const sv_variable_operand &raw() const noexcept { return operand_; }

private:
    sv_variable_operand operand_;
};

/// A scope of the thread in which operations of variables record nothing. Scopes nest.
class NoGrad {
public:
    NoGrad() : depth_(detail::get<std::size_t>(sv_no_grad_begin)), begun_(!detail::has_failed()) {}
    NoGrad(const NoGrad &) = delete;
    NoGrad &operator=(const NoGrad &) = delete;
    ~NoGrad()
    {
        if (begun_)
            sv_no_grad_end(depth_);
    }

private:
    std::size_t depth_;
    bool begun_;
};

/// Returns whether operations of variables on this thread are recorded.
inline bool is_grad_enabled() { return detail::get<std::int32_t>(sv_is_grad_enabled) != 0; }

/// A tensor whose operations are recorded. A copy is the same variable.
///
/// Operations have the names of Tensor's. Their other operands are variables, tensors and numbers, and their results are new
/// variables: `x += y` is `x = x + y`. Indices and masks are tensors.
class Variable : public Object<Variable, sv_variable> {
public:
    Variable() noexcept = default;
    explicit Variable(const Tensor &tensor, bool requires_grad = false)
        : Object(detail::get<sv_variable>(sv_variable_create, tensor.handle(), std::int32_t{requires_grad}))
    {
    }

    // The value.

    Tensor tensor() const { return detail::make<Tensor>(sv_variable_tensor, handle()); }
    Shape shape() const { return tensor().shape(); }
    std::size_t rank() const { return tensor().rank(); }
    DType dtype() const { return tensor().dtype(); }
    Device device() const { return tensor().device(); }
    /// Returns the only element.
    template <class T>
    T item() const
    {
        return tensor().item<T>();
    }
    bool requires_grad() const { return is(sv_variable_requires_grad); }
    bool is_leaf() const { return is(sv_variable_is_leaf); }
    /// Returns a constant with the same elements.
    Variable detach() const { return made(sv_variable_detach); }
    Variable cast(DType dtype) const { return made(sv_variable_cast, static_cast<std::int32_t>(dtype)); }
    Variable to(Device device) const { return made(sv_variable_to_device, device.ordinal()); }
    /// Replaces the elements, for every copy of this variable. That of a leaf with a gradient is within NoGrad alone.
    void assign(const Operand &value) const { detail::call(sv_variable_assign, handle(), &value.raw()); }

    // Gradients.

    /// Returns the gradient, or an empty tensor if there is none.
    Tensor grad() const { return detail::make<Tensor>(sv_variable_grad, handle()); }
    void zero_grad() const { detail::call(sv_variable_zero_grad, handle()); }
    /// Adds gradients to the variables that this one was computed from. Without a gradient it has one element.
    void backward(const Tensor &gradient = {}) const
    {
        detail::call(sv_variable_backward, handle(), gradient.handle());
    }
    /// Adds gradients, and keeps the saved values for another backward.
    void backward_retain_graph(const Tensor &gradient = {}) const
    {
        detail::call(sv_variable_backward_retain_graph, handle(), gradient.handle());
    }
    /// Returns the gradients with respect to inputs, and changes none of grad(). With `create_graph` they are recorded, for gradients
    /// of gradients. Without a gradient this variable has one element.
    std::vector<Variable> gradients(const std::vector<Variable> &inputs, bool create_graph = false,
                                    const Variable &gradient = {}) const
    {
        const std::vector<sv_variable> raw = detail::handles(inputs);
        std::vector<sv_variable> found(raw.size());
        detail::call(sv_variable_gradients, handle(), gradient.handle(), raw.data(), raw.size(),
                               std::int32_t{create_graph}, found.data());
        return adopted(found);
    }

    // Elementwise operations and products.

#define SELVEDGE_METHOD(name, code) \
    Variable name() const { return operation(SV_OP_##code, *this); }
    SV_UNARY_OPERATIONS(SELVEDGE_METHOD)
#undef SELVEDGE_METHOD
#define SELVEDGE_METHOD(name, code) \
    Variable name(const VariableOperand &y) const { return operation(SV_OP_##code, *this, y); }
    SV_BINARY_OPERATIONS(SELVEDGE_METHOD)
#undef SELVEDGE_METHOD
#define SELVEDGE_METHOD(name, code) \
    Variable name(const VariableOperand &y, const VariableOperand &z) const \
    { \
        return operation(SV_OP_##code, *this, y, z); \
    }
    SV_TERNARY_OPERATIONS(SELVEDGE_METHOD)
#undef SELVEDGE_METHOD

    friend Variable operator-(const Variable &x) { return x.neg(); }
#define SELVEDGE_OPERATOR(symbol, code) \
    friend Variable operator symbol(const VariableOperand &x, const VariableOperand &y) \
    { \
        return operation(SV_OP_##code, x, y); \
    } \
    Variable &operator symbol##=(const VariableOperand &y) { return *this = operation(SV_OP_##code, *this, y); }
    SELVEDGE_OPERATOR(+, ADD)
    SELVEDGE_OPERATOR(-, SUB)
    SELVEDGE_OPERATOR(*, MUL)
    SELVEDGE_OPERATOR(/, DIV)
    SELVEDGE_OPERATOR(%, REMAINDER)
#undef SELVEDGE_OPERATOR

    /// Computes an operation, one of `SV_OP_...`, of operands, of which one at least is a variable or a tensor.
    template <class... Operands>
    static Variable operation(std::uint32_t code, const Operands &...operands)
    {
        const sv_variable_operand raw[] = {VariableOperand(operands).raw()...};
        return detail::make<Variable>(sv_variable_operation, code, static_cast<const sv_variable_operand *>(raw),
                                                sizeof...(operands));
    }

    Variable matmul(const Variable &right) const { return made(sv_variable_matmul, right.handle()); }

    // Reductions, softmax and norms. `axes` is one axis, a list `{0, 1}`, or all of them.

#define SELVEDGE_REDUCTION(name, code) \
    Variable name(const Axes &axes = Axes::all(), bool keepdim = false) const \
    { \
        return reduce(SV_REDUCE_##code, axes, keepdim, 0); \
    }
    SELVEDGE_REDUCTION(sum, SUM)
    SELVEDGE_REDUCTION(prod, PROD)
    SELVEDGE_REDUCTION(min, MIN)
    SELVEDGE_REDUCTION(max, MAX)
    SELVEDGE_REDUCTION(mean, MEAN)
    SELVEDGE_REDUCTION(logsumexp, LOGSUMEXP)
#undef SELVEDGE_REDUCTION
    /// Computes the variance. The correction is 1 for a sample, and 0 for a population.
    Variable var(const Axes &axes = Axes::all(), double correction = 1, bool keepdim = false) const
    {
        return reduce(SV_REDUCE_VAR, axes, keepdim, correction);
    }
    /// Computes the standard deviation.
    Variable std(const Axes &axes = Axes::all(), double correction = 1, bool keepdim = false) const
    {
        return reduce(SV_REDUCE_STD, axes, keepdim, correction);
    }
    /// Computes the p-norm.
    Variable norm(double p = 2, const Axes &axes = Axes::all(), bool keepdim = false) const
    {
        return reduce(SV_REDUCE_NORM, axes, keepdim, p);
    }
    Variable cumsum(std::int64_t axis) const { return made(sv_variable_scan, std::int32_t{SV_SCAN_SUM}, axis); }
    Variable cumprod(std::int64_t axis) const { return made(sv_variable_scan, std::int32_t{SV_SCAN_PROD}, axis); }
    Variable softmax(std::int64_t axis = -1) const { return made(sv_variable_softmax, axis); }
    Variable log_softmax(std::int64_t axis = -1) const { return made(sv_variable_log_softmax, axis); }
    /// Normalises the last axes, whose sizes are `normalized_shape`. A weight or a bias that is empty is none.
    Variable layer_norm(const Shape &normalized_shape, const Variable &weight = {}, const Variable &bias = {},
                        double eps = 1e-5) const
    {
        return made(sv_variable_layer_norm, normalized_shape.data(), normalized_shape.size(), weight.handle(),
                    bias.handle(), eps);
    }
    /// Computes x / sqrt(mean(x²) + eps) · weight. A negative `eps` is the machine epsilon of the dtype.
    Variable rms_norm(const Shape &normalized_shape, const Variable &weight = {}, double eps = -1) const
    {
        return made(sv_variable_rms_norm, normalized_shape.data(), normalized_shape.size(), weight.handle(), eps);
    }

    // Losses.

    /// Computes the mean loss of a batch.
    Variable loss(Loss loss, const Tensor &target) const
    {
        return made(sv_variable_loss, static_cast<std::int32_t>(loss), target.handle());
    }
    Variable loss(Loss loss, const Tensor &target, const LossOptions &options) const
    {
        const sv_loss_options raw = options.raw();
        return made(sv_variable_loss_with_options, static_cast<std::int32_t>(loss), target.handle(), &raw);
    }

    // Shapes.

    Variable reshape(const Shape &shape) const { return made(sv_variable_reshape, shape.data(), shape.size()); }
    Variable flatten(std::int64_t first = 0, std::int64_t last = -1) const
    {
        return made(sv_variable_flatten, first, last);
    }
    Variable unflatten(std::int64_t axis, const Shape &sizes) const
    {
        return made(sv_variable_unflatten, axis, sizes.data(), sizes.size());
    }
    Variable squeeze() const { return made(sv_variable_squeeze_all); }
    Variable squeeze(std::int64_t axis) const { return made(sv_variable_squeeze, axis); }
    Variable unsqueeze(std::int64_t axis) const { return made(sv_variable_unsqueeze, axis); }
    Variable transpose(std::int64_t first = -2, std::int64_t second = -1) const
    {
        return made(sv_variable_transpose, first, second);
    }
    Variable permute(const Shape &axes) const { return made(sv_variable_permute, axes.data(), axes.size()); }
    Variable movedim(std::int64_t from, std::int64_t to) const
    {
        return made(sv_variable_movedim, &from, &to, std::size_t{1});
    }
    Variable flip(const Shape &axes) const { return made(sv_variable_flip, axes.data(), axes.size()); }
    Variable expand(const Shape &shape) const { return made(sv_variable_expand, shape.data(), shape.size()); }
    Variable slice(std::int64_t axis, std::int64_t start, std::int64_t stop = open_end, std::int64_t step = 1) const
    {
        const sv_slice slice{axis, start, stop, step};
        return made(sv_variable_slice, &slice, std::size_t{1});
    }
    Variable select(std::int64_t axis, std::int64_t index) const { return made(sv_variable_select, axis, index); }
    /// Returns one position along the first axis.
    Variable operator[](std::int64_t index) const { return select(0, index); }
    /// The positions along the first axis: `for (const Variable row : x)`, while this object lives.
    detail::RowIterator<Variable> begin() const { return {this, 0}; }
    detail::RowIterator<Variable> end() const { return {this, static_cast<std::ptrdiff_t>(tensor().size(0))}; }
    Variable narrow(std::int64_t axis, std::size_t start, std::size_t length) const
    {
        return made(sv_variable_narrow, axis, start, length);
    }
    Variable diagonal(std::int64_t offset = 0, std::int64_t first = 0, std::int64_t second = 1) const
    {
        return made(sv_variable_diagonal, offset, first, second);
    }
    /// Returns parts along an axis, of these sizes.
    std::vector<Variable> split(const Shape &sizes, std::int64_t axis = 0) const
    {
        std::vector<sv_variable> parts(sizes.size());
        detail::call(sv_variable_split, handle(), sizes.data(), sizes.size(), axis, parts.data());
        return adopted(parts);
    }
    Variable roll(const Shape &shifts, const Shape &axes) const
    {
        if (!detail::have_equal_lengths("roll", shifts.size(), axes.size()))
            return {};
        return made(sv_variable_roll, shifts.data(), axes.data(), axes.size());
    }
    Variable repeat(const Shape &times) const { return made(sv_variable_repeat, times.data(), times.size()); }
    /// Pads the first axes by the elements of `{before, behind, before, behind, ...}`.
    Variable pad(const Shape &widths, Number number = 0, Padding mode = Padding::Constant) const
    {
        if (widths.size() % 2 != 0) {
            detail::fail(Error(SV_ERROR_INVALID_ARGUMENT, "pad: found " + std::to_string(widths.size()) +
                                                                        " widths, wanted two for each axis"));
            return {};
        }
        return made(sv_variable_pad, widths.data(), widths.size() / 2, static_cast<std::int32_t>(mode), &number.raw());
    }

    // Elements by position, by a mask and in sorted order.

    /// Returns the elements that an index expression names: `x.index({0, Index::slice(1, 3), mask})`.
    Variable index(const std::vector<Index> &items) const
    {
        std::vector<sv_index> raw;
        for (const Index &item : items)
            raw.push_back(item.raw());
        return made(sv_variable_index, raw.data(), raw.size());
    }
    Variable index_select(std::int64_t axis, const Tensor &index) const
    {
        return made(sv_variable_index_select, axis, index.handle());
    }
    Variable gather(std::int64_t axis, const Tensor &index) const
    {
        return made(sv_variable_gather, axis, index.handle());
    }
    Variable take_along_axis(std::int64_t axis, const Tensor &index) const
    {
        return made(sv_variable_take_along_axis, axis, index.handle());
    }
    Variable take(const Tensor &index) const { return made(sv_variable_take, index.handle()); }
    /// Returns the row of this matrix at each element of an index.
    Variable embedding(const Tensor &index) const { return made(sv_variable_embedding, index.handle()); }
    Variable index_add(std::int64_t axis, const Tensor &index, const Variable &elements) const
    {
        return made(sv_variable_index_add, axis, index.handle(), elements.handle());
    }
    Variable scatter_add(std::int64_t axis, const Tensor &index, const Variable &elements) const
    {
        return made(sv_variable_scatter_add, axis, index.handle(), elements.handle());
    }
    /// Writes elements by coordinates, with an index for each of the first axes.
    Variable index_put(const std::vector<Tensor> &indices, const Variable &elements, bool accumulate = false) const
    {
        const std::vector<sv_tensor> raw = detail::handles(indices);
        return made(sv_variable_index_put, raw.data(), raw.size(), elements.handle(), std::int32_t{accumulate});
    }
    Variable tril(std::int64_t diagonal = 0) const { return made(sv_variable_tril, diagonal); }
    Variable triu(std::int64_t diagonal = 0) const { return made(sv_variable_triu, diagonal); }
    Variable masked_fill(const Tensor &mask, Number number) const
    {
        return made(sv_variable_masked_fill, mask.handle(), &number.raw());
    }
    Variable masked_select(const Tensor &mask) const { return made(sv_variable_masked_select, mask.handle()); }
    /// Returns the sorted elements along an axis, and their positions before.
    std::pair<Variable, Tensor> sort(std::int64_t axis = -1, bool descending = false) const
    {
        return sorted(sv_variable_sort, axis, std::int32_t{descending});
    }
    std::pair<Variable, Tensor> topk(std::size_t k, std::int64_t axis = -1, bool largest = true) const
    {
        return sorted(sv_variable_topk, k, axis, std::int32_t{largest});
    }

private:
    template <class Function, class... Arguments>
    Variable made(Function function, Arguments... arguments) const
    {
        return detail::make<Variable>(function, handle(), arguments...);
    }

    Variable reduce(std::int32_t code, const Axes &axes, bool keepdim, double parameter) const
    {
        return made(sv_variable_reduce, code, axes.pointer(), axes.size(), std::int32_t{keepdim}, parameter);
    }

    template <class Function>
    bool is(Function function) const
    {
        return detail::get<std::int32_t>(function, handle()) != 0;
    }

    template <class Function, class... Arguments>
    std::pair<Variable, Tensor> sorted(Function function, Arguments... arguments) const
    {
        sv_variable values = nullptr;
        sv_tensor indices = nullptr;
        detail::call(function, handle(), arguments..., &values, &indices);
        return {adopt(values), Tensor::adopt(indices)};
    }

    static std::vector<Variable> adopted(const std::vector<sv_variable> &handles)
    {
        std::vector<Variable> variables;
        for (sv_variable variable : handles)
            variables.push_back(adopt(variable));
        return variables;
    }
};

inline VariableOperand::VariableOperand(const Variable &variable) : operand_(sv_variable_operand_of(variable.handle())) {}

/// Joins variables along an axis.
inline Variable cat(const std::vector<Variable> &variables, std::int64_t axis = 0)
{
    const std::vector<sv_variable> handles = detail::handles(variables);
    return detail::make<Variable>(sv_variable_cat, handles.data(), handles.size(), axis);
}

/// Joins variables of one shape along a new axis.
inline Variable stack(const std::vector<Variable> &variables, std::int64_t axis = 0)
{
    const std::vector<sv_variable> handles = detail::handles(variables);
    return detail::make<Variable>(sv_variable_stack, handles.data(), handles.size(), axis);
}

/// Returns elements of `x` for true elements of the mask, and of `y` for the others.
inline Variable choose(const VariableOperand &mask, const VariableOperand &x, const VariableOperand &y)
{
    return Variable::operation(SV_OP_CHOOSE, mask, x, y);
}

} // namespace nn

SELVEDGE_END

#endif
