// Elementwise operations of tensors: a method for each, those in place, and operators.

#ifndef SELVEDGE_ELEMENTWISE_HPP
#define SELVEDGE_ELEMENTWISE_HPP

#include "dtype.hpp"

SELVEDGE_BEGIN

class Tensor;

/// An argument that is a tensor or a number, for the time of a call.
class Operand {
public:
    Operand(const Tensor &tensor);
    template <class T, class = std::enable_if_t<detail::is_number<T>>>
    Operand(T number) noexcept : operand_{0, Number(number).raw()}
    {
    }

    const sv_operand &raw() const noexcept { return operand_; }

private:
    sv_operand operand_;
};

namespace detail {

template <class... Operands>
sv_tensor operation(std::uint32_t code, const Operands &...operands)
{
    const sv_operand raw[] = {operands.raw()...};
    return get<sv_tensor>(sv_operation, code, static_cast<const sv_operand *>(raw), sizeof...(operands));
}

/// The elementwise operations of Tensor. Dtypes are promoted and shapes broadcast as in PyTorch. A method that ends in
/// `_in_place` writes its result to the tensor, in the tensor's dtype.
template <class Derived>
class Elementwise {
public:
#define SELVEDGE_METHODS(name, code) \
    Derived name() const { return Derived::adopt(operation(SV_OP_##code, Operand(self()))); } \
    Derived &name##_in_place() { return in_place(SV_OP_##code); }
    SV_UNARY_OPERATIONS(SELVEDGE_METHODS)
#undef SELVEDGE_METHODS

#define SELVEDGE_METHODS(name, code) \
    Derived name(const Operand &y) const { return Derived::adopt(operation(SV_OP_##code, Operand(self()), y)); } \
    Derived &name##_in_place(const Operand &y) { return in_place(SV_OP_##code, y); }
    SV_BINARY_OPERATIONS(SELVEDGE_METHODS)
#undef SELVEDGE_METHODS

#define SELVEDGE_METHODS(name, code) \
    Derived name(const Operand &y, const Operand &z) const \
    { \
        return Derived::adopt(operation(SV_OP_##code, Operand(self()), y, z)); \
    } \
    Derived &name##_in_place(const Operand &y, const Operand &z) { return in_place(SV_OP_##code, y, z); }
    SV_TERNARY_OPERATIONS(SELVEDGE_METHODS)
#undef SELVEDGE_METHODS

    friend Derived operator-(const Derived &x) { return x.neg(); }
    friend Derived operator~(const Derived &x) { return x.bit_not(); }

#define SELVEDGE_OPERATOR(symbol, name, code) \
    friend Derived operator symbol(const Operand &x, const Operand &y) \
    { \
        return Derived::adopt(operation(SV_OP_##code, x, y)); \
    } \
    Derived &operator symbol##=(const Operand &y) { return in_place(SV_OP_##code, y); }
    SELVEDGE_OPERATOR(+, add, ADD)
    SELVEDGE_OPERATOR(-, sub, SUB)
    SELVEDGE_OPERATOR(*, mul, MUL)
    SELVEDGE_OPERATOR(/, div, DIV)
    SELVEDGE_OPERATOR(%, remainder, REMAINDER)
    SELVEDGE_OPERATOR(&, bit_and, BIT_AND)
    SELVEDGE_OPERATOR(|, bit_or, BIT_OR)
    SELVEDGE_OPERATOR(^, bit_xor, BIT_XOR)
#undef SELVEDGE_OPERATOR

    /// Writes an operation, one of `SV_OP_...`, of operands to this tensor, in its shape and dtype. The first one is a tensor.
    template <class... Operands>
    Derived &set_to(std::uint32_t code, const Operands &...operands)
    {
        const sv_operand raw[] = {Operand(operands).raw()...};
        call(sv_operation_into, code, static_cast<const sv_operand *>(raw), sizeof...(operands), self().handle());
        return self();
    }

private:
    const Derived &self() const noexcept { return static_cast<const Derived &>(*this); }
    Derived &self() noexcept { return static_cast<Derived &>(*this); }

    template <class... Operands>
    Derived &in_place(std::uint32_t code, const Operands &...others)
    {
        // One more, for an array without elements is none in C++.
        const sv_operand raw[] = {others.raw()..., sv_operand{}};
        call(sv_operation_in_place, code, self().handle(), static_cast<const sv_operand *>(raw), sizeof...(others));
        return self();
    }
};

} // namespace detail

SELVEDGE_END

#endif
