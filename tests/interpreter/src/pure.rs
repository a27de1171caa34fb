//! The semantics of the used PTX instructions on register bits, from NVIDIA's "Parallel Thread Execution
//! ISA".

use std::cell::Cell;

/// The lanes of a warp.
pub const LANES: usize = 32;

/// A function of an instruction's operands, for one thread and for all of a warp.
pub trait Function: Sync {
    fn of(&self, operands: [u64; 4]) -> u64;

    fn of_all(&self, operands: [&[u64; LANES]; 4]) -> [u64; LANES];
}

/// The loop over the lanes is compiled with each function, so that most become vector instructions.
impl<F: Fn([u64; 4]) -> u64 + Sync> Function for F {
    fn of(&self, operands: [u64; 4]) -> u64 {
        self(operands)
    }

    fn of_all(&self, operands: [&[u64; LANES]; 4]) -> [u64; LANES] {
        std::array::from_fn(|lane| self(operands.map(|operand| operand[lane])))
    }
}

type Pure = &'static dyn Function;

fn f(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn d(bits: u64) -> f64 {
    f64::from_bits(bits)
}

fn of(x: f32) -> u64 {
    // The hardware's NaN.
    u64::from(if x.is_nan() { 0x7fff_ffff } else { x.to_bits() })
}

fn od(x: f64) -> u64 {
    if x.is_nan() { 0x7fff_ffff_ffff_ffff } else { x.to_bits() }
}

fn w(bits: u64) -> u32 {
    bits as u32
}

fn s(bits: u64) -> i32 {
    bits as u32 as i32
}

fn l(bits: u64) -> i64 {
    bits as i64
}

fn ow(x: i32) -> u64 {
    u64::from(x as u32)
}

thread_local! {
    /// The direction in which approximations err: up, down, or with 0 alternating.
    pub static SIDE: Cell<f64> = const { Cell::new(0.0) };
}

/// Returns the direction in which the approximation for this operand errs.
fn side(operand: u64) -> f64 {
    let other = if operand >> 16 & 1 == 0 { 1.0 } else { -1.0 };
    SIDE.with(|side| if side.get() == 0.0 { other } else { side.get() })
}

/// Returns an instruction's result with the largest error that the approximation may have.
fn off(operands: [u64; 4], exact: f64, relative: f64) -> f32 {
    let error = exact.abs() * relative * side(operands[0]);
    if exact.is_finite() { (exact + error) as f32 } else { exact as f32 }
}

/// Returns an approximation in f64, which has the upper half of its operand and of its result; the error is larger than a GPU's.
fn upper_half(operands: [u64; 4], exact: impl Fn(f64) -> f64) -> u64 {
    let upper = operands[0] >> 32;
    let exact = exact(d(upper << 32));
    let scale = if exact.is_finite() { 1.0 + 2f64.powi(-18) * side(upper) } else { 1.0 };
    od(exact * scale) >> 32 << 32
}

/// Returns `rcp.approx.ftz.f32` as far [`off`] as the rounding of `rcp.rn.f32` allows.
///
/// An assembler expands that instruction to the approximation and these steps, for every significand. The steps round
/// any approximation within a unit in the last place, but for one of a significand of ones.
fn reciprocal(a: [u64; 4]) -> f32 {
    let x = f(a[0]);
    let exact = 1.0 / f64::from(x);
    let near = off(a, exact, 2f64.powi(-24));
    let refined = near.mul_add((-x).mul_add(near, 1.0), near);
    if refined == 1.0 / x { near } else { exact as f32 }
}

/// Returns `rsqrt.approx.ftz.f32` as far [`off`] as the rounding of `sqrt.rn.f32` allows; see [`reciprocal`].
fn reciprocal_root(a: [u64; 4]) -> f32 {
    let x = f(a[0]);
    let exact = 1.0 / f64::from(x).sqrt();
    let near = off(a, exact, 2f64.powf(-23.5));
    let root = x * near;
    let refined = (-root).mul_add(root, x).mul_add(near * 0.5, root);
    if refined == x.sqrt() { near } else { exact as f32 }
}

/// Returns the smaller of two numbers; -0 is below 0.
fn lesser<T: Copy>(a: T, b: T, nan: impl Fn(T) -> bool, order: std::cmp::Ordering) -> T {
    match () {
        () if nan(a) => b,
        () if nan(b) => a,
        () if order.is_le() => a,
        () => b,
    }
}

/// Returns the largest f32 whose magnitude is at most that of `x`.
fn towards_zero(x: f64) -> f32 {
    let mut near = x as f32;
    while f64::from(near).abs() > x.abs() {
        near = f32::from_bits(near.to_bits() - 1);
    }
    near
}

/// Rounds an integer towards zero, to its highest 24 bits.
fn integer_towards_zero(x: i128) -> f32 {
    let magnitude = x.unsigned_abs();
    let excess = (128 - magnitude.leading_zeros()).saturating_sub(24);
    let cut = ((magnitude >> excess) << excess) as f32;
    if x < 0 { -cut } else { cut }
}

pub fn function(mnemonic: &str) -> Option<Pure> {
    let function: Pure = match mnemonic {
        "mov.u32" | "mov.u64" | "mov.b32" | "mov.f32" | "mov.b64" | "mov.f64" | "mov.b16" | "mov.pred" => {
            &|a: [u64; 4]| a[0]
        }
        "and.pred" | "and.b32" | "and.b64" => &|a: [u64; 4]| a[0] & a[1],
        "or.pred" | "or.b32" | "or.b64" => &|a: [u64; 4]| a[0] | a[1],
        "xor.pred" | "xor.b32" | "xor.b64" => &|a: [u64; 4]| a[0] ^ a[1],
        "not.pred" => &|a: [u64; 4]| a[0] ^ 1,
        "not.b32" => &|a: [u64; 4]| u64::from(!w(a[0])),
        "not.b64" => &|a: [u64; 4]| !a[0],
        "add.u32" => &|a: [u64; 4]| u64::from(w(a[0]).wrapping_add(w(a[1]))),
        "sub.u32" => &|a: [u64; 4]| u64::from(w(a[0]).wrapping_sub(w(a[1]))),
        "mul.lo.u32" => &|a: [u64; 4]| u64::from(w(a[0]).wrapping_mul(w(a[1]))),
        "mul.hi.u64" => &|a: [u64; 4]| ((u128::from(a[0]) * u128::from(a[1])) >> 64) as u64,
        "clz.b64" => &|a: [u64; 4]| u64::from(a[0].leading_zeros()),
        "mul.hi.u32" => &|a: [u64; 4]| (u64::from(w(a[0])) * u64::from(w(a[1]))) >> 32,
        "mad.lo.u32" => &|a: [u64; 4]| u64::from(w(a[0]).wrapping_mul(w(a[1])).wrapping_add(w(a[2]))),
        "mad.lo.u64" => &|a: [u64; 4]| a[0].wrapping_mul(a[1]).wrapping_add(a[2]),
        "mad.wide.u32" => &|a: [u64; 4]| (u64::from(w(a[0])) * u64::from(w(a[1]))).wrapping_add(a[2]),
        "mad.wide.s32" => {
            &|a: [u64; 4]| (i64::from(s(a[0])) * i64::from(s(a[1]))).wrapping_add(l(a[2])) as u64
        }
        "div.s32" => &|a: [u64; 4]| {
            assert!(
                s(a[1]) != 0 && !(s(a[0]) == i32::MIN && s(a[1]) == -1),
                "a division that PTX leaves open"
            );
            ow(s(a[0]) / s(a[1]))
        },
        "div.u32" => &|a: [u64; 4]| u64::from(w(a[0]) / w(a[1])),
        "min.s32" => &|a: [u64; 4]| ow(s(a[0]).min(s(a[1]))),
        "min.u32" => &|a: [u64; 4]| u64::from(w(a[0]).min(w(a[1]))),
        "max.s32" => &|a: [u64; 4]| ow(s(a[0]).max(s(a[1]))),
        "max.u32" => &|a: [u64; 4]| u64::from(w(a[0]).max(w(a[1]))),
        "shl.b32" => &|a: [u64; 4]| if w(a[1]) > 31 { 0 } else { u64::from(w(a[0]) << w(a[1])) },
        "shr.u32" => &|a: [u64; 4]| if w(a[1]) > 31 { 0 } else { u64::from(w(a[0]) >> w(a[1])) },
        "shr.s32" => &|a: [u64; 4]| ow(s(a[0]) >> w(a[1]).min(31)),
        "setp.eq.u32" => &|a: [u64; 4]| u64::from(w(a[0]) == w(a[1])),
        "setp.ne.u32" => &|a: [u64; 4]| u64::from(w(a[0]) != w(a[1])),
        "setp.lt.s32" => &|a: [u64; 4]| u64::from(s(a[0]) < s(a[1])),
        "setp.le.s32" => &|a: [u64; 4]| u64::from(s(a[0]) <= s(a[1])),
        "setp.lt.u32" => &|a: [u64; 4]| u64::from(w(a[0]) < w(a[1])),
        "setp.le.u32" => &|a: [u64; 4]| u64::from(w(a[0]) <= w(a[1])),
        "selp.b32" | "selp.f32" => {
            &|a: [u64; 4]| if a[2] != 0 { u64::from(w(a[0])) } else { u64::from(w(a[1])) }
        }
        "selp.b64" | "selp.f64" => &|a: [u64; 4]| if a[2] != 0 { a[0] } else { a[1] },
        "cvt.s32.s8" => &|a: [u64; 4]| ow(i32::from(a[0] as i8)),
        "cvt.s32.s16" => &|a: [u64; 4]| ow(i32::from(a[0] as i16)),
        "cvt.u16.u32" => &|a: [u64; 4]| a[0] & 0xffff,
        "bfe.u32" => &|a: [u64; 4]| u64::from(w(a[0]) >> a[1]) & ((1 << a[2]) - 1),
        "bfe.s32" => &|a: [u64; 4]| ow((w(a[0]) << (32 - a[1] - a[2])) as i32 >> (32 - a[2])),
        "prmt.b32" => &|a: [u64; 4]| {
            let bytes = a[0] & 0xffff_ffff | a[1] << 32;
            (0..4).map(|place| (bytes >> (8 * ((a[2] >> (4 * place)) & 7)) & 0xff) << (8 * place)).sum()
        },
        "add.u64" => &|a: [u64; 4]| a[0].wrapping_add(a[1]),
        "sub.u64" => &|a: [u64; 4]| a[0].wrapping_sub(a[1]),
        "mul.lo.u64" => &|a: [u64; 4]| a[0].wrapping_mul(a[1]),
        "div.s64" => &|a: [u64; 4]| {
            assert!(a[1] != 0 && !(l(a[0]) == i64::MIN && l(a[1]) == -1), "a division that PTX leaves open");
            (l(a[0]) / l(a[1])) as u64
        },
        "div.u64" => &|a: [u64; 4]| a[0] / a[1],
        "min.s64" => &|a: [u64; 4]| l(a[0]).min(l(a[1])) as u64,
        "min.u64" => &|a: [u64; 4]| a[0].min(a[1]),
        "max.s64" => &|a: [u64; 4]| l(a[0]).max(l(a[1])) as u64,
        "max.u64" => &|a: [u64; 4]| a[0].max(a[1]),
        "shl.b64" => &|a: [u64; 4]| if w(a[1]) > 63 { 0 } else { a[0] << w(a[1]) },
        "shr.u64" => &|a: [u64; 4]| if w(a[1]) > 63 { 0 } else { a[0] >> w(a[1]) },
        "shr.s64" => &|a: [u64; 4]| (l(a[0]) >> w(a[1]).min(63)) as u64,
        "setp.eq.u64" => &|a: [u64; 4]| u64::from(a[0] == a[1]),
        "setp.lt.s64" => &|a: [u64; 4]| u64::from(l(a[0]) < l(a[1])),
        "setp.lt.u64" => &|a: [u64; 4]| u64::from(a[0] < a[1]),
        "setp.ge.u64" => &|a: [u64; 4]| u64::from(a[0] >= a[1]),
        "cvt.s64.s32" => &|a: [u64; 4]| i64::from(s(a[0])) as u64,
        "cvt.u64.u32" => &|a: [u64; 4]| u64::from(w(a[0])),
        "cvt.u32.u64" => &|a: [u64; 4]| u64::from(w(a[0])),
        _ => return float(mnemonic),
    };
    Some(function)
}

fn float(mnemonic: &str) -> Option<Pure> {
    let function: Pure = match mnemonic {
        "add.rn.f32" => &|a: [u64; 4]| of(f(a[0]) + f(a[1])),
        "sub.rn.f32" => &|a: [u64; 4]| of(f(a[0]) - f(a[1])),
        "mul.rn.f32" => &|a: [u64; 4]| of(f(a[0]) * f(a[1])),
        "div.rn.f32" => &|a: [u64; 4]| of(f(a[0]) / f(a[1])),
        "fma.rn.f32" => &|a: [u64; 4]| of(f(a[0]).mul_add(f(a[1]), f(a[2]))),
        "rcp.rn.f32" => &|a: [u64; 4]| of(1.0 / f(a[0])),
        "sqrt.rn.f32" => &|a: [u64; 4]| of(f(a[0]).sqrt()),
        "rsqrt.approx.f32" => &|a: [u64; 4]| of(off(a, 1.0 / f64::from(f(a[0])).sqrt(), 2f64.powi(-22))),
        "rsqrt.approx.ftz.f32" => &|a: [u64; 4]| of(reciprocal_root(a)),
        "rcp.approx.ftz.f32" => &|a: [u64; 4]| of(reciprocal(a)),
        "ex2.approx.ftz.f32" => &|a: [u64; 4]| {
            // Subnormal numbers count as 0, before and after.
            let flushed = |x: f32| if x.abs() < f32::MIN_POSITIVE { 0.0 } else { x };
            let exact = f64::from(flushed(f(a[0]))).exp2();
            of(flushed(if exact == 1.0 { 1.0 } else { off(a, exact, 2f64.powi(-22)) }))
        },
        "lg2.approx.f32" | "lg2.approx.ftz.f32" => &|a: [u64; 4]| {
            let exact = f64::from(f(a[0])).log2();
            let unit = 2f64.powi(-22) * (1.0 / exact.abs()).max(1.0);
            of(if exact == 0.0 { 0.0 } else { off(a, exact, unit) })
        },
        "neg.f32" => &|a: [u64; 4]| of(-f(a[0])),
        "abs.f32" => &|a: [u64; 4]| of(f(a[0]).abs()),
        "min.NaN.f32" => &|a: [u64; 4]| {
            of(if f(a[0]).is_nan() || f(a[1]).is_nan() {
                f32::from_bits(0x7fff_ffff)
            } else {
                lesser(f(a[0]), f(a[1]), f32::is_nan, f(a[0]).total_cmp(&f(a[1])))
            })
        },
        "min.f32" => &|a: [u64; 4]| of(lesser(f(a[0]), f(a[1]), f32::is_nan, f(a[0]).total_cmp(&f(a[1])))),
        "max.NaN.f32" => &|a: [u64; 4]| {
            of(if f(a[0]).is_nan() || f(a[1]).is_nan() {
                f32::from_bits(0x7fff_ffff)
            } else {
                lesser(f(a[0]), f(a[1]), f32::is_nan, f(a[1]).total_cmp(&f(a[0])))
            })
        },
        "max.f32" => &|a: [u64; 4]| of(lesser(f(a[0]), f(a[1]), f32::is_nan, f(a[1]).total_cmp(&f(a[0])))),
        "cvt.rmi.f32.f32" => &|a: [u64; 4]| of(f(a[0]).floor()),
        "cvt.rpi.f32.f32" => &|a: [u64; 4]| of(f(a[0]).ceil()),
        "cvt.rzi.f32.f32" => &|a: [u64; 4]| of(f(a[0]).trunc()),
        "cvt.rni.f32.f32" => &|a: [u64; 4]| of(f(a[0]).round_ties_even()),
        "setp.eq.f32" => &|a: [u64; 4]| u64::from(f(a[0]) == f(a[1])),
        "setp.lt.f32" => &|a: [u64; 4]| u64::from(f(a[0]) < f(a[1])),
        "setp.gt.f32" => &|a: [u64; 4]| u64::from(f(a[0]) > f(a[1])),
        "setp.le.f32" => &|a: [u64; 4]| u64::from(f(a[0]) <= f(a[1])),
        "setp.nan.f32" => &|a: [u64; 4]| u64::from(f(a[0]).is_nan() || f(a[1]).is_nan()),
        "copysign.f32" => &|a: [u64; 4]| u64::from(w(a[0]) & 0x8000_0000 | w(a[1]) & 0x7fff_ffff),
        "cvt.rn.f16.f32" => &|a: [u64; 4]| {
            let half = half::f16::from_f32(f(a[0]));
            u64::from(if half.is_nan() { 0x7fff } else { half.to_bits() })
        },
        "cvt.f32.f16" => &|a: [u64; 4]| of(half::f16::from_bits(a[0] as u16).to_f32()),
        "cvt.rn.bf16.f32" => &|a: [u64; 4]| brain(f(a[0])),
        "cvt.rn.bf16x2.f32" => &|a: [u64; 4]| brain(f(a[0])) << 16 | brain(f(a[1])),
        "add.rn.f64" => &|a: [u64; 4]| od(d(a[0]) + d(a[1])),
        "sub.rn.f64" => &|a: [u64; 4]| od(d(a[0]) - d(a[1])),
        "mul.rn.f64" => &|a: [u64; 4]| od(d(a[0]) * d(a[1])),
        "div.rn.f64" => &|a: [u64; 4]| od(d(a[0]) / d(a[1])),
        "fma.rn.f64" => &|a: [u64; 4]| od(d(a[0]).mul_add(d(a[1]), d(a[2]))),
        "rcp.rn.f64" => &|a: [u64; 4]| od(1.0 / d(a[0])),
        "sqrt.rn.f64" => &|a: [u64; 4]| od(d(a[0]).sqrt()),
        "rcp.approx.ftz.f64" => &|a: [u64; 4]| upper_half(a, |x| 1.0 / x),
        "rsqrt.approx.ftz.f64" => &|a: [u64; 4]| upper_half(a, |x| 1.0 / x.sqrt()),
        "neg.f64" => &|a: [u64; 4]| od(-d(a[0])),
        "abs.f64" => &|a: [u64; 4]| od(d(a[0]).abs()),
        "min.f64" => &|a: [u64; 4]| od(lesser(d(a[0]), d(a[1]), f64::is_nan, d(a[0]).total_cmp(&d(a[1])))),
        "max.f64" => &|a: [u64; 4]| od(lesser(d(a[0]), d(a[1]), f64::is_nan, d(a[1]).total_cmp(&d(a[0])))),
        "cvt.rmi.f64.f64" => &|a: [u64; 4]| od(d(a[0]).floor()),
        "cvt.rpi.f64.f64" => &|a: [u64; 4]| od(d(a[0]).ceil()),
        "cvt.rzi.f64.f64" => &|a: [u64; 4]| od(d(a[0]).trunc()),
        "cvt.rni.f64.f64" => &|a: [u64; 4]| od(d(a[0]).round_ties_even()),
        "setp.eq.f64" => &|a: [u64; 4]| u64::from(d(a[0]) == d(a[1])),
        // False for NaN, as opposed to `setp.neu`.
        "setp.ne.f64" => &|a: [u64; 4]| u64::from(d(a[0]) < d(a[1]) || d(a[0]) > d(a[1])),
        "setp.lt.f64" => &|a: [u64; 4]| u64::from(d(a[0]) < d(a[1])),
        "setp.gt.f64" => &|a: [u64; 4]| u64::from(d(a[0]) > d(a[1])),
        "setp.le.f64" => &|a: [u64; 4]| u64::from(d(a[0]) <= d(a[1])),
        "setp.nan.f64" => &|a: [u64; 4]| u64::from(d(a[0]).is_nan() || d(a[1]).is_nan()),
        "copysign.f64" => &|a: [u64; 4]| a[0] & 1 << 63 | a[1] & !(1 << 63),
        "cvt.rn.f32.s32" => &|a: [u64; 4]| of(s(a[0]) as f32),
        "cvt.rn.f32.u32" => &|a: [u64; 4]| of(w(a[0]) as f32),
        "cvt.rn.f32.s64" => &|a: [u64; 4]| of(l(a[0]) as f32),
        "cvt.rn.f32.u64" => &|a: [u64; 4]| of(a[0] as f32),
        "cvt.rn.f64.s32" => &|a: [u64; 4]| od(f64::from(s(a[0]))),
        "cvt.rn.f64.u32" => &|a: [u64; 4]| od(f64::from(w(a[0]))),
        "cvt.rn.f64.s64" => &|a: [u64; 4]| od(l(a[0]) as f64),
        "cvt.rn.f64.u64" => &|a: [u64; 4]| od(a[0] as f64),
        "cvt.rz.f32.s64" => &|a: [u64; 4]| of(integer_towards_zero(l(a[0]).into())),
        "cvt.rz.f32.u64" => &|a: [u64; 4]| of(integer_towards_zero(a[0].into())),
        "cvt.rz.f32.f64" => &|a: [u64; 4]| of(towards_zero(d(a[0]))),
        "cvt.f64.f32" => &|a: [u64; 4]| od(f64::from(f(a[0]))),
        "cvt.rn.f32.f64" => &|a: [u64; 4]| of(d(a[0]) as f32),
        "cvt.rzi.s32.f32" => &|a: [u64; 4]| ow(number(f(a[0])) as i32),
        "cvt.rzi.u32.f32" => &|a: [u64; 4]| u64::from(number(f(a[0])) as u32),
        "cvt.rzi.s64.f32" => &|a: [u64; 4]| number(f(a[0])) as i64 as u64,
        "cvt.rzi.u64.f32" => &|a: [u64; 4]| number(f(a[0])) as u64,
        "cvt.rzi.s32.f64" => &|a: [u64; 4]| ow(number64(d(a[0])) as i32),
        "cvt.rzi.u32.f64" => &|a: [u64; 4]| u64::from(number64(d(a[0])) as u32),
        "cvt.rzi.s64.f64" => &|a: [u64; 4]| number64(d(a[0])) as i64 as u64,
        "cvt.rzi.u64.f64" => &|a: [u64; 4]| number64(d(a[0])) as u64,
        _ => return None,
    };
    Some(function)
}

fn number(x: f32) -> f32 {
    assert!(!x.is_nan(), "NaN to an integer is not the same on all hardware");
    x
}

fn number64(x: f64) -> f64 {
    assert!(!x.is_nan(), "NaN to an integer is not the same on all hardware");
    x
}

fn brain(x: f32) -> u64 {
    u64::from(if x.is_nan() { 0x7fff } else { half::bf16::from_f32(x).to_bits() })
}
