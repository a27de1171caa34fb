// Generated from the list of src/fuse/language/operation.rs by the test of src/capi/tensor/elementwise.rs; do not edit. Again with:
// scripts/generate.sh operations

//! The code of each elementwise operation, behind the number of its operands, which scripts/header reads.

/// x + y; integers wrap, bools are or-ed.
// operands: 2
pub const SV_OP_ADD: u32 = 1;

/// x - y; integers wrap.
// operands: 2
pub const SV_OP_SUB: u32 = 2;

/// x · y; integers wrap, bools are and-ed.
// operands: 2
pub const SV_OP_MUL: u32 = 3;

/// x / y. Integers are divided in f32. Complex numbers use Smith's scaled formula; as in C99, a number other than 0 and NaN divided by 0 is infinite.
// operands: 2
pub const SV_OP_DIV: u32 = 4;

/// The upper half of the product x · y.
// operands: 2
pub const SV_OP_MUL_HIGH: u32 = 95;

/// x / y rounded down. Integer division by 0 gives 0, and the minimum divided by -1 wraps to itself. For floats, the quotient matches `remainder`.
// operands: 2
pub const SV_OP_FLOOR_DIVIDE: u32 = 5;

/// x / y rounded towards 0. Integer division by 0 gives 0, and the minimum divided by -1 wraps to itself.
// operands: 2
pub const SV_OP_TRUNC_DIVIDE: u32 = 6;

/// The remainder of `floor_divide`, with the sign of y (zeros too, as in Python); 0 for integers if y is 0.
// operands: 2
pub const SV_OP_REMAINDER: u32 = 7;

/// The exact remainder of `trunc_divide`, with the sign of x; 0 for integers if y is 0.
// operands: 2
pub const SV_OP_FMOD: u32 = 8;

/// -x; integers wrap.
// operands: 1
pub const SV_OP_NEG: u32 = 9;

/// |x|, exact for real numbers; the minimum integer wraps to itself. For complex numbers, the magnitude.
// operands: 1
pub const SV_OP_ABS: u32 = 10;

/// 1, 0 or -1 with the sign of x; zeros and NaN are unchanged. For complex numbers, x / |x|, and 0 at 0.
// operands: 1
pub const SV_OP_SIGN: u32 = 11;

/// The square root, rounded to nearest. For real numbers, NaN below 0; for complex numbers, the root with a nonnegative real part.
// operands: 1
pub const SV_OP_SQRT: u32 = 12;

/// 1 / sqrt(x); for real numbers both steps round to nearest.
// operands: 1
pub const SV_OP_RSQRT: u32 = 13;

/// 1 / x.
// operands: 1
pub const SV_OP_RECIPROCAL: u32 = 14;

/// x · x.
// operands: 1
pub const SV_OP_SQUARE: u32 = 15;

/// The largest integer at most x.
// operands: 1
pub const SV_OP_FLOOR: u32 = 16;

/// The smallest integer at least x.
// operands: 1
pub const SV_OP_CEIL: u32 = 17;

/// x rounded towards 0.
// operands: 1
pub const SV_OP_TRUNC: u32 = 18;

/// x rounded to the nearest integer, ties to even.
// operands: 1
pub const SV_OP_ROUND: u32 = 19;

/// x - trunc(x), exact, with the sign of x; NaN for infinities.
// operands: 1
pub const SV_OP_FRAC: u32 = 20;

/// max(x, 0); NaN stays NaN.
// operands: 1
pub const SV_OP_RELU: u32 = 21;

/// The smaller operand; NaN if either is NaN. -0 is less than 0.
// operands: 2
pub const SV_OP_MINIMUM: u32 = 22;

/// The larger operand; NaN if either is NaN. 0 is greater than -0.
// operands: 2
pub const SV_OP_MAXIMUM: u32 = 23;

/// The smaller operand; the other operand if one is NaN.
// operands: 2
pub const SV_OP_FMIN: u32 = 24;

/// The larger operand; the other operand if one is NaN.
// operands: 2
pub const SV_OP_FMAX: u32 = 25;

/// min(max(x, low), high): NaN if any operand is NaN, and high if low exceeds it.
// operands: 3
pub const SV_OP_CLAMP: u32 = 26;

/// True if x equals y; NaN equals nothing.
// operands: 2
pub const SV_OP_EQ: u32 = 27;

/// True if x differs from y; true if either is NaN.
// operands: 2
pub const SV_OP_NE: u32 = 28;

/// True if x < y; false if either is NaN.
// operands: 2
pub const SV_OP_LT: u32 = 29;

/// True if x <= y; false if either is NaN.
// operands: 2
pub const SV_OP_LE: u32 = 30;

/// True if x > y; false if either is NaN.
// operands: 2
pub const SV_OP_GT: u32 = 31;

/// True if x >= y; false if either is NaN.
// operands: 2
pub const SV_OP_GE: u32 = 32;

/// True if x is NaN; for complex numbers, if either part is.
// operands: 1
pub const SV_OP_IS_NAN: u32 = 33;

/// True if x is infinite; for complex numbers, if either part is.
// operands: 1
pub const SV_OP_IS_INFINITE: u32 = 34;

/// True if x is neither NaN nor infinite; for complex numbers, if both parts are finite.
// operands: 1
pub const SV_OP_IS_FINITE: u32 = 35;

/// True if both operands are nonzero.
// operands: 2
pub const SV_OP_LOGICAL_AND: u32 = 36;

/// True if either operand is nonzero.
// operands: 2
pub const SV_OP_LOGICAL_OR: u32 = 37;

/// True if exactly one operand is nonzero.
// operands: 2
pub const SV_OP_LOGICAL_XOR: u32 = 38;

/// True if x is 0.
// operands: 1
pub const SV_OP_LOGICAL_NOT: u32 = 39;

/// The bitwise and.
// operands: 2
pub const SV_OP_BIT_AND: u32 = 40;

/// The bitwise or.
// operands: 2
pub const SV_OP_BIT_OR: u32 = 41;

/// The bitwise exclusive or.
// operands: 2
pub const SV_OP_BIT_XOR: u32 = 42;

/// The bitwise complement.
// operands: 1
pub const SV_OP_BIT_NOT: u32 = 43;

/// x · 2^y, wrapped; 0 if y is negative or at least the width.
// operands: 2
pub const SV_OP_SHIFT_LEFT: u32 = 44;

/// x / 2^y rounded down; 0, or -1 for a negative x, if y is negative or at least the width.
// operands: 2
pub const SV_OP_SHIFT_RIGHT: u32 = 45;

/// The second operand if the first is true, otherwise the third.
// operands: 3
pub const SV_OP_CHOOSE: u32 = 46;

/// x · y + z, rounded once; integers wrap.
// operands: 3
pub const SV_OP_FMA: u32 = 47;

/// The interpolation from x to y by weight z: x + z (y - x) below 1/2, otherwise y - (y - x) (1 - z); x (1 - z) + y z if y - x of finite ends overflows.
// operands: 3
pub const SV_OP_LERP: u32 = 48;

/// |x| with the sign of y.
// operands: 2
pub const SV_OP_COPYSIGN: u32 = 49;

/// sqrt(x² + y²) without intermediate overflow; infinite if either operand is.
// operands: 2
pub const SV_OP_HYPOT: u32 = 50;

/// The real part.
// operands: 1
pub const SV_OP_REAL: u32 = 51;

/// The imaginary part; 0 for real numbers.
// operands: 1
pub const SV_OP_IMAG: u32 = 52;

/// The complex conjugate; real numbers are unchanged.
// operands: 1
pub const SV_OP_CONJ: u32 = 53;

/// e^x.
// operands: 1
pub const SV_OP_EXP: u32 = 54;

/// 2^x.
// operands: 1
pub const SV_OP_EXP2: u32 = 55;

/// e^x - 1, accurate near 0.
// operands: 1
pub const SV_OP_EXPM1: u32 = 56;

/// The natural logarithm; for real numbers, NaN below 0.
// operands: 1
pub const SV_OP_LOG: u32 = 57;

/// The logarithm to base 2, exact for powers of 2.
// operands: 1
pub const SV_OP_LOG2: u32 = 58;

/// The logarithm to base 10.
// operands: 1
pub const SV_OP_LOG10: u32 = 59;

/// ln(1 + x), accurate near 0.
// operands: 1
pub const SV_OP_LOG1P: u32 = 60;

/// The hyperbolic sine.
// operands: 1
pub const SV_OP_SINH: u32 = 61;

/// The hyperbolic cosine.
// operands: 1
pub const SV_OP_COSH: u32 = 62;

/// The hyperbolic tangent.
// operands: 1
pub const SV_OP_TANH: u32 = 63;

/// The inverse hyperbolic sine.
// operands: 1
pub const SV_OP_ASINH: u32 = 64;

/// The inverse hyperbolic cosine; for real numbers, NaN below 1.
// operands: 1
pub const SV_OP_ACOSH: u32 = 65;

/// The inverse hyperbolic tangent; infinite at 1 and -1, and for real numbers NaN beyond.
// operands: 1
pub const SV_OP_ATANH: u32 = 66;

/// 1 / (1 + e^-x).
// operands: 1
pub const SV_OP_SIGMOID: u32 = 67;

/// x · sigmoid(x); -0 for minus infinity.
// operands: 1
pub const SV_OP_SILU: u32 = 68;

/// ln(1 + e^x).
// operands: 1
pub const SV_OP_SOFTPLUS: u32 = 69;

/// The sine, for any finite argument; NaN for infinities.
// operands: 1
pub const SV_OP_SIN: u32 = 70;

/// The cosine, for any finite argument; NaN for infinities.
// operands: 1
pub const SV_OP_COS: u32 = 71;

/// The tangent, for any finite argument; NaN for infinities.
// operands: 1
pub const SV_OP_TAN: u32 = 72;

/// The inverse sine; for real numbers, NaN beyond 1 and -1.
// operands: 1
pub const SV_OP_ASIN: u32 = 73;

/// The inverse cosine; for real numbers, NaN beyond 1 and -1.
// operands: 1
pub const SV_OP_ACOS: u32 = 74;

/// The inverse tangent.
// operands: 1
pub const SV_OP_ATAN: u32 = 75;

/// The angle of the point (second operand, first operand), from -π to π. Signs of zeros count, and two infinities lie on a diagonal.
// operands: 2
pub const SV_OP_ATAN2: u32 = 76;

/// sin(πx) / (πx), 1 at 0, as in NumPy.
// operands: 1
pub const SV_OP_SINC: u32 = 77;

/// The angle of a complex number, as `atan2` gives it; for real numbers, π below 0 and otherwise 0.
// operands: 1
pub const SV_OP_ANGLE: u32 = 78;

/// x to the power y, as in C: 1 if y is 0 or x is 1, NaN for a negative x with a fractional y. Integers wrap, and a negative y gives 0 except for x of 1 and -1, as in PyTorch (NumPy refuses it): 2 to the power -1 is 0. For complex numbers, e^(y ln x); the error bound holds up to |y ln x| of 6, and the error grows beyond.
// operands: 2
pub const SV_OP_POW: u32 = 79;

/// The cube root, for negative numbers too; exact for cubes.
// operands: 1
pub const SV_OP_CBRT: u32 = 80;

/// The error function.
// operands: 1
pub const SV_OP_ERF: u32 = 81;

/// 1 - erf(x), accurate if that is small.
// operands: 1
pub const SV_OP_ERFC: u32 = 82;

/// x Φ(x) with the normal distribution function Φ, accurate for negative x too; -0 for minus infinity.
// operands: 1
pub const SV_OP_GELU: u32 = 83;

/// x (1 + tanh(sqrt(2/π) (x + 0.044715 x³))) / 2, accurate for negative x too; -0 for minus infinity.
// operands: 1
pub const SV_OP_GELU_TANH: u32 = 84;

/// ln |Γ(x)|; infinite at 0 and negative integers. Below 0 the error is relative to the larger of 1 and ln Γ(|x|).
// operands: 1
pub const SV_OP_LGAMMA: u32 = 85;

/// ln(x / (1 - x)); infinite at 0 and 1, NaN beyond.
// operands: 1
pub const SV_OP_LOGIT: u32 = 86;

/// ln(e^x + e^y) without overflow; near 0 the error is relative to the operands.
// operands: 2
pub const SV_OP_LOG_ADD_EXP: u32 = 87;

/// x ln(y); 0 if x is 0 and y is not NaN.
// operands: 2
pub const SV_OP_XLOGY: u32 = 88;

/// x ln(1 + y); 0 if x is 0 and y is not NaN.
// operands: 2
pub const SV_OP_XLOG1PY: u32 = 89;

/// 0 below 0, 1 above, y at 0; NaN for NaN.
// operands: 2
pub const SV_OP_HEAVISIDE: u32 = 90;

/// The next number of the dtype after x towards y; y if they are equal.
// operands: 2
pub const SV_OP_NEXT_AFTER: u32 = 91;

/// True if the sign bit is set, for -0 too.
// operands: 1
pub const SV_OP_SIGNBIT: u32 = 92;

/// x · π/180, with the constant rounded to nearest.
// operands: 1
pub const SV_OP_RADIANS: u32 = 93;

/// x · 180/π, with the constant rounded to nearest.
// operands: 1
pub const SV_OP_DEGREES: u32 = 94;
