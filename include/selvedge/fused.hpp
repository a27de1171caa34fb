// Fused functions: expressions of any number of inputs and outputs that run as one kernel.

#ifndef SELVEDGE_FUSED_HPP
#define SELVEDGE_FUSED_HPP

#include "tensor.hpp"

SELVEDGE_BEGIN

/// An expression of a fused function: an input, a number, or an operation on expressions.
class Expression : public Object<Expression, sv_expression> {
public:
    Expression() noexcept = default;

    template <class T, class = std::enable_if_t<detail::is_number<T>>>
    Expression(T number)
        : Object(detail::get<sv_expression>(sv_expression_number, &static_cast<const sv_number &>(Number(number).raw())))
    {
    }

    /// Returns the expression of operand `index` of a run.
    static Expression input(std::uint32_t index) { return detail::make<Expression>(sv_expression_input, index); }

    /// Returns the expression of an element's index along an axis of the result.
    static Expression index(std::int64_t axis) { return detail::make<Expression>(sv_expression_index, axis); }

    Expression cast(DType dtype) const
    {
        return detail::make<Expression>(sv_expression_cast, handle(), static_cast<std::int32_t>(dtype));
    }

#define SELVEDGE_METHOD(name, code) \
    Expression name() const { return operation(SV_OP_##code, *this); }
    SV_UNARY_OPERATIONS(SELVEDGE_METHOD)
#undef SELVEDGE_METHOD
#define SELVEDGE_METHOD(name, code) \
    Expression name(const Expression &y) const { return operation(SV_OP_##code, *this, y); }
    SV_BINARY_OPERATIONS(SELVEDGE_METHOD)
#undef SELVEDGE_METHOD
#define SELVEDGE_METHOD(name, code) \
    Expression name(const Expression &y, const Expression &z) const { return operation(SV_OP_##code, *this, y, z); }
    SV_TERNARY_OPERATIONS(SELVEDGE_METHOD)
#undef SELVEDGE_METHOD

    friend Expression operator-(const Expression &x) { return x.neg(); }
    friend Expression operator~(const Expression &x) { return x.bit_not(); }
    friend Expression operator+(const Expression &x, const Expression &y) { return x.add(y); }
    friend Expression operator-(const Expression &x, const Expression &y) { return x.sub(y); }
    friend Expression operator*(const Expression &x, const Expression &y) { return x.mul(y); }
    friend Expression operator/(const Expression &x, const Expression &y) { return x.div(y); }
    friend Expression operator%(const Expression &x, const Expression &y) { return x.remainder(y); }
    friend Expression operator&(const Expression &x, const Expression &y) { return x.bit_and(y); }
    friend Expression operator|(const Expression &x, const Expression &y) { return x.bit_or(y); }
    friend Expression operator^(const Expression &x, const Expression &y) { return x.bit_xor(y); }

private:
    template <class... Operands>
    static Expression operation(std::uint32_t code, const Operands &...operands)
    {
        const sv_expression handles[] = {operands.handle()...};
        return detail::make<Expression>(sv_expression_operation, code, static_cast<const sv_expression *>(handles),
                                        sizeof...(operands));
    }
};

/// A function of tensors and numbers that runs as one kernel. The first run with a combination of dtypes compiles it.
class Fused : public Object<Fused, sv_fused> {
public:
    Fused() noexcept = default;

    /// Makes a function with a result for each expression.
    explicit Fused(const std::vector<Expression> &results) : Fused(detail::handles(results)) {}
    explicit Fused(const Expression &result) : Fused(std::vector<sv_expression>{result.handle()}) {}

    /// Computes the only result.
    template <class... Operands>
    Tensor operator()(const Operands &...operands) const
    {
        std::vector<Tensor> results = run({Operand(operands)...}, 1);
        return results.empty() ? Tensor() : std::move(results[0]);
    }

    /// Computes all results.
    std::vector<Tensor> run(const std::vector<Operand> &operands) const
    {
        std::size_t inputs = 0, results = 0;
        detail::call(sv_fused_counts, handle(), &inputs, &results);
        return run(operands, results);
    }

private:
    explicit Fused(const std::vector<sv_expression> &results)
        : Object(detail::get<sv_fused>(sv_fused_create, results.data(), results.size()))
    {
    }

    std::vector<Tensor> run(const std::vector<Operand> &operands, std::size_t count) const
    {
        std::vector<sv_operand> raw;
        raw.reserve(operands.size());
        for (const Operand &operand : operands)
            raw.push_back(operand.raw());
        std::vector<sv_tensor> handles(count);
        detail::call(sv_fused_run, handle(), raw.data(), raw.size(), handles.data(), handles.size());
        std::vector<Tensor> results;
        for (sv_tensor result : handles)
            results.push_back(Tensor::adopt(result));
        return results;
    }
};

namespace detail {

template <class Function, std::uint32_t... I>
Fused fuse(const Function &function, std::integer_sequence<std::uint32_t, I...>)
{
    return Fused(function(Expression::input(I)...));
}

} // namespace detail

/// Makes a fused function of a function of `inputs` expressions, which returns an expression or a vector of them:
/// `fuse<2>([](auto x, auto y) { return (2 * x + y).relu(); })`.
template <std::uint32_t inputs, class Function>
Fused fuse(const Function &function)
{
    return detail::fuse(function, std::make_integer_sequence<std::uint32_t, inputs>());
}

SELVEDGE_END

#endif
