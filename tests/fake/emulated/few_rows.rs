//! The kernels of products of a few rows without a GPU: `tests/cases/few_rows.rs`.

use super::build::Family;
use super::{Child, Outcome, emulate, every, with_seeds};
use crate::few_rows_cases::cases;
use crate::support::Fake;

const fn rows(defines: &'static [&'static str]) -> Family {
    Family { source: "gemm_rows.cu", defines, cluster: 1, resident: 4, any_order: true, fault: None }
}

const FAMILIES: [Family; 2] = [rows(&["-DELEMENT=f16"]), rows(&["-DELEMENT=bf16"])];

pub(super) static CHILDREN: &[(&str, Child)] = &[("few_rows", in_every_case)];

/// Child: every case, on so few multiprocessors that blocks take several groups of outputs.
fn in_every_case(fake: &Fake) -> Outcome {
    fake.set_multiprocessors(1);
    emulate(fake, &FAMILIES)?;
    with_seeds(2, |stream| {
        for case in every(3, "few rows", cases()) {
            case.check(stream)?;
        }
        Ok(())
    })
}
