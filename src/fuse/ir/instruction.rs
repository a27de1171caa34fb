//! The instruction set that all operations are lowered to: one list of names, register kinds, PTX and the
//! equivalent Rust.
//!
//! An operation is lowered once; the PTX writer prints the instructions, and the CPU interpreter runs them
//! block by block. The devices agree bit for bit if the two sides of each line do. Every instruction is exact
//! or rounded to nearest even, except a few approximations whose narrowed results are the same on all
//! devices, and nothing is contracted (`.rn`). The sign and payload of a NaN are the hardware's.
//!
//! A separate CPU function for each operation would be a second definition that only tests keep equal to the
//! first.

/// The kind of a register's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RegisterKind {
    /// A truth value; on the CPU a word that is 0 or 1.
    Predicate,
    /// 32 bits, signed or unsigned. Narrower integers are sign- or zero-extended.
    Bits32,
    /// 64 bits, signed or unsigned.
    Bits64,
    /// f32, and f16 and bf16, which are rounded after each operation.
    Float32,
    /// f64.
    Float64,
}

macro_rules! instructions {
    ($($name:ident ($($operand:ident: $kind:ident),*) -> $result:ident $ptx:literal $body:expr;)*) => {
        /// An instruction on up to three registers.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Instruction { $($name),* }

        impl Instruction {
            /// Returns the kind of the result register.
            pub(crate) fn result(self) -> RegisterKind {
                match self { $(Instruction::$name => RegisterKind::$result),* }
            }

            /// Returns the number of registers read.
            pub(crate) fn arity(self) -> usize {
                match self { $(Instruction::$name => <[RegisterKind]>::len(&[$(RegisterKind::$kind),*])),* }
            }

            /// Returns the mnemonic, whose operands are the result and the registers read. A text with a `{`
            /// is a template instead: `$d` is the result, `$a`, `$b` and `$c` are the operands, and `$u` is a
            /// suffix unique to each copy.
            pub(crate) fn ptx(self) -> &'static str {
                match self { $(Instruction::$name => $ptx),* }
            }
        }

        /// Passes the list, with the equivalent Rust, to a macro that generates code.
        macro_rules! with_instructions {
            ($callback:ident) => { $callback! { $($name ($($operand: $kind),*) -> $result $body;)* } };
        }
        pub(in crate::fuse) use with_instructions;
    };
}

instructions! {
    AndPredicate (a: Predicate, b: Predicate) -> Predicate "and.pred" a & b;
    OrPredicate (a: Predicate, b: Predicate) -> Predicate "or.pred" a | b;
    XorPredicate (a: Predicate, b: Predicate) -> Predicate "xor.pred" a ^ b;
    NotPredicate (a: Predicate) -> Predicate "not.pred" a ^ 1;
    SelectPredicate (a: Predicate, b: Predicate, p: Predicate) -> Predicate "{
.reg .pred %x, %y;
and.pred %x, $a, $c;
not.pred %y, $c;
and.pred %y, %y, $b;
or.pred $d, %x, %y;
}" a & p | b & (p ^ 1);

    Add32 (a: Bits32, b: Bits32) -> Bits32 "add.u32" a.wrapping_add(b);
    Subtract32 (a: Bits32, b: Bits32) -> Bits32 "sub.u32" a.wrapping_sub(b);
    Multiply32 (a: Bits32, b: Bits32) -> Bits32 "mul.lo.u32" a.wrapping_mul(b);
    MultiplyHigh32 (a: Bits32, b: Bits32) -> Bits32 "mul.hi.u32" ((u64::from(a) * u64::from(b)) >> 32) as u32;
    // By squaring, with an unsigned exponent.
    Power32 (a: Bits32, b: Bits32) -> Bits32 "{
.reg .b32 %x, %y, %z, %t;
.reg .pred %c;
mov.b32 %x, $a;
mov.b32 %y, $b;
mov.b32 %z, 1;
$more_$u:
setp.eq.u32 %c, %y, 0;
@%c bra $end_$u;
and.b32 %t, %y, 1;
setp.eq.u32 %c, %t, 0;
@!%c mul.lo.u32 %z, %z, %x;
mul.lo.u32 %x, %x, %x;
shr.u32 %y, %y, 1;
bra $more_$u;
$end_$u:
mov.b32 $d, %z;
}" raise32(a, b);
    // The lowering excludes division by 0 and of the minimum by -1, which PTX leaves undefined.
    DivideSigned32 (a: Bits32, b: Bits32) -> Bits32 "div.s32" divide_signed(a as i32, b as i32) as u32;
    DivideUnsigned32 (a: Bits32, b: Bits32) -> Bits32 "div.u32" divide_unsigned(a, b);
    And32 (a: Bits32, b: Bits32) -> Bits32 "and.b32" a & b;
    Or32 (a: Bits32, b: Bits32) -> Bits32 "or.b32" a | b;
    Xor32 (a: Bits32, b: Bits32) -> Bits32 "xor.b32" a ^ b;
    Not32 (a: Bits32) -> Bits32 "not.b32" !a;
    ShiftLeft32 (a: Bits32, b: Bits32) -> Bits32 "shl.b32" if b < 32 { a << (b & 31) } else { 0 };
    ShiftRightUnsigned32 (a: Bits32, b: Bits32) -> Bits32 "shr.u32" if b < 32 { a >> (b & 31) } else { 0 };
    ShiftRightSigned32 (a: Bits32, b: Bits32) -> Bits32 "shr.s32" ((a as i32) >> b.min(31)) as u32;
    MinimumSigned32 (a: Bits32, b: Bits32) -> Bits32 "min.s32" (a as i32).min(b as i32) as u32;
    MinimumUnsigned32 (a: Bits32, b: Bits32) -> Bits32 "min.u32" a.min(b);
    MaximumSigned32 (a: Bits32, b: Bits32) -> Bits32 "max.s32" (a as i32).max(b as i32) as u32;
    MaximumUnsigned32 (a: Bits32, b: Bits32) -> Bits32 "max.u32" a.max(b);
    Equal32 (a: Bits32, b: Bits32) -> Predicate "setp.eq.u32" u32::from(a == b);
    LessSigned32 (a: Bits32, b: Bits32) -> Predicate "setp.lt.s32" u32::from((a as i32) < (b as i32));
    LessUnsigned32 (a: Bits32, b: Bits32) -> Predicate "setp.lt.u32" u32::from(a < b);
    Select32 (a: Bits32, b: Bits32, p: Predicate) -> Bits32 "selp.b32" choose32(p, a, b);
    SignExtend8 (a: Bits32) -> Bits32 "cvt.s32.s8" a as i8 as u32;
    SignExtend16 (a: Bits32) -> Bits32 "cvt.s32.s16" a as i16 as u32;

    Add64 (a: Bits64, b: Bits64) -> Bits64 "add.u64" a.wrapping_add(b);
    Subtract64 (a: Bits64, b: Bits64) -> Bits64 "sub.u64" a.wrapping_sub(b);
    Multiply64 (a: Bits64, b: Bits64) -> Bits64 "mul.lo.u64" a.wrapping_mul(b);
    MultiplyHigh64 (a: Bits64, b: Bits64) -> Bits64 "mul.hi.u64" ((u128::from(a) * u128::from(b)) >> 64) as u64;
    Power64 (a: Bits64, b: Bits64) -> Bits64 "{
.reg .b64 %x, %y, %z, %t;
.reg .pred %c;
mov.b64 %x, $a;
mov.b64 %y, $b;
mov.b64 %z, 1;
$more_$u:
setp.eq.u64 %c, %y, 0;
@%c bra $end_$u;
and.b64 %t, %y, 1;
setp.eq.u64 %c, %t, 0;
@!%c mul.lo.u64 %z, %z, %x;
mul.lo.u64 %x, %x, %x;
shr.u64 %y, %y, 1;
bra $more_$u;
$end_$u:
mov.b64 $d, %z;
}" raise64(a, b);
    DivideSigned64 (a: Bits64, b: Bits64) -> Bits64 "div.s64" (a as i64).checked_div(b as i64).unwrap_or(0) as u64;
    DivideUnsigned64 (a: Bits64, b: Bits64) -> Bits64 "div.u64" a.checked_div(b).unwrap_or(0);
    And64 (a: Bits64, b: Bits64) -> Bits64 "and.b64" a & b;
    Or64 (a: Bits64, b: Bits64) -> Bits64 "or.b64" a | b;
    Xor64 (a: Bits64, b: Bits64) -> Bits64 "xor.b64" a ^ b;
    Not64 (a: Bits64) -> Bits64 "not.b64" !a;
    ShiftLeft64 (a: Bits64, b: Bits32) -> Bits64 "shl.b64" if b < 64 { a << (b & 63) } else { 0 };
    ShiftRightUnsigned64 (a: Bits64, b: Bits32) -> Bits64 "shr.u64" if b < 64 { a >> (b & 63) } else { 0 };
    ShiftRightSigned64 (a: Bits64, b: Bits32) -> Bits64 "shr.s64" ((a as i64) >> b.min(63)) as u64;
    MinimumSigned64 (a: Bits64, b: Bits64) -> Bits64 "min.s64" (a as i64).min(b as i64) as u64;
    MinimumUnsigned64 (a: Bits64, b: Bits64) -> Bits64 "min.u64" a.min(b);
    MaximumSigned64 (a: Bits64, b: Bits64) -> Bits64 "max.s64" (a as i64).max(b as i64) as u64;
    MaximumUnsigned64 (a: Bits64, b: Bits64) -> Bits64 "max.u64" a.max(b);
    Equal64 (a: Bits64, b: Bits64) -> Predicate "setp.eq.u64" u32::from(a == b);
    LessSigned64 (a: Bits64, b: Bits64) -> Predicate "setp.lt.s64" u32::from((a as i64) < (b as i64));
    LessUnsigned64 (a: Bits64, b: Bits64) -> Predicate "setp.lt.u64" u32::from(a < b);
    Select64 (a: Bits64, b: Bits64, p: Predicate) -> Bits64 "selp.b64" choose64(p, a, b);
    // For x below n; see `permutation`.
    Permute64 (a: Bits64, b: Bits64, c: Bits64) -> Bits64 "{
.reg .b64 %x, %y, %n, %k;
.reg .b32 %s, %l, %o, %i, %m, %h, %t, %z;
.reg .pred %c;
max.u64 %n, $b, 1;
sub.u64 %y, %n, 1;
min.u64 %x, $a, %y;
clz.b64 %h, %y;
sub.u32 %h, 64, %h;
max.u32 %h, %h, 2;
shr.u32 %s, %h, 1;
sub.u32 %t, %h, %s;
sub.u32 %t, 32, %t;
shr.u32 %o, -1, %t;
sub.u32 %t, 32, %s;
shr.u32 %m, -1, %t;
$walk_$u:
shr.u64 %y, %x, %s;
cvt.u32.u64 %l, %y;
cvt.u32.u64 %t, %x;
and.b32 %i, %t, %m;
mov.b64 %k, $c;
mov.u32 %z, 0;
$round_$u:
mul.lo.u64 %k, %k, 6364136223846793005;
add.u64 %k, %k, 1442695040888963407;
shr.u64 %y, %k, 32;
cvt.u32.u64 %h, %y;
xor.b32 %h, %h, %i;
shr.u32 %t, %h, 16;
xor.b32 %h, %h, %t;
mul.lo.u32 %h, %h, -2048144789;
shr.u32 %t, %h, 13;
xor.b32 %h, %h, %t;
mul.lo.u32 %h, %h, -1028477387;
shr.u32 %t, %h, 16;
xor.b32 %h, %h, %t;
xor.b32 %h, %l, %h;
and.b32 %h, %h, %o;
mov.u32 %l, %i;
mov.u32 %i, %h;
mov.u32 %t, %o;
mov.u32 %o, %m;
mov.u32 %m, %t;
add.u32 %z, %z, 1;
setp.lt.u32 %c, %z, 12;
@%c bra $round_$u;
cvt.u64.u32 %x, %l;
shl.b64 %x, %x, %s;
cvt.u64.u32 %y, %i;
or.b64 %x, %x, %y;
setp.lt.u64 %c, %x, %n;
@!%c bra $walk_$u;
mov.b64 $d, %x;
}" permuted(a, b, c);
    SignExtend32 (a: Bits32) -> Bits64 "cvt.s64.s32" a as i32 as u64;
    ZeroExtend32 (a: Bits32) -> Bits64 "cvt.u64.u32" u64::from(a);
    Truncate64 (a: Bits64) -> Bits32 "cvt.u32.u64" a as u32;

    AddFloat32 (a: Float32, b: Float32) -> Float32 "add.rn.f32" a + b;
    SubtractFloat32 (a: Float32, b: Float32) -> Float32 "sub.rn.f32" a - b;
    MultiplyFloat32 (a: Float32, b: Float32) -> Float32 "mul.rn.f32" a * b;
    DivideFloat32 (a: Float32, b: Float32) -> Float32 "div.rn.f32" a / b;
    MultiplyAddFloat32 (a: Float32, b: Float32, c: Float32) -> Float32 "fma.rn.f32" a.mul_add(b, c);
    ReciprocalFloat32 (a: Float32) -> Float32 "rcp.rn.f32" 1.0 / a;
    SquareRootFloat32 (a: Float32) -> Float32 "sqrt.rn.f32" a.sqrt();
    // The device's error is at most 2^-22 relative. For arguments of f16 or bf16 no result is that close to
    // the middle of two narrow numbers, so the result rounded to the argument's dtype is the same on all
    // devices.
    ReciprocalRootOfNarrow (a: Float32) -> Float32 "rsqrt.approx.f32" (1.0 / f64::from(a).sqrt()) as f32;
    // Rounded to nearest, for normal arguments and results; NaN for 0 and infinities. These are the steps to
    // which an assembler expands `rcp.rn` and `sqrt.rn`, without the branches for other arguments. They round a few
    // significands (that of ones for a reciprocal) only from an approximation such as the device's.
    ReciprocalWithin (a: Float32) -> Float32 "{
.reg .f32 %x, %y;
neg.f32 %y, $a;
rcp.approx.ftz.f32 %x, $a;
fma.rn.f32 %y, %y, %x, 0f3F800000;
fma.rn.f32 $d, %x, %y, %x;
}" reciprocal_within(a);
    SquareRootWithin (a: Float32) -> Float32 "{
.reg .f32 %x, %y, %z;
rsqrt.approx.ftz.f32 %x, $a;
mul.rn.f32 %y, $a, %x;
mul.rn.f32 %x, %x, 0f3F000000;
neg.f32 %z, %y;
fma.rn.f32 %z, %z, %y, $a;
fma.rn.f32 $d, %z, %x, %y;
}" if a > 0.0 && a < f32::INFINITY { a.sqrt() } else { f32::NAN };
    // The relative error is 2^-22, and for logarithms of numbers from 1/2 to 2 the absolute error. Functions
    // of f16 and bf16 use them if the rounded result is the same at both ends of that range, which
    // `tests/parity/narrow.rs` checks for every argument.
    LogarithmOfNarrow (a: Float32) -> Float32 "lg2.approx.f32" f64::from(a).log2() as f32;
    // For arguments that are not subnormal; subnormal powers flush to 0.
    LogarithmOfNormal (a: Float32) -> Float32 "lg2.approx.ftz.f32" f64::from(a).log2() as f32;
    PowerOfNarrow (a: Float32) -> Float32 "ex2.approx.ftz.f32" normal_power(a);
    // The logarithm if it is not a finite number; otherwise an unspecified finite number.
    LimitOfLogarithm (a: Float32) -> Float32 "lg2.approx.ftz.f32" limit_of_logarithm(a);
    NegateFloat32 (a: Float32) -> Float32 "neg.f32" -a;
    AbsoluteFloat32 (a: Float32) -> Float32 "abs.f32" a.abs();
    MinimumFloat32 (a: Float32, b: Float32) -> Float32 "min.f32" min32(a, b);
    MaximumFloat32 (a: Float32, b: Float32) -> Float32 "max.f32" max32(a, b);
    FloorFloat32 (a: Float32) -> Float32 "cvt.rmi.f32.f32" a.floor();
    CeilFloat32 (a: Float32) -> Float32 "cvt.rpi.f32.f32" a.ceil();
    TruncateFloat32 (a: Float32) -> Float32 "cvt.rzi.f32.f32" a.trunc();
    RoundFloat32 (a: Float32) -> Float32 "cvt.rni.f32.f32" a.round_ties_even();
    EqualFloat32 (a: Float32, b: Float32) -> Predicate "setp.eq.f32" u32::from(a == b);
    LessFloat32 (a: Float32, b: Float32) -> Predicate "setp.lt.f32" u32::from(a < b);
    LessEqualFloat32 (a: Float32, b: Float32) -> Predicate "setp.le.f32" u32::from(a <= b);
    UnorderedFloat32 (a: Float32, b: Float32) -> Predicate "setp.nan.f32" u32::from(a.is_nan() | b.is_nan());
    SelectFloat32 (a: Float32, b: Float32, p: Predicate) -> Float32 "selp.f32" f32::from_bits(choose32(p, a.to_bits(), b.to_bits()));
    RemainderFloat32 (a: Float32, b: Float32) -> Float32 "{
.reg .f32 %x, %y, %t, %q, %l;
.reg .pred %c;
abs.f32 %x, $a;
abs.f32 %y, $b;
setp.lt.f32 %c, %x, 0f7F800000;
@!%c bra $nan_$u;
setp.gt.f32 %c, %y, 0f00000000;
@%c bra $more_$u;
$nan_$u:
mov.f32 %x, 0f7FFFFFFF;
bra $end_$u;
$more_$u:
setp.lt.f32 %c, %x, %y;
@%c bra $end_$u;
mov.f32 %t, %y;
$scale_$u:
mul.rn.f32 %l, %t, 0f4A800000;
setp.lt.f32 %c, %x, %l;
@%c bra $step_$u;
mov.f32 %t, %l;
bra $scale_$u;
$step_$u:
div.rn.f32 %q, %x, %t;
cvt.rzi.f32.f32 %q, %q;
neg.f32 %q, %q;
fma.rn.f32 %x, %q, %t, %x;
setp.lt.f32 %c, %x, 0f00000000;
@%c add.rn.f32 %x, %x, %t;
bra $more_$u;
$end_$u:
copysign.f32 $d, $a, %x;
}" a % b;
    Bits (a: Float32) -> Bits32 "mov.b32" a.to_bits();
    FromBits (a: Bits32) -> Float32 "mov.b32" f32::from_bits(a);
    RoundToHalf (a: Float32) -> Float32 "{
.reg .b16 %h;
cvt.rn.f16.f32 %h, $a;
cvt.f32.f16 $d, %h;
}" round_to_half(a);
    // Expanded for devices without the conversion; see `ptx`.
    RoundToBrain (a: Float32) -> Float32 "{
.reg .b32 %r, %s;
.reg .pred %c;
mov.b32 %r, $a;
bfe.u32 %s, %r, 16, 1;
add.u32 %s, %s, 32767;
add.u32 %s, %s, %r;
and.b32 %s, %s, -65536;
setp.nan.f32 %c, $a, $a;
selp.b32 %s, 2147418112, %s, %c;
mov.b32 $d, %s;
}" round_to_brain(a);

    AddFloat64 (a: Float64, b: Float64) -> Float64 "add.rn.f64" a + b;
    SubtractFloat64 (a: Float64, b: Float64) -> Float64 "sub.rn.f64" a - b;
    MultiplyFloat64 (a: Float64, b: Float64) -> Float64 "mul.rn.f64" a * b;
    DivideFloat64 (a: Float64, b: Float64) -> Float64 "div.rn.f64" a / b;
    MultiplyAddFloat64 (a: Float64, b: Float64, c: Float64) -> Float64 "fma.rn.f64" a.mul_add(b, c);
    ReciprocalFloat64 (a: Float64) -> Float64 "rcp.rn.f64" 1.0 / a;
    SquareRootFloat64 (a: Float64) -> Float64 "sqrt.rn.f64" a.sqrt();
    NegateFloat64 (a: Float64) -> Float64 "neg.f64" -a;
    AbsoluteFloat64 (a: Float64) -> Float64 "abs.f64" a.abs();
    MinimumFloat64 (a: Float64, b: Float64) -> Float64 "min.f64" min64(a, b);
    MaximumFloat64 (a: Float64, b: Float64) -> Float64 "max.f64" max64(a, b);
    FloorFloat64 (a: Float64) -> Float64 "cvt.rmi.f64.f64" a.floor();
    CeilFloat64 (a: Float64) -> Float64 "cvt.rpi.f64.f64" a.ceil();
    TruncateFloat64 (a: Float64) -> Float64 "cvt.rzi.f64.f64" a.trunc();
    RoundFloat64 (a: Float64) -> Float64 "cvt.rni.f64.f64" a.round_ties_even();
    EqualFloat64 (a: Float64, b: Float64) -> Predicate "setp.eq.f64" u32::from(a == b);
    LessFloat64 (a: Float64, b: Float64) -> Predicate "setp.lt.f64" u32::from(a < b);
    LessEqualFloat64 (a: Float64, b: Float64) -> Predicate "setp.le.f64" u32::from(a <= b);
    UnorderedFloat64 (a: Float64, b: Float64) -> Predicate "setp.nan.f64" u32::from(a.is_nan() | b.is_nan());
    SelectFloat64 (a: Float64, b: Float64, p: Predicate) -> Float64 "selp.f64" f64::from_bits(choose64(p, a.to_bits(), b.to_bits()));
    RemainderFloat64 (a: Float64, b: Float64) -> Float64 "{
.reg .f64 %x, %y, %t, %q, %l;
.reg .pred %c;
abs.f64 %x, $a;
abs.f64 %y, $b;
setp.lt.f64 %c, %x, 0d7FF0000000000000;
@!%c bra $nan_$u;
setp.gt.f64 %c, %y, 0d0000000000000000;
@%c bra $more_$u;
$nan_$u:
mov.f64 %x, 0d7FFFFFFFFFFFFFFF;
bra $end_$u;
$more_$u:
setp.lt.f64 %c, %x, %y;
@%c bra $end_$u;
mov.f64 %t, %y;
$scale_$u:
mul.rn.f64 %l, %t, 0d4320000000000000;
setp.lt.f64 %c, %x, %l;
@%c bra $step_$u;
mov.f64 %t, %l;
bra $scale_$u;
$step_$u:
div.rn.f64 %q, %x, %t;
cvt.rzi.f64.f64 %q, %q;
neg.f64 %q, %q;
fma.rn.f64 %x, %q, %t, %x;
setp.lt.f64 %c, %x, 0d0000000000000000;
@%c add.rn.f64 %x, %x, %t;
bra $more_$u;
$end_$u:
copysign.f64 $d, $a, %x;
}" a % b;
    Bits64From (a: Float64) -> Bits64 "mov.b64" a.to_bits();
    Float64From (a: Bits64) -> Float64 "mov.b64" f64::from_bits(a);

    SignedToFloat32 (a: Bits32) -> Float32 "cvt.rn.f32.s32" a as i32 as f32;
    UnsignedToFloat32 (a: Bits32) -> Float32 "cvt.rn.f32.u32" a as f32;
    Signed64ToFloat32 (a: Bits64) -> Float32 "cvt.rn.f32.s64" a as i64 as f32;
    Unsigned64ToFloat32 (a: Bits64) -> Float32 "cvt.rn.f32.u64" unsigned64_to_float32(a);
    SignedToFloat64 (a: Bits32) -> Float64 "cvt.rn.f64.s32" f64::from(a as i32);
    UnsignedToFloat64 (a: Bits32) -> Float64 "cvt.rn.f64.u32" f64::from(a);
    Signed64ToFloat64 (a: Bits64) -> Float64 "cvt.rn.f64.s64" a as i64 as f64;
    Unsigned64ToFloat64 (a: Bits64) -> Float64 "cvt.rn.f64.u64" a as f64;
    // Rounds towards zero. Combined with the lost bits it rounds to odd.
    Signed64TowardsZero (a: Bits64) -> Float32 "cvt.rz.f32.s64" signed64_towards_zero(a as i64);
    Unsigned64TowardsZero (a: Bits64) -> Float32 "cvt.rz.f32.u64" unsigned64_towards_zero(a);
    Float64TowardsZero (a: Float64) -> Float32 "cvt.rz.f32.f64" float64_towards_zero(a);
    // Saturating. Never applied to a NaN, for which hardware results differ.
    Float32ToSigned (a: Float32) -> Bits32 "cvt.rzi.s32.f32" float32_to_signed(a) as u32;
    Float32ToUnsigned (a: Float32) -> Bits32 "cvt.rzi.u32.f32" float32_to_unsigned(a);
    Float32ToSigned64 (a: Float32) -> Bits64 "cvt.rzi.s64.f32" float64_to_signed64(a.into()) as u64;
    Float32ToUnsigned64 (a: Float32) -> Bits64 "cvt.rzi.u64.f32" float64_to_unsigned64(a.into());
    Float64ToSigned (a: Float64) -> Bits32 "cvt.rzi.s32.f64" float64_to_signed(a) as u32;
    Float64ToUnsigned (a: Float64) -> Bits32 "cvt.rzi.u32.f64" float64_to_unsigned(a);
    Float64ToSigned64 (a: Float64) -> Bits64 "cvt.rzi.s64.f64" float64_to_signed64(a) as u64;
    Float64ToUnsigned64 (a: Float64) -> Bits64 "cvt.rzi.u64.f64" float64_to_unsigned64(a);
    Widen (a: Float32) -> Float64 "cvt.f64.f32" f64::from(a);
    Narrow (a: Float64) -> Float32 "cvt.rn.f32.f64" a as f32;
}

impl Instruction {
    /// Returns the instruction that selects between two values of a register kind.
    pub(crate) fn select(kind: RegisterKind) -> Instruction {
        match kind {
            RegisterKind::Predicate => Instruction::SelectPredicate,
            RegisterKind::Bits32 => Instruction::Select32,
            RegisterKind::Bits64 => Instruction::Select64,
            RegisterKind::Float32 => Instruction::SelectFloat32,
            RegisterKind::Float64 => Instruction::SelectFloat64,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::fuse::ir::conversion::{round_to_brain, round_to_half};

    #[test]
    fn a_reciprocal_root_is_nowhere_near_to_the_middle_of_two_narrow_numbers() {
        let near = |x: f32, round: fn(f32) -> f32| {
            let root = 1.0 / f64::from(x).sqrt();
            [-1.0, 0.0, 1.0].map(|side| round((root * (1.0 + side * (-22.0f64).exp2())) as f32).to_bits())
        };
        for bits in 1..0x7f80u16 {
            let brain = near(half::bf16::from_bits(bits).to_f32(), round_to_brain);
            let half = near(half::f16::from_bits(bits.min(0x7bff)).to_f32(), round_to_half);
            assert!(brain[0] == brain[1] && brain[1] == brain[2], "{bits:x} of bf16");
            assert!(half[0] == half[1] && half[1] == half[2], "{bits:x} of f16");
        }
    }
}
