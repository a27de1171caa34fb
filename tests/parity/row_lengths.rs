//! The shortest rows of row programs: none, and a million groups of a few elements.

use selvedge::fuse::{Expr, Graph, RowProgram};
use selvedge::types::DType;

use super::arrays::Array;
use super::reductions::{contiguous, plain};
use super::row_runs::{on_host, try_on_host};
use super::rows::{PROGRAMS, Program, Rows, check_on};
use super::value::{Value, special};
use crate::common::suite::Test;

/// The groups of a run with many.
const MANY: usize = 1_000_000;

/// A name, and a computation of groups whose value for groups without elements is known.
type Empty = (&'static str, for<'g> fn(Expr<'g>) -> Expr<'g>, Option<f64>);

/// The values of empty groups; none for an error.
const EMPTY: [Empty; 11] = [
    ("sum", |x| x.sum_group(), Some(0.0)),
    ("prod", |x| x.prod_group(), Some(1.0)),
    ("mean", |x| x.mean_group(), Some(f64::NAN)),
    ("any", |x| x.any_group().cast(DType::F32), Some(0.0)),
    ("all", |x| x.all_group().cast(DType::F32), Some(1.0)),
    ("sum", |x| (x - x.sum_group()).sum_group() + 2.0, Some(2.0)),
    ("sum", |x| (x - x.mean_group()).square().sum_group(), Some(0.0)),
    ("max", |x| x.max_group(), None),
    ("min", |x| x.min_group(), None),
    ("argmax", |x| x.argmax_group().cast(DType::F32), None),
    ("max", |x| (x - x.max_group()).sum_group(), None),
];

fn program(of: for<'g> fn(Expr<'g>) -> Expr<'g>) -> RowProgram {
    let graph = Graph::new();
    graph.row_program(&[of(graph.input(DType::F32))]).expect("a program")
}

fn empty() {
    for (name, of, wanted) in EMPTY {
        let program = program(of);
        for (sizes, axes, groups) in [
            (&[3, 0][..], &[1][..], &[3, 1][..]),
            (&[0, 3], &[0], &[1, 3]),
            (&[0], &[0], &[1]),
            (&[2, 0, 5], &[1, 2], &[2, 1, 1]),
        ] {
            let input = Array::new(DType::F32, contiguous(sizes), &plain(DType::F32), 0);
            let mut output = [Array::new(DType::F32, contiguous(groups), &[Value::Real(9.0)], 0)];
            let plan = program.explain(&[input.layout], axes, &[output[0].layout], (9, 0));
            let found = try_on_host(&program, &[input], axes, None, &mut output);
            let Some(wanted) = wanted else {
                let axis = sizes.iter().position(|&size| size == 0).expect("an axis without elements");
                let (on_cpu, planned) = (found.expect_err(name), plan.expect_err(name));
                for error in [on_cpu.to_string(), planned.to_string()] {
                    assert!(error.contains(name) && error.contains(&format!("axis {axis}")), "{error}");
                }
                continue;
            };
            found.expect(name);
            assert!(plan.expect(name).schedule.contains("there are no elements"));
            for value in output[0].elements(&output[0].layout) {
                let is = value.real();
                assert!(is.to_bits() == wanted.to_bits() || is.is_nan() && wanted.is_nan(), "{name} is {is}");
            }
        }
        // No groups have no values, of which any fold exists.
        let input = Array::new(DType::F32, contiguous(&[0, 4]), &plain(DType::F32), 0);
        let mut output = [Array::new(DType::F32, contiguous(&[0, 1]), &special(DType::F32)[..1], 0)];
        on_host(&program, &[input], &[1], &mut output);
    }
}

/// Tests that always run.
pub fn always() -> Vec<Test> {
    vec![Test::new("rows::empty_groups_have_the_value_of_the_fold_or_name_their_axis", || {
        empty();
        Ok(())
    })]
}

/// Tests of a million groups. The device suite has those of more elements, for which the interpreter is too slow.
pub fn many() -> Vec<Test> {
    let (softmax, layer_norm) = (PROGRAMS[0], PROGRAMS[2]);
    let cases = [
        (softmax, DType::F32, 1),
        (softmax, DType::BF16, 2),
        (layer_norm, DType::F32, 3),
        (softmax, DType::BF16, 3),
        (softmax, DType::F32, 4),
    ];
    let test = |(given, dtype, length): (Program, DType, usize)| {
        Test::new(format!("rows::a_million_groups::{}_{dtype}_of_{length}", given.0), move || {
            check_on(given, dtype, &Rows::contiguous(MANY, length), "rows a block", &[false], &[(9, 0)]);
            Ok(())
        })
    };
    cases.map(test).into()
}
