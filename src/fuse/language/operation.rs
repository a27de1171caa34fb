//! `ops!`: the list of elementwise operations, from which methods, documentation and tests are generated.
//!
//! Each line has:
//!
//! - the code for the C interface, which is never reused: one more than the largest, which is above the list
//! - the variant of [`Operation`], the name of its methods and the number of operands
//! - the rule that derives the result's dtype from the operands'
//! - the dtypes that the operation computes in
//! - the error bound in units in the last place, with another bound for complex numbers after a slash
//! - the function that lowers the operation to instructions, with another function for complex numbers after
//!   a bar
//! - after an arrow, the function that computes the operands' gradients, or `none` for an operation without
//!   a derivative
//! - the documentation
//!
//! An error bound of 0 means that every result is that of the formula with each operation rounded to nearest
//! even, on every device. f16 and bf16 compute in f32 and round once.
//!
//! A NaN operand gives NaN, except for `fmin`, `fmax`, `pow` (1 if y is 0 or x is 1), `hypot` (infinite beside an
//! infinity) and tests. Integer division by 0 gives 0, and so does its remainder; the least integer divided by -1 is
//! itself. `floor_divide` and `remainder` have the divisor's sign, `trunc_divide` and `fmod` the dividend's. `pow` of
//! integers wraps; a negative exponent gives 0, except for the bases 1 and -1. A float becomes an integer by saturation,
//! and NaN becomes 0. A cast to a narrower float rounds once.

use super::gradient::{self, Derivative};
use super::lower::{
    arithmetic, compare, complex, complex_functions, division, elementary, error, gamma, integer, inverse,
    logarithmic, power, rounding, steps, trigonometric,
};
use crate::error::{Error, Result};
use crate::fuse::ir::program::{Program, ValueParts};
use crate::types::{DType, common_dtype};

/// Lowers an operation on operands of a dtype.
pub(crate) type Lowering = fn(&mut Program, DType, &[ValueParts]) -> ValueParts;

/// A set of dtypes, with one bit for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DTypes(u32);

impl DTypes {
    const fn of(dtypes: &[DType]) -> DTypes {
        let (mut bits, mut at) = (0, 0);
        while at < dtypes.len() {
            bits |= 1 << dtypes[at] as u32;
            at += 1;
        }
        DTypes(bits)
    }

    const fn union(self, other: DTypes) -> DTypes {
        DTypes(self.0 | other.0)
    }

    /// Returns whether the set contains a dtype.
    pub const fn contains(self, dtype: DType) -> bool {
        self.0 & 1 << dtype as u32 != 0
    }

    /// Iterates over the dtypes in the order of [`DType::ALL`].
    pub fn iter(self) -> impl Iterator<Item = DType> {
        DType::ALL.into_iter().filter(move |dtype| self.contains(*dtype))
    }
}

const BOOL: DTypes = DTypes::of(&[DType::Bool]);
const SIGNED: DTypes = DTypes::of(&[DType::I8, DType::I16, DType::I32, DType::I64]);
const UNSIGNED: DTypes = DTypes::of(&[DType::U8, DType::U16, DType::U32, DType::U64]);
const INTEGERS: DTypes = SIGNED.union(UNSIGNED);
const FLOATS: DTypes = DTypes::of(&[DType::F16, DType::BF16, DType::F32, DType::F64]);
const COMPLEX: DTypes = DTypes::of(&[DType::C64, DType::C128]);
const REALS: DTypes = INTEGERS.union(FLOATS);
const NUMBERS: DTypes = REALS.union(COMPLEX);
pub(super) const FLOATS_AND_COMPLEX: DTypes = FLOATS.union(COMPLEX);
const BITS: DTypes = BOOL.union(INTEGERS);
pub(super) const ORDERED: DTypes = BOOL.union(REALS);
pub(super) const ALL: DTypes = BOOL.union(NUMBERS);

/// The rule by which an operation derives its compute dtype and result dtype from its operands' dtypes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Computes in and returns the operands' common dtype ([`DType::promote`]).
    Common,
    /// Like `Common`, with f32 for integers and bool.
    PromoteToFloat,
    /// Like `Common`, with a bool result.
    Comparison,
    /// Like `PromoteToFloat`, with a bool result.
    FloatTest,
    /// Converts every operand to bool and returns bool.
    Logic,
    /// Converts the first operand to bool and treats the others like `Common`.
    Choice,
    /// Like `Common`; a complex dtype gives its real part type.
    ComplexToReal,
    /// Like `PromoteToFloat`; a complex dtype gives its real part type.
    FloatComplexToReal,
}

/// The dtypes of an operation's operands, computation and result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    /// The dtype that each operand is cast to.
    pub operands: [DType; 3],
    /// The dtype of the result.
    pub result: DType,
    /// The dtype that the operation computes in.
    pub compute: DType,
}

macro_rules! last {
    ($first:literal) => {
        $first
    };
    ($first:literal $second:literal) => {
        $second
    };
}

macro_rules! derivative {
    (none) => {
        None
    };
    ($name:ident) => {
        Some(gradient::$name)
    };
}

macro_rules! ops {
    ($($code:literal $variant:ident $name:ident $arity:tt $rule:ident $dtypes:ident $ulp:literal $(/ $complex:literal)?
       $lowering:path $(| $of_complex:path)? => $derivative:ident, $doc:literal;)*) => {
        /// An elementwise operation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Operation {
            $(#[doc = $doc] $variant,)*
        }

        impl Operation {
            /// All operations, in the order of the list.
            pub const ALL: &'static [Operation] = &[$(Operation::$variant),*];

            /// Returns the name of the operation's methods.
            #[inline]
            pub const fn name(self) -> &'static str {
                const NAMES: &[&str] = &[$(stringify!($name)),*];
                NAMES[self as usize]
            }

            /// Returns the operation's code in the C interface. Codes never change and are never reused.
            pub const fn code(self) -> u32 {
                match self { $(Operation::$variant => $code),* }
            }

            /// Returns the operation with a code.
            pub const fn from_code(code: u32) -> Option<Operation> {
                match code { $($code => Some(Operation::$variant),)* _ => None }
            }

            /// Returns the number of operands.
            pub const fn arity(self) -> usize {
                match self { $(Operation::$variant => $arity),* }
            }

            /// Returns the dtype rule.
            pub const fn rule(self) -> Rule {
                match self { $(Operation::$variant => Rule::$rule),* }
            }

            /// Returns the dtypes that the operation computes in.
            pub const fn dtypes(self) -> DTypes {
                match self { $(Operation::$variant => $dtypes),* }
            }

            /// Returns the largest error in units in the last place of the result, at most 1 for f16 and
            /// bf16. It is 0 if the result is exact or rounded as the formula states.
            pub const fn ulp(self) -> u32 {
                match self { $(Operation::$variant => $ulp),* }
            }

            /// Returns the largest error of either part for complex numbers, in units in the last place of
            /// the result's magnitude.
            pub const fn complex_ulp(self) -> u32 {
                match self { $(Operation::$variant => last!($ulp $($complex)?)),* }
            }

            /// Returns the description of the operation.
            pub const fn document(self) -> &'static str {
                match self { $(Operation::$variant => $doc),* }
            }

            pub(crate) const fn derivative(self) -> Option<Derivative> {
                match self { $(Operation::$variant => derivative!($derivative)),* }
            }

            pub(crate) const fn lowering(self, dtype: DType) -> Lowering {
                match self {
                    $($(Operation::$variant if dtype.is_complex() => $of_complex,)? Operation::$variant => $lowering,)*
                }
            }
        }

        /// Passes the list to a macro that generates methods.
        macro_rules! with_operations {
            ($callback:ident) => { $callback! { $($variant $name $arity $doc;)* } };
        }
        pub(crate) use with_operations;

        /// Passes the list with the names of the derivatives, `none` for no derivative, to a macro that generates methods.
        macro_rules! with_derivatives {
            ($callback:ident) => { $callback! { $($variant $name $arity $derivative $doc;)* } };
        }
        pub(crate) use with_derivatives;
    };
}

// The largest code is 95 (`MulHigh`); a new line takes the next one. `tests/parity/rules.rs` has the largest code, too.
ops! {
    1 Add add 2 Common ALL 0 arithmetic::add => add, "x + y; integers wrap, bools are or-ed.";
    2 Sub sub 2 Common NUMBERS 0 arithmetic::sub => sub, "x - y; integers wrap.";
    3 Mul mul 2 Common ALL 0 arithmetic::mul => mul, "x · y; integers wrap, bools are and-ed.";
    4 Div div 2 PromoteToFloat FLOATS_AND_COMPLEX 0 division::div => div, "x / y. Integers are divided in f32. Complex numbers use Smith's scaled formula; as in C99, a number other than 0 and NaN divided by 0 is infinite.";
    95 MulHigh mul_high 2 Common UNSIGNED 0 integer::mul_high => none, "The upper half of the product x · y.";
    5 FloorDivide floor_divide 2 Common REALS 0 division::floor_divide => none, "x / y rounded down. Integer division by 0 gives 0, and the minimum divided by -1 wraps to itself. For floats, the quotient matches `remainder`.";
    6 TruncDivide trunc_divide 2 Common REALS 0 division::trunc_divide => none, "x / y rounded towards 0. Integer division by 0 gives 0, and the minimum divided by -1 wraps to itself.";
    7 Remainder remainder 2 Common REALS 0 division::remainder => remainder, "The remainder of `floor_divide`, with the sign of y (zeros too, as in Python); 0 for integers if y is 0.";
    8 Fmod fmod 2 Common REALS 0 division::fmod => fmod, "The exact remainder of `trunc_divide`, with the sign of x; 0 for integers if y is 0.";
    9 Neg neg 1 Common NUMBERS 0 arithmetic::neg => neg, "-x; integers wrap.";
    10 Abs abs 1 ComplexToReal NUMBERS 2 arithmetic::abs => abs, "|x|, exact for real numbers; the minimum integer wraps to itself. For complex numbers, the magnitude.";
    11 Sign sign 1 Common NUMBERS 0 / 3 arithmetic::sign | complex_functions::sign => sign, "1, 0 or -1 with the sign of x; zeros and NaN are unchanged. For complex numbers, x / |x|, and 0 at 0.";
    12 Sqrt sqrt 1 PromoteToFloat FLOATS_AND_COMPLEX 0 / 3 arithmetic::sqrt | complex_functions::sqrt => sqrt, "The square root, rounded to nearest. For real numbers, NaN below 0; for complex numbers, the root with a nonnegative real part.";
    13 Rsqrt rsqrt 1 PromoteToFloat FLOATS_AND_COMPLEX 2 / 4 arithmetic::rsqrt | complex_functions::rsqrt => rsqrt, "1 / sqrt(x); for real numbers both steps round to nearest.";
    14 Reciprocal reciprocal 1 PromoteToFloat FLOATS_AND_COMPLEX 0 division::reciprocal => reciprocal, "1 / x.";
    15 Square square 1 Common NUMBERS 0 arithmetic::square => square, "x · x.";
    16 Floor floor 1 Common REALS 0 rounding::floor => none, "The largest integer at most x.";
    17 Ceil ceil 1 Common REALS 0 rounding::ceil => none, "The smallest integer at least x.";
    18 Trunc trunc 1 Common REALS 0 rounding::trunc => none, "x rounded towards 0.";
    19 Round round 1 Common REALS 0 rounding::round => none, "x rounded to the nearest integer, ties to even.";
    20 Frac frac 1 Common FLOATS 0 rounding::frac => frac, "x - trunc(x), exact, with the sign of x; NaN for infinities.";
    21 Relu relu 1 Common REALS 0 arithmetic::relu => relu, "max(x, 0); NaN stays NaN.";
    22 Minimum minimum 2 Common ORDERED 0 compare::minimum => minimum, "The smaller operand; NaN if either is NaN. -0 is less than 0.";
    23 Maximum maximum 2 Common ORDERED 0 compare::maximum => maximum, "The larger operand; NaN if either is NaN. 0 is greater than -0.";
    24 Fmin fmin 2 Common ORDERED 0 compare::fmin => fmin, "The smaller operand; the other operand if one is NaN.";
    25 Fmax fmax 2 Common ORDERED 0 compare::fmax => fmax, "The larger operand; the other operand if one is NaN.";
    26 Clamp clamp 3 Common ORDERED 0 compare::clamp => clamp, "min(max(x, low), high): NaN if any operand is NaN, and high if low exceeds it.";
    27 Equal eq 2 Comparison ALL 0 compare::eq => none, "True if x equals y; NaN equals nothing.";
    28 NotEqual ne 2 Comparison ALL 0 compare::ne => none, "True if x differs from y; true if either is NaN.";
    29 Less lt 2 Comparison ORDERED 0 compare::lt => none, "True if x < y; false if either is NaN.";
    30 LessEqual le 2 Comparison ORDERED 0 compare::le => none, "True if x <= y; false if either is NaN.";
    31 Greater gt 2 Comparison ORDERED 0 compare::gt => none, "True if x > y; false if either is NaN.";
    32 GreaterEqual ge 2 Comparison ORDERED 0 compare::ge => none, "True if x >= y; false if either is NaN.";
    33 IsNan is_nan 1 FloatTest FLOATS_AND_COMPLEX 0 compare::is_nan => none, "True if x is NaN; for complex numbers, if either part is.";
    34 IsInfinite is_infinite 1 FloatTest FLOATS_AND_COMPLEX 0 compare::is_infinite => none, "True if x is infinite; for complex numbers, if either part is.";
    35 IsFinite is_finite 1 FloatTest FLOATS_AND_COMPLEX 0 compare::is_finite => none, "True if x is neither NaN nor infinite; for complex numbers, if both parts are finite.";
    36 LogicalAnd logical_and 2 Logic BOOL 0 integer::and => none, "True if both operands are nonzero.";
    37 LogicalOr logical_or 2 Logic BOOL 0 integer::or => none, "True if either operand is nonzero.";
    38 LogicalXor logical_xor 2 Logic BOOL 0 integer::xor => none, "True if exactly one operand is nonzero.";
    39 LogicalNot logical_not 1 Logic BOOL 0 integer::not => none, "True if x is 0.";
    40 BitAnd bit_and 2 Common BITS 0 integer::and => none, "The bitwise and.";
    41 BitOr bit_or 2 Common BITS 0 integer::or => none, "The bitwise or.";
    42 BitXor bit_xor 2 Common BITS 0 integer::xor => none, "The bitwise exclusive or.";
    43 BitNot bit_not 1 Common BITS 0 integer::not => none, "The bitwise complement.";
    44 ShiftLeft shift_left 2 Common INTEGERS 0 integer::shift_left => none, "x · 2^y, wrapped; 0 if y is negative or at least the width.";
    45 ShiftRight shift_right 2 Common INTEGERS 0 integer::shift_right => none, "x / 2^y rounded down; 0, or -1 for a negative x, if y is negative or at least the width.";
    46 Select choose 3 Choice ALL 0 compare::choose => choose, "The second operand if the first is true, otherwise the third.";
    47 Fma fma 3 Common REALS 0 arithmetic::fma => fma, "x · y + z, rounded once; integers wrap.";
    48 Lerp lerp 3 Common FLOATS 0 arithmetic::lerp => lerp, "The interpolation from x to y by weight z: x + z (y - x) below 1/2, otherwise y - (y - x) (1 - z); x (1 - z) + y z if y - x of finite ends overflows.";
    49 Copysign copysign 2 PromoteToFloat FLOATS 0 arithmetic::copysign => copysign, "|x| with the sign of y.";
    50 Hypot hypot 2 PromoteToFloat FLOATS 2 arithmetic::hypot => hypot, "sqrt(x² + y²) without intermediate overflow; infinite if either operand is.";
    51 Real real 1 ComplexToReal ALL 0 complex::real => real, "The real part.";
    52 Imag imag 1 ComplexToReal ALL 0 complex::imag => imag, "The imaginary part; 0 for real numbers.";
    53 Conj conj 1 Common ALL 0 complex::conj => conj, "The complex conjugate; real numbers are unchanged.";
    54 Exp exp 1 PromoteToFloat FLOATS_AND_COMPLEX 1 / 3 elementary::exp | complex_functions::exp => exp, "e^x.";
    55 Exp2 exp2 1 PromoteToFloat FLOATS 1 elementary::exp2 => exp2, "2^x.";
    56 Expm1 expm1 1 PromoteToFloat FLOATS 2 elementary::expm1 => expm1, "e^x - 1, accurate near 0.";
    57 Log log 1 PromoteToFloat FLOATS_AND_COMPLEX 1 / 3 logarithmic::log | complex_functions::log => log, "The natural logarithm; for real numbers, NaN below 0.";
    58 Log2 log2 1 PromoteToFloat FLOATS_AND_COMPLEX 2 / 3 logarithmic::log2 | complex_functions::log2 => log2, "The logarithm to base 2, exact for powers of 2.";
    59 Log10 log10 1 PromoteToFloat FLOATS_AND_COMPLEX 3 / 4 logarithmic::log10 | complex_functions::log10 => log10, "The logarithm to base 10.";
    60 Log1p log1p 1 PromoteToFloat FLOATS 2 logarithmic::log1p => log1p, "ln(1 + x), accurate near 0.";
    61 Sinh sinh 1 PromoteToFloat FLOATS_AND_COMPLEX 3 / 4 elementary::sinh | complex_functions::sinh => sinh, "The hyperbolic sine.";
    62 Cosh cosh 1 PromoteToFloat FLOATS_AND_COMPLEX 2 / 4 elementary::cosh | complex_functions::cosh => cosh, "The hyperbolic cosine.";
    63 Tanh tanh 1 PromoteToFloat FLOATS_AND_COMPLEX 3 / 5 elementary::tanh | complex_functions::tanh => tanh, "The hyperbolic tangent.";
    64 Asinh asinh 1 PromoteToFloat FLOATS_AND_COMPLEX 3 / 4 elementary::asinh | complex_functions::asinh => asinh, "The inverse hyperbolic sine.";
    65 Acosh acosh 1 PromoteToFloat FLOATS_AND_COMPLEX 3 / 4 elementary::acosh | complex_functions::acosh => acosh, "The inverse hyperbolic cosine; for real numbers, NaN below 1.";
    66 Atanh atanh 1 PromoteToFloat FLOATS_AND_COMPLEX 3 / 4 elementary::atanh | complex_functions::atanh => atanh, "The inverse hyperbolic tangent; infinite at 1 and -1, and for real numbers NaN beyond.";
    67 Sigmoid sigmoid 1 PromoteToFloat FLOATS_AND_COMPLEX 3 / 5 elementary::sigmoid | complex_functions::sigmoid => sigmoid, "1 / (1 + e^-x).";
    68 Silu silu 1 PromoteToFloat FLOATS 4 elementary::silu => silu, "x · sigmoid(x); -0 for minus infinity.";
    69 Softplus softplus 1 PromoteToFloat FLOATS 3 elementary::softplus => softplus, "ln(1 + e^x).";
    70 Sin sin 1 PromoteToFloat FLOATS_AND_COMPLEX 2 / 4 trigonometric::sin | complex_functions::sin => sin, "The sine, for any finite argument; NaN for infinities.";
    71 Cos cos 1 PromoteToFloat FLOATS_AND_COMPLEX 2 / 4 trigonometric::cos | complex_functions::cos => cos, "The cosine, for any finite argument; NaN for infinities.";
    72 Tan tan 1 PromoteToFloat FLOATS_AND_COMPLEX 3 / 5 trigonometric::tan | complex_functions::tan => tan, "The tangent, for any finite argument; NaN for infinities.";
    73 Asin asin 1 PromoteToFloat FLOATS_AND_COMPLEX 3 / 4 inverse::asin | complex_functions::asin => asin, "The inverse sine; for real numbers, NaN beyond 1 and -1.";
    74 Acos acos 1 PromoteToFloat FLOATS_AND_COMPLEX 3 / 4 inverse::acos | complex_functions::acos => acos, "The inverse cosine; for real numbers, NaN beyond 1 and -1.";
    75 Atan atan 1 PromoteToFloat FLOATS_AND_COMPLEX 2 / 4 inverse::atan | complex_functions::atan => atan, "The inverse tangent.";
    76 Atan2 atan2 2 PromoteToFloat FLOATS 3 inverse::atan2 => atan2, "The angle of the point (second operand, first operand), from -π to π. Signs of zeros count, and two infinities lie on a diagonal.";
    77 Sinc sinc 1 PromoteToFloat FLOATS 4 trigonometric::sinc => sinc, "sin(πx) / (πx), 1 at 0, as in NumPy.";
    78 Angle angle 1 FloatComplexToReal FLOATS_AND_COMPLEX 3 inverse::angle => angle, "The angle of a complex number, as `atan2` gives it; for real numbers, π below 0 and otherwise 0.";
    79 Pow pow 2 Common NUMBERS 2 / 16 power::pow | complex_functions::pow => pow, "x to the power y, as in C: 1 if y is 0 or x is 1, NaN for a negative x with a fractional y. Integers wrap, and a negative y gives 0 except for x of 1 and -1, as in PyTorch (NumPy refuses it): 2 to the power -1 is 0. For complex numbers, e^(y ln x); the error bound holds up to |y ln x| of 6, and the error grows beyond.";
    80 Cbrt cbrt 1 PromoteToFloat FLOATS 1 power::cbrt => cbrt, "The cube root, for negative numbers too; exact for cubes.";
    81 Erf erf 1 PromoteToFloat FLOATS 2 error::erf => erf, "The error function.";
    82 Erfc erfc 1 PromoteToFloat FLOATS 5 error::erfc => erfc, "1 - erf(x), accurate if that is small.";
    83 Gelu gelu 1 PromoteToFloat FLOATS 6 error::gelu => gelu, "x Φ(x) with the normal distribution function Φ, accurate for negative x too; -0 for minus infinity.";
    84 GeluTanh gelu_tanh 1 PromoteToFloat FLOATS 4 error::gelu_tanh => gelu_tanh, "x (1 + tanh(sqrt(2/π) (x + 0.044715 x³))) / 2, accurate for negative x too; -0 for minus infinity.";
    85 Lgamma lgamma 1 PromoteToFloat FLOATS 5 gamma::lgamma => lgamma, "ln |Γ(x)|; infinite at 0 and negative integers. Below 0 the error is relative to the larger of 1 and ln Γ(|x|).";
    86 Logit logit 1 PromoteToFloat FLOATS 3 logarithmic::logit => logit, "ln(x / (1 - x)); infinite at 0 and 1, NaN beyond.";
    87 LogAddExp log_add_exp 2 PromoteToFloat FLOATS 2 logarithmic::log_add_exp => log_add_exp, "ln(e^x + e^y) without overflow; near 0 the error is relative to the operands.";
    88 Xlogy xlogy 2 PromoteToFloat FLOATS 2 logarithmic::xlogy => xlogy, "x ln(y); 0 if x is 0 and y is not NaN.";
    89 Xlog1py xlog1py 2 PromoteToFloat FLOATS 2 logarithmic::xlog1py => xlog1py, "x ln(1 + y); 0 if x is 0 and y is not NaN.";
    90 Heaviside heaviside 2 Common FLOATS 0 steps::heaviside => none, "0 below 0, 1 above, y at 0; NaN for NaN.";
    91 NextAfter next_after 2 PromoteToFloat FLOATS 0 steps::next_after => none, "The next number of the dtype after x towards y; y if they are equal.";
    92 Signbit signbit 1 FloatTest FLOATS 0 steps::signbit => none, "True if the sign bit is set, for -0 too.";
    93 Radians radians 1 PromoteToFloat FLOATS 0 steps::radians => radians, "x · π/180, with the constant rounded to nearest.";
    94 Degrees degrees 1 PromoteToFloat FLOATS 0 steps::degrees => degrees, "x · 180/π, with the constant rounded to nearest.";
}

impl Operation {
    /// Returns whether the operation has a derivative. Others are constant between jumps, such as `floor`, or
    /// do not compute numbers, such as comparisons; gradients through them are 0.
    ///
    /// ```
    /// use selvedge::fuse::Operation;
    /// assert!(Operation::Exp.is_differentiable() && !Operation::Floor.is_differentiable());
    /// ```
    pub const fn is_differentiable(self) -> bool {
        self.derivative().is_some()
    }

    /// Returns the dtypes that the operation uses for operands of these dtypes.
    ///
    /// ```
    /// use selvedge::fuse::Operation;
    /// use selvedge::types::DType;
    /// let signature = Operation::Div.signature(&[DType::I64, DType::U8])?;
    /// assert_eq!(signature.result, DType::F32);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::ArgumentCount`] for another number of operands, [`Error::DTypeMismatch`] for dtypes without a
    /// common dtype or that the operation does not support.
    pub fn signature(self, operands: &[DType]) -> Result<Signature> {
        self.signature_of(&operands.iter().map(|&dtype| (dtype, false)).collect::<Vec<_>>())
    }

    /// Returns the [`signature`](Self::signature) for operands given with whether they have no dimensions.
    pub(crate) fn signature_of(self, operands: &[(DType, bool)]) -> Result<Signature> {
        if operands.len() != self.arity() {
            let (wanted, found) = (self.arity(), operands.len());
            return Err(Error::ArgumentCount { kernel: self.name().to_owned(), wanted, found });
        }
        let rule = self.rule();
        if let Some(&stored) = operands.iter().map(|(dtype, _)| dtype).find(|dtype| dtype.is_storage_only()) {
            return Err(self.refuse(format_args!("{stored}; cast it first, such as to f32")));
        }
        let values = if rule == Rule::Choice { &operands[1..] } else { operands };
        let common = match rule {
            Rule::Logic => DType::Bool,
            _ => self.common(values)?,
        };
        let compute = match rule {
            Rule::PromoteToFloat | Rule::FloatTest | Rule::FloatComplexToReal
                if !common.is_float() && !common.is_complex() =>
            {
                DType::F32
            }
            _ => common,
        };
        if !self.dtypes().contains(compute) {
            return Err(self.refuse(format_args!("{compute}")));
        }
        let mut signature = Signature { operands: [compute; 3], result: compute, compute };
        match rule {
            Rule::Comparison | Rule::FloatTest | Rule::Logic => signature.result = DType::Bool,
            Rule::Choice => signature.operands[0] = DType::Bool,
            Rule::ComplexToReal | Rule::FloatComplexToReal => signature.result = compute.part(),
            Rule::Common | Rule::PromoteToFloat => {}
        }
        Ok(signature)
    }

    /// Returns the common dtype of an operation's operands.
    pub(crate) fn common(self, values: &[(DType, bool)]) -> Result<DType> {
        // The result of a comparison has no width. Integers without dimensions are therefore compared by
        // value if some integer dtype holds both.
        if self.rule() == Rule::Comparison && values.iter().all(|(dtype, _)| dtype.is_integer()) {
            let wide = common_dtype(values.iter().map(|&(dtype, _)| (dtype, false)));
            if let Ok(Some(common)) = wide {
                return Ok(common);
            }
        }
        let common = common_dtype(values.iter().copied())?;
        common.ok_or_else(|| Error::invalid(self.name(), "no operands", "at least one"))
    }

    #[cold]
    fn refuse(self, found: std::fmt::Arguments<'_>) -> Error {
        let names: Vec<&str> = self.dtypes().iter().map(DType::name).collect();
        Error::DTypeMismatch { operation: self.name(), wanted: names.join(", "), found: found.to_string() }
    }
}
