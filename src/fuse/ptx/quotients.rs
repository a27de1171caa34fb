//! Quotients, reciprocals and square roots of f32 without a subroutine.
//!
//! An assembler expands `div.rn.f32`, `rcp.rn.f32` and `sqrt.rn.f32` to a few instructions and a call for rare operands. The
//! first call of each kind in a kernel takes as much of its time as some 100 other lines (`ptxas`: 7, 4 and 3 ms), so steps that
//! a thread computes once for a group have these texts instead. They cost more instructions in f64, so steps of elements
//! do not.
//!
//! The result has the same bits. All intermediate values are in the range of f64, where two Newton steps take the approximation's
//! 2^-18 or less to the last place. A quotient or root of numbers of 24 bits is 2^-50 of itself or more away from the middle of
//! two numbers of f32, so that its rounding survives an error of some 2^-52; a quotient that is such a middle (of subnormal
//! numbers) is exact in f64. For infinities and zeros a step makes NaN, and the result is what precedes it.

use crate::fuse::ir::instruction::Instruction;

/// The steps from `%y` to `%r`, its reciprocal, and `%n`, its negation.
macro_rules! inverse {
    () => {
        "rcp.approx.ftz.f64 %r, %y;
neg.f64 %n, %y;
fma.rn.f64 %e, %n, %r, 0d3FF0000000000000;
setp.nan.f64 %c, %e, %e;
fma.rn.f64 %s, %r, %e, %r;
fma.rn.f64 %e, %n, %s, 0d3FF0000000000000;
fma.rn.f64 %s, %s, %e, %s;
selp.f64 %r, %r, %s, %c;
"
    };
}

/// A rest of zero or NaN leaves the quotient as it is, so that a zero keeps its sign.
const QUOTIENT: &str = concat!(
    "{
.reg .f64 %x, %y, %n, %r, %s, %e;
.reg .pred %c;
cvt.f64.f32 %x, $a;
cvt.f64.f32 %y, $b;
",
    inverse!(),
    "mul.rn.f64 %y, %x, %r;
fma.rn.f64 %e, %n, %y, %x;
setp.ne.f64 %c, %e, 0d0000000000000000;
fma.rn.f64 %s, %e, %r, %y;
selp.f64 %s, %s, %y, %c;
cvt.rn.f32.f64 $d, %s;
}"
);

const RECIPROCAL: &str = concat!(
    "{
.reg .f64 %y, %n, %r, %s, %e;
.reg .pred %c;
cvt.f64.f32 %y, $a;
",
    inverse!(),
    "cvt.rn.f32.f64 $d, %r;
}"
);

/// Its steps are NaN for zeros, infinity, NaN and numbers below 0; the first two are their own roots.
const SQUARE_ROOT: &str = "{
.reg .f64 %x, %r, %n, %s, %e;
.reg .f32 %y;
.reg .pred %c, %m;
cvt.f64.f32 %x, $a;
rsqrt.approx.ftz.f64 %r, %x;
mul.rn.f64 %s, %x, %r;
mul.rn.f64 %r, %r, 0d3FE0000000000000;
neg.f64 %n, %s;
fma.rn.f64 %e, %n, %s, %x;
fma.rn.f64 %s, %e, %r, %s;
neg.f64 %n, %s;
fma.rn.f64 %e, %n, %s, %x;
fma.rn.f64 %s, %e, %r, %s;
cvt.rn.f32.f64 %y, %s;
setp.nan.f32 %c, %y, %y;
setp.le.f32 %m, 0f00000000, $a;
and.pred %c, %c, %m;
selp.f32 $d, $a, %y, %c;
}";

/// Returns the text of an instruction in steps that a thread computes once.
pub(super) fn once(instruction: Instruction) -> Option<&'static str> {
    match instruction {
        Instruction::DivideFloat32 => Some(QUOTIENT),
        Instruction::ReciprocalFloat32 => Some(RECIPROCAL),
        Instruction::SquareRootFloat32 => Some(SQUARE_ROOT),
        _ => None,
    }
}
