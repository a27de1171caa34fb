// Symbolic expressions of exact numbers, constants and inputs, evaluated in batches.

#ifndef SELVEDGE_SYMBOLIC_HPP
#define SELVEDGE_SYMBOLIC_HPP

#include "golden_exact.hpp"

SELVEDGE_BEGIN

namespace srt {

enum class Constant : std::int32_t {
    Pi = SV_SRT_CONSTANT_PI,
    E = SV_SRT_CONSTANT_E,
    Phi = SV_SRT_CONSTANT_PHI,
    EStar = SV_SRT_CONSTANT_ESTAR,
    Q = SV_SRT_CONSTANT_Q,
};

/// A tree of numbers, inputs and functions. Building evaluates nothing, except that + - * / of two integers, two fractions or two
/// exact numbers are exact numbers at once: `(SymExpr::input(0).pow(2) + 1) * Constant::Pi`.
class SymExpr : public Object<SymExpr, sv_srt_symbolic> {
public:
    SymExpr() noexcept = default;
    template <class I, class = std::enable_if_t<std::is_integral_v<I> && !std::is_same_v<I, bool>>>
    SymExpr(I integer) : SymExpr(make(sv_srt_symbolic_integer, static_cast<std::int64_t>(integer)))
    {
        static_assert(std::is_signed_v<I> || sizeof(I) < sizeof(std::int64_t), "a number that int64_t may not hold");
    }
    SymExpr(const GoldenExact &number) : SymExpr(make(sv_srt_symbolic_exact, &number.raw())) {}
    SymExpr(Constant constant) : SymExpr(make(sv_srt_symbolic_constant, static_cast<std::int32_t>(constant))) {}

    /// Makes a fraction.
    static SymExpr rational(std::int64_t numerator, std::int64_t denominator)
    {
        return make(sv_srt_symbolic_rational, numerator, denominator);
    }
    /// Makes the expression for column `slot` of the rows of a run.
    static SymExpr input(std::size_t slot) { return make(sv_srt_symbolic_input, slot); }

    friend SymExpr operator+(const SymExpr &x, const SymExpr &y) { return x.with(SV_SRT_SYMBOLIC_ADD, y); }
    friend SymExpr operator-(const SymExpr &x, const SymExpr &y) { return x.with(SV_SRT_SYMBOLIC_SUB, y); }
    friend SymExpr operator*(const SymExpr &x, const SymExpr &y) { return x.with(SV_SRT_SYMBOLIC_MUL, y); }
    friend SymExpr operator/(const SymExpr &x, const SymExpr &y) { return x.with(SV_SRT_SYMBOLIC_DIV, y); }
    SymExpr operator-() const { return with(SV_SRT_SYMBOLIC_NEG, *this); }
    SymExpr exp() const { return with(SV_SRT_SYMBOLIC_EXP, *this); }
    SymExpr ln() const { return with(SV_SRT_SYMBOLIC_LN, *this); }
    SymExpr gamma() const { return with(SV_SRT_SYMBOLIC_GAMMA, *this); }
    SymExpr sin() const { return with(SV_SRT_SYMBOLIC_SIN, *this); }
    SymExpr cos() const { return with(SV_SRT_SYMBOLIC_COS, *this); }
    /// Returns this to the power numerator/denominator.
    SymExpr pow(std::int64_t numerator, std::int64_t denominator = 1) const
    {
        return make(sv_srt_symbolic_pow, handle(), numerator, denominator);
    }

    /// Returns the number of leaves and functions.
    std::size_t node_count() const { return detail::get<std::size_t>(sv_srt_symbolic_node_count, handle()); }
    /// Returns the number of input slots: the highest one, plus 1.
    std::size_t slots() const { return detail::get<std::size_t>(sv_srt_symbolic_slots, handle()); }
    /// Returns whether both are the same tree.
    friend bool operator==(const SymExpr &x, const SymExpr &y)
    {
        return detail::get<std::int32_t>(sv_srt_symbolic_is_same, x.handle(), y.handle()) != 0;
    }
    friend bool operator!=(const SymExpr &x, const SymExpr &y) { return !(x == y); }
    /// Returns a text in UTF-8, such as `((x0^2 + 1) · π)`.
    std::string text() const { return selvedge::detail::text(sv_srt_symbolic_text, handle()); }

    /// Computes the value of one row of inputs, on the CPU.
    double evaluate(const std::vector<double> &inputs = {}) const
    {
        return detail::get<double>(sv_srt_symbolic_evaluate, handle(), inputs.data(), inputs.size());
    }
    /// Computes a value for each row of a matrix of double, whose columns are the input slots, on its device.
    Tensor run_rows(const Tensor &rows) const
    {
        return detail::make<Tensor>(sv_srt_symbolic_run_rows, handle(), rows.handle());
    }

private:
    template <class Function, class... Arguments>
    static SymExpr make(Function function, const Arguments &...arguments)
    {
        return detail::make<SymExpr>(function, arguments...);
    }
    SymExpr with(std::int32_t operation, const SymExpr &other) const
    {
        return make(sv_srt_symbolic_operation, operation, handle(), other.handle());
    }
};

} // namespace srt

SELVEDGE_END

#endif
