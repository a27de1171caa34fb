//! The golden-ratio kernels without a GPU: snapping on the emulated machine, held against the CPU bit for bit.

use selvedge::srt::snap;
use selvedge::tensor::{Device, Tensor};

use super::build::Family;
use super::{Child, Outcome, emulate, family, with_seeds};
use crate::support::Fake;

const SRT: Family = family("srt.cu", &[], 1, 1);

pub static CHILDREN: &[(&str, Child)] = &[("srt_snap", snapping)];

/// Child: values of every kind at several bounds, of more elements than a block has threads.
fn snapping(fake: &Fake) -> Outcome {
    emulate(fake, &[SRT])?;
    let mut values: Vec<f64> = (-150..=150).map(|i| f64::from(i) * 0.0200013).collect();
    // Ties of rounding, the ends of the lattice, and numbers without a nearest point.
    values.extend([0.5, -0.5, 2.5, -2.5, 0.0, -0.0, 1e6, -1e6, f64::MAX, f64::MIN, 5e-324]);
    values.extend([f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
    let host = Tensor::from_slice(&values, &[values.len()], &Device::cpu())?;
    with_seeds(1, |_| {
        let device = host.to(&Device::cuda(0)?)?;
        for bound in [0, 1, 10, 100] {
            let (found, wanted) = (snap(&device, bound)?.to_vec()?, snap(&host, bound)?.to_vec()?);
            assert_eq!(found, wanted, "at {bound}");
        }
        Ok(())
    })
}
