//! Functions of f32 at about ninety thousand numbers of every size, compared with f64 functions, which
//! `vectors` compares with higher precision. The few points of `vectors` do not find where the errors of many
//! operations add up.

use selvedge::fuse::{Graph, HostInput, HostOutput, Operation};
use selvedge::types::{DType, Layout};

use crate::common::suite::{Test, detail};

/// The distance between the bits of one number and the next: a prime, so that the last bits vary.
const STEP: usize = 50_021;

pub fn tests() -> Vec<Test> {
    let inexact = |operation: &&Operation| {
        operation.arity() == 1 && operation.ulp() > 0 && operation.dtypes().contains(DType::F32)
    };
    Operation::ALL
        .iter()
        .filter(inexact)
        .map(|&operation| {
            Test::new(format!("sweeps::{}", operation.name()), move || {
                let (worst, at) = worst(operation);
                detail(|| format!("{} f32: {worst:.3} units in the last place at {at:e}", operation.name()));
                let allowed = f64::from(operation.ulp());
                assert!(
                    worst <= allowed,
                    "{worst} units in the last place at {at:e}, and {allowed} are stated"
                );
                Ok(())
            })
        })
        .collect()
}

/// Returns the largest error in units in the last place of the exact result, and its argument.
fn worst(operation: Operation) -> (f64, f32) {
    let graph = Graph::new();
    let x = graph.input(DType::F32);
    let wide = x.cast(DType::F64).operation(operation, &[]);
    let expression = graph.expression(&[x.operation(operation, &[]), wide]).expect("an expression");
    let all: Vec<f32> = (0..=u32::MAX).step_by(STEP).map(f32::from_bits).collect();
    let (mut found, mut wanted) = (vec![0f32; all.len()], vec![0f64; all.len()]);
    let layout = Layout::contiguous(&[all.len()]).expect("a layout");
    let input = HostInput::new(&all, layout).expect("an input");
    let output = HostOutput::new(&mut found, layout).expect("an output");
    let exact = HostOutput::new(&mut wanted, layout).expect("an output");
    expression.run_host(&[input], &[], &mut [output, exact]).expect("a run");
    let mut worst = (0.0, f32::NAN);
    for ((&x, found), wanted) in all.iter().zip(found).zip(wanted) {
        assert!(found.is_nan() == wanted.is_nan(), "{x:e}: {found:e} for {wanted:e}");
        if wanted.is_nan() {
            continue;
        }
        let exponent = ((wanted.to_bits() >> 52 & 0x7ff) as i32 - 1023).min(127);
        let unit = f64::from((exponent - 23).max(-149)).exp2();
        // Next to the largest number the infinity may be a unit away.
        let number = |x: f64| x.clamp(-(2f64.powi(128)), 2f64.powi(128));
        // See the operation's description.
        let size = f64::from(x).abs();
        let beside = if operation == Operation::Lgamma && x < 0.0 {
            2f64.powi((size * (size.ln() - 1.0)).max(1.0).log2() as i32 - 23)
        } else {
            0.0
        };
        let error = (number(found.into()) - number(wanted)).abs() / unit.max(beside);
        if error > worst.0 {
            worst = (error, x);
        }
    }
    worst
}
