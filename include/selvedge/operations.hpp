// The elementwise operations by number of operands: their C++ names and the ends of their codes SV_OP_...
// Tensor and Expression have a method for each; selvedge.h describes them at the codes.

#ifndef SELVEDGE_OPERATIONS_HPP
#define SELVEDGE_OPERATIONS_HPP

#define SELVEDGE_UNARY_OPERATIONS(X) \
    X(neg, NEG) X(abs, ABS) X(sign, SIGN) X(sqrt, SQRT) X(rsqrt, RSQRT) X(reciprocal, RECIPROCAL) X(square, SQUARE) \
    X(floor, FLOOR) X(ceil, CEIL) X(trunc, TRUNC) X(round, ROUND) X(frac, FRAC) X(relu, RELU) X(is_nan, IS_NAN) \
    X(is_infinite, IS_INFINITE) X(is_finite, IS_FINITE) X(logical_not, LOGICAL_NOT) X(bit_not, BIT_NOT) \
    X(real, REAL) X(imag, IMAG) X(conj, CONJ) X(exp, EXP) X(exp2, EXP2) X(expm1, EXPM1) X(log, LOG) X(log2, LOG2) \
    X(log10, LOG10) X(log1p, LOG1P) X(sinh, SINH) X(cosh, COSH) X(tanh, TANH) X(asinh, ASINH) X(acosh, ACOSH) \
    X(atanh, ATANH) X(sigmoid, SIGMOID) X(silu, SILU) X(softplus, SOFTPLUS) X(sin, SIN) X(cos, COS) X(tan, TAN) \
    X(asin, ASIN) X(acos, ACOS) X(atan, ATAN) X(sinc, SINC) X(angle, ANGLE) X(cbrt, CBRT) X(erf, ERF) X(erfc, ERFC) \
    X(gelu, GELU) X(gelu_tanh, GELU_TANH) X(lgamma, LGAMMA) X(logit, LOGIT) X(signbit, SIGNBIT) X(radians, RADIANS) \
    X(degrees, DEGREES)

#define SELVEDGE_BINARY_OPERATIONS(X) \
    X(add, ADD) X(sub, SUB) X(mul, MUL) X(div, DIV) X(floor_divide, FLOOR_DIVIDE) X(trunc_divide, TRUNC_DIVIDE) \
    X(remainder, REMAINDER) X(fmod, FMOD) X(minimum, MINIMUM) X(maximum, MAXIMUM) X(fmin, FMIN) X(fmax, FMAX) \
    X(eq, EQ) X(ne, NE) X(lt, LT) X(le, LE) X(gt, GT) X(ge, GE) X(logical_and, LOGICAL_AND) \
    X(logical_or, LOGICAL_OR) X(logical_xor, LOGICAL_XOR) X(bit_and, BIT_AND) X(bit_or, BIT_OR) X(bit_xor, BIT_XOR) \
    X(shift_left, SHIFT_LEFT) X(shift_right, SHIFT_RIGHT) X(copysign, COPYSIGN) X(hypot, HYPOT) X(atan2, ATAN2) \
    X(pow, POW) X(log_add_exp, LOG_ADD_EXP) X(xlogy, XLOGY) X(xlog1py, XLOG1PY) X(heaviside, HEAVISIDE) \
    X(next_after, NEXT_AFTER) X(mul_high, MUL_HIGH)

#define SELVEDGE_TERNARY_OPERATIONS(X) \
    X(clamp, CLAMP) X(choose, CHOOSE) X(fma, FMA) X(lerp, LERP)

#endif
