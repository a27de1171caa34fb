//! The row kernels of `csrc/kernels/e8.cu` on the emulated machine: the CPU's bits, for every kind of row and alignment.

use selvedge::srt::{GoldenCone, e8_quantize_scaled, golden_cone_project};
use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

use super::build::Family;
use super::{Child, Outcome, emulate, family, with_seeds};
use crate::support::Fake;

const E8: Family = family("e8.cu", &[], 1, 1);

pub static CHILDREN: &[(&str, Child)] = &[("e8_rows", rows)];

const COUNT: usize = 300;

/// Rows of many magnitudes, on ties, with zeros, and some that are not finite.
fn numbers() -> Vec<f64> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    let mut all: Vec<f64> = (0..COUNT * 8).map(|at| next() * [1.0, 3.0, 1e-3, 1e9][at / 8 % 4]).collect();
    for (row, entries) in all.chunks_exact_mut(8).enumerate() {
        match row {
            0..30 => entries.iter_mut().for_each(|entry| *entry = (*entry * 4.0).round() / 4.0),
            30 => entries.fill(0.0),
            31 => entries.fill(-0.0),
            32 => entries[3] = f64::NAN,
            33 => entries[7] = f64::INFINITY,
            34 => entries[0] = f64::NEG_INFINITY,
            _ => {}
        }
    }
    all
}

/// Child: each operation on rows of f32 and f64, aligned to 16 bytes and not.
fn rows(fake: &Fake) -> Outcome {
    emulate(fake, &[E8])?;
    let operations: [fn(&Tensor) -> selvedge::Result<Tensor>; 4] = [
        |v| e8_quantize_scaled(v, 1.0),
        |v| e8_quantize_scaled(v, 0.3),
        |v| golden_cone_project(v, GoldenCone::Pair),
        |v| golden_cone_project(v, GoldenCone::Null),
    ];
    let mut padded = vec![0.0];
    padded.extend(numbers());
    let cpu = Tensor::from_vec(padded, &[COUNT * 8 + 1], &Device::cpu())?;
    with_seeds(1, |_| {
        let cuda = Device::cuda(0)?;
        for dtype in [DType::F32, DType::F64] {
            let host = cpu.cast(dtype)?;
            let device = host.to(&cuda)?;
            let view = |all: &Tensor| all.narrow(0, 1, COUNT * 8)?.reshape(&[COUNT as isize, 8]);
            // The view begins at the second element; the upload of a copy of it is aligned.
            for v in [view(&device)?, view(&host)?.copy()?.to(&cuda)?] {
                for (at, operation) in operations.iter().enumerate() {
                    let (found, wanted) = (operation(&v)?, operation(&view(&host)?)?);
                    let found: Vec<f64> = found.to(&Device::cpu())?.cast(DType::F64)?.to_vec()?;
                    let wanted: Vec<f64> = wanted.cast(DType::F64)?.to_vec()?;
                    for (k, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
                        let is_equal =
                            found.to_bits() == wanted.to_bits() || found.is_nan() && wanted.is_nan();
                        assert!(
                            is_equal,
                            "operation {at} of {dtype}, row {}: {found} instead of {wanted}",
                            k / 8
                        );
                    }
                }
            }
        }
        Ok(())
    })
}
