// Dtypes, the C++ types that stand for them, and numbers.

#ifndef SELVEDGE_DTYPE_HPP
#define SELVEDGE_DTYPE_HPP

#include <complex>

#include "object.hpp"

SELVEDGE_BEGIN

/// The type of a tensor's elements.
enum class DType : std::int32_t {
    None = SV_DTYPE_NONE,
    Bool = SV_DTYPE_BOOL,
    U8 = SV_DTYPE_U8,
    I8 = SV_DTYPE_I8,
    U16 = SV_DTYPE_U16,
    I16 = SV_DTYPE_I16,
    U32 = SV_DTYPE_U32,
    I32 = SV_DTYPE_I32,
    U64 = SV_DTYPE_U64,
    I64 = SV_DTYPE_I64,
    F16 = SV_DTYPE_F16,
    BF16 = SV_DTYPE_BF16,
    F32 = SV_DTYPE_F32,
    F64 = SV_DTYPE_F64,
    C64 = SV_DTYPE_C64,
    C128 = SV_DTYPE_C128,
    F8E4M3 = SV_DTYPE_F8E4M3,
    F8E5M2 = SV_DTYPE_F8E5M2,
};

/// Returns the name of a dtype, such as `f32`.
inline const char *name(DType dtype) noexcept
{
    static constexpr const char *names[] = {"none", "bool", "u8",   "i8",  "u16", "i16", "u32",  "i32",    "u64",
                                            "i64",  "f16",  "bf16", "f32", "f64", "c64", "c128", "f8e4m3", "f8e5m2"};
    const auto code = static_cast<std::size_t>(dtype);
    return code < sizeof names / sizeof *names ? names[code] : "unknown";
}

/// Returns the bytes of one element of a dtype.
inline std::size_t size_of(DType dtype) noexcept
{
    static constexpr std::size_t sizes[] = {0, 1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 8, 16, 1, 1};
    const auto code = static_cast<std::size_t>(dtype);
    return code < sizeof sizes / sizeof *sizes ? sizes[code] : 0;
}

inline std::ostream &operator<<(std::ostream &stream, DType dtype) { return stream << name(dtype); }

namespace detail {

template <class T>
constexpr DType dtype() noexcept
{
    if constexpr (std::is_same_v<T, bool>)
        return DType::Bool;
    else if constexpr (std::is_same_v<T, float>)
        return DType::F32;
    else if constexpr (std::is_same_v<T, double>)
        return DType::F64;
    else if constexpr (std::is_same_v<T, std::complex<float>>)
        return DType::C64;
    else if constexpr (std::is_same_v<T, std::complex<double>>)
        return DType::C128;
    else if constexpr (std::is_integral_v<T> && sizeof(T) == 1)
        return std::is_signed_v<T> ? DType::I8 : DType::U8;
    else if constexpr (std::is_integral_v<T> && sizeof(T) == 2)
        return std::is_signed_v<T> ? DType::I16 : DType::U16;
    else if constexpr (std::is_integral_v<T> && sizeof(T) == 4)
        return std::is_signed_v<T> ? DType::I32 : DType::U32;
    else if constexpr (std::is_integral_v<T> && sizeof(T) == 8)
        return std::is_signed_v<T> ? DType::I64 : DType::U64;
    else
        return DType::None;
}

template <class T>
inline constexpr bool is_element = dtype<T>() != DType::None;

template <class T>
struct is_complex : std::false_type {};
template <class T>
struct is_complex<std::complex<T>> : std::true_type {};

} // namespace detail

/// The dtype of a C++ type: `bool`, an integer, `float`, `double`, or a `std::complex` of these two. The half-precision types
/// have no C++ type: tensors are cast to and from them.
template <class T>
inline constexpr DType dtype_of = [] {
    static_assert(detail::is_element<T>, "no dtype has elements of this type");
    return detail::dtype<T>();
}();

/// A number of any kind, which takes part in promotion by its kind alone.
class Number {
public:
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
    Number(T value) noexcept
    {
        if constexpr (std::is_floating_point_v<T>) {
            number_.kind = SV_NUMBER_REAL;
            number_.real = static_cast<double>(value);
        } else {
            number_.kind = std::is_same_v<T, bool> ? SV_NUMBER_BOOL
                           : std::is_signed_v<T>   ? SV_NUMBER_INTEGER
                                                   : SV_NUMBER_UNSIGNED;
            number_.integer = static_cast<std::int64_t>(value);
        }
    }
    template <class T>
    Number(std::complex<T> value) noexcept
    {
        number_.kind = SV_NUMBER_COMPLEX;
        number_.real = static_cast<double>(value.real());
        number_.imaginary = static_cast<double>(value.imag());
    }

    const sv_number &raw() const noexcept { return number_; }

private:
    sv_number number_{};
};

namespace detail {

template <class T>
inline constexpr bool is_number = std::is_arithmetic_v<T> || is_complex<T>::value;

} // namespace detail

SELVEDGE_END

#endif
