//! The bits of an identity (padding) element, by part. Registers hold narrow integers extended by their sign.

use crate::fuse::ir::instruction::RegisterKind;
use crate::fuse::ir::program::kind_of;
use crate::types::DType;

fn float(dtype: DType, x: f64) -> u64 {
    match kind_of(dtype) {
        RegisterKind::Float64 => x.to_bits(),
        _ => u64::from((x as f32).to_bits()),
    }
}

fn integer(dtype: DType, x: i128) -> u64 {
    match kind_of(dtype) {
        RegisterKind::Bits64 => x as u64,
        _ => u64::from(x as u32),
    }
}

fn is_fractional(dtype: DType) -> bool {
    dtype.is_float() || dtype.is_complex()
}

pub(super) fn zero(_: DType) -> [u64; 2] {
    [0; 2]
}

pub(super) fn negative_zero(dtype: DType) -> [u64; 2] {
    if is_fractional(dtype) { [float(dtype, -0.0); 2] } else { zero(dtype) }
}

pub(super) fn one(dtype: DType) -> [u64; 2] {
    if is_fractional(dtype) { [float(dtype, 1.0), float(dtype, 0.0)] } else { [1, 0] }
}

pub(super) fn least(dtype: DType) -> [u64; 2] {
    let bits = match (dtype.is_float(), dtype.is_signed_integer()) {
        (true, _) => float(dtype, f64::NEG_INFINITY),
        (_, true) => integer(dtype, -(1i128 << (8 * dtype.size() - 1))),
        _ => 0,
    };
    [bits, 0]
}

pub(super) fn greatest(dtype: DType) -> [u64; 2] {
    let width = 8 * dtype.size();
    let bits = match (dtype.is_float(), dtype.is_signed_integer()) {
        (true, _) => float(dtype, f64::INFINITY),
        (_, true) => integer(dtype, (1i128 << (width - 1)) - 1),
        _ => integer(dtype, (1i128 << width) - 1),
    };
    [bits, 0]
}

/// The index is the last, so that no element comes after it.
pub(super) fn least_at_end(dtype: DType) -> [u64; 2] {
    [least(dtype)[0], u64::MAX]
}

pub(super) fn greatest_at_end(dtype: DType) -> [u64; 2] {
    [greatest(dtype)[0], u64::MAX]
}
