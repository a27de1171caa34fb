// Exact numbers a + b phi with rational a and b.

#ifndef SELVEDGE_GOLDEN_EXACT_HPP
#define SELVEDGE_GOLDEN_EXACT_HPP

#include "srt.hpp"

SELVEDGE_BEGIN

namespace srt {

/// A number of Q(phi) whose numerators and denominators have 128 bits. An overflow and a quotient by 0 are errors.
class GoldenExact {
public:
    /// Makes a + b phi.
    GoldenExact(std::int64_t a = 0, std::int64_t b = 0) : GoldenExact(fraction(a, 1, b, 1)) {}
    explicit GoldenExact(const sv_srt_exact &raw) noexcept : raw_(raw) {}

    /// Makes a_numerator/a_denominator + b_numerator/b_denominator phi.
    static GoldenExact fraction(std::int64_t a_numerator, std::int64_t a_denominator, std::int64_t b_numerator,
                                std::int64_t b_denominator)
    {
        return get(sv_srt_exact_create, a_numerator, a_denominator, b_numerator, b_denominator);
    }
    static GoldenExact phi_pow(std::int32_t n) { return get(sv_srt_exact_phi_pow, n); }

    const sv_srt_exact &raw() const noexcept { return raw_; }
    sv_srt_rational a() const noexcept { return raw_.a; }
    sv_srt_rational b() const noexcept { return raw_.b; }

    friend GoldenExact operator+(const GoldenExact &x, const GoldenExact &y) { return x.with(SV_SRT_GOLDEN_ADD, y); }
    friend GoldenExact operator-(const GoldenExact &x, const GoldenExact &y) { return x.with(SV_SRT_GOLDEN_SUB, y); }
    friend GoldenExact operator*(const GoldenExact &x, const GoldenExact &y) { return x.with(SV_SRT_GOLDEN_MUL, y); }
    friend GoldenExact operator/(const GoldenExact &x, const GoldenExact &y) { return x.with(SV_SRT_GOLDEN_DIV, y); }
    GoldenExact operator-() const { return with(SV_SRT_GOLDEN_NEG, *this); }
    GoldenExact conjugate() const { return with(SV_SRT_GOLDEN_CONJUGATE, *this); }
    GoldenExact inverse() const { return with(SV_SRT_GOLDEN_INVERSE, *this); }
    /// Returns phi times the number.
    GoldenExact recursion() const { return with(SV_SRT_GOLDEN_RECURSION, *this); }
    /// Returns the number over phi.
    GoldenExact recursion_inverse() const { return with(SV_SRT_GOLDEN_RECURSION_INVERSE, *this); }
    GoldenExact pow(std::int32_t exponent) const { return get(sv_srt_exact_pow, &raw_, exponent); }
    sv_srt_rational norm() const { return detail::get<sv_srt_rational>(sv_srt_exact_norm, &raw_); }
    sv_srt_rational trace() const { return detail::get<sv_srt_rational>(sv_srt_exact_trace, &raw_); }

    /// Returns a number below 0 if this one is smaller, 0 if both are equal, and one above 0 if this one is larger.
    std::int32_t compare(const GoldenExact &other) const
    {
        return detail::get<std::int32_t>(sv_srt_exact_compare, &raw_, &other.raw_);
    }
    friend bool operator==(const GoldenExact &x, const GoldenExact &y) { return x.compare(y) == 0; }
    friend bool operator!=(const GoldenExact &x, const GoldenExact &y) { return x.compare(y) != 0; }
    friend bool operator<(const GoldenExact &x, const GoldenExact &y) { return x.compare(y) < 0; }
    friend bool operator>(const GoldenExact &x, const GoldenExact &y) { return x.compare(y) > 0; }
    friend bool operator<=(const GoldenExact &x, const GoldenExact &y) { return x.compare(y) <= 0; }
    friend bool operator>=(const GoldenExact &x, const GoldenExact &y) { return x.compare(y) >= 0; }

    double value() const { return detail::get<double>(sv_srt_exact_value, &raw_); }
    /// Returns a and b of a number whose a and b are integers of 64 bits.
    std::pair<std::int64_t, std::int64_t> integers() const
    {
        std::pair<std::int64_t, std::int64_t> parts;
        detail::call(sv_srt_exact_integers, &raw_, &parts.first, &parts.second);
        return parts;
    }
    /// Returns a text in UTF-8, such as `3/5 - 1/5 φ`.
    std::string text() const { return selvedge::detail::text(sv_srt_exact_text, &raw_); }

private:
    template <class Function, class... Arguments>
    static GoldenExact get(Function function, const Arguments &...arguments)
    {
        return GoldenExact(detail::get<sv_srt_exact>(function, arguments...));
    }
    GoldenExact with(std::int32_t operation, const GoldenExact &other) const
    {
        return get(sv_srt_exact_operation, operation, &raw_, &other.raw_);
    }

    sv_srt_exact raw_;
};

} // namespace srt

SELVEDGE_END

#endif
