//! The kernels of decoding without a GPU: `tests/cases/decode.rs`.

use super::build::Family;
use super::{Child, Outcome, emulate, every, with_seeds};
use crate::decode_cases::{DecodeCase, cases};
use crate::support::Fake;

const fn decoding(defines: &'static [&'static str]) -> Family {
    Family { source: "attention_decode.cu", defines, cluster: 1, resident: 4, any_order: true, fault: None }
}

const FAMILIES: [Family; 6] = [
    decoding(&["-DELEMENT=f16", "-DDIMENSION=64"]),
    decoding(&["-DELEMENT=f16", "-DDIMENSION=128"]),
    decoding(&["-DELEMENT=f16", "-DDIMENSION=256"]),
    decoding(&["-DELEMENT=bf16", "-DDIMENSION=64"]),
    decoding(&["-DELEMENT=bf16", "-DDIMENSION=128"]),
    decoding(&["-DELEMENT=bf16", "-DDIMENSION=256"]),
];
/// The family of the injected faults.
pub(super) const FAULTY: Family = FAMILIES[0];

pub(super) static CHILDREN: &[(&str, Child)] = &[("attention_decode", in_every_case)];

/// So many that problems of one sequence have splits of a chunk, and others of a group.
const MULTIPROCESSORS: i32 = 8;

/// Child: every case.
fn in_every_case(fake: &Fake) -> Outcome {
    fake.set_multiprocessors(MULTIPROCESSORS);
    emulate(fake, &FAMILIES)?;
    with_seeds(2, |stream| {
        for case in every(5, "decoding", cases(2100)) {
            case.check(stream)?;
        }
        Ok(())
    })
}

/// Decoding with a faulty family: several units, chunks and splits, a window, and new positions that turn.
pub(super) fn faulty(fake: &Fake, family: Family) -> Outcome {
    fake.set_multiprocessors(MULTIPROCESSORS);
    emulate(fake, &[family])?;
    with_seeds(20, |stream| {
        for case in cases(700) {
            let case = DecodeCase { dtype: selvedge::types::DType::F16, ..case };
            if case.dimension <= 64 {
                case.check(stream)?;
            }
        }
        Ok(())
    })
}
