//! Row programs that cannot be built or run, and bad arguments of functions of rows.

use selvedge::Error;
use selvedge::fuse::{Expr, Fold, Graph, HostInput, HostOutput, RowProgram};
use selvedge::types::{DType, Layout};

use super::rows::tensor;

/// The message of an error.
fn message<T: std::fmt::Debug>(result: selvedge::Result<T>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn bad_programs_are_errors_when_they_are_built() {
    let graph = Graph::new();
    let x = graph.input(DType::F32);
    let centred = x - x.mean_group();
    assert!(message(graph.expression(&[centred])).contains("Graph::row_program"));
    assert!(message(graph.reduction(Fold::Sum, centred)).contains("Graph::row_program"));
    assert!(message(graph.row_program(&[])).contains("no outputs"));
    assert!(message(Graph::new().row_program(&[x])).contains("another graph"));
    for build in [
        (|x| x * x.argmax_group()) as for<'g> fn(Expr<'g>) -> Expr<'g>,
        |x| x - x.argmin_group(),
        |x| x.argmax_group() * 0.5,
        |x| x.argmax_group().exp(),
    ] {
        let graph = Graph::new();
        let found = message(graph.row_program(&[build(graph.input(DType::F32))]));
        assert!(found.contains("index of arg") && found.contains("cast"), "{found}");
    }
    let graph = Graph::new();
    let x = graph.input(DType::F32);
    let places = [x * x.argmax_group().cast(DType::F32), x.argmax_group() + 1];
    assert!(graph.row_program(&places).is_ok());
    let graph = Graph::new();
    let complex = graph.input(DType::C64);
    assert!(matches!(graph.row_program(&[complex.max_group()]), Err(Error::DTypeMismatch { .. })));
    let graph = Graph::new();
    graph.input(DType::F32);
    assert!(message(graph.row_program(&[graph.scalar(DType::F32).sum_group()])).contains("without inputs"));
}

#[test]
fn bad_runs_are_errors_that_name_both_sides() {
    let graph = Graph::new();
    let x = graph.input(DType::F32);
    let program = graph.row_program(&[x - x.max_group(), x.sum_group()]).unwrap();
    let sums = graph.row_program(&[x.sum_group(), x.mean_group()]).unwrap();
    let run = |sizes: [usize; 2], axes: &[isize], shapes: [[usize; 2]; 2], program: &RowProgram| {
        let memory = vec![1.0f32; sizes[0] * sizes[1]];
        let mut results = [[7.0f32; 16]; 2];
        let [first, second] = &mut results;
        program.run_host(
            &[HostInput::new(&memory, Layout::contiguous(&sizes)?)?],
            &[],
            axes,
            &mut [
                HostOutput::new(first, Layout::contiguous(&shapes[0])?)?,
                HostOutput::new(second, Layout::contiguous(&shapes[1])?)?,
            ],
        )?;
        Ok(results)
    };
    let results = run([2, 3], &[-1], [[2, 3], [2, 1]], &program).unwrap();
    assert_eq!(
        (results[0][..7].to_vec(), results[1][..3].to_vec()),
        (vec![0., 0., 0., 0., 0., 0., 7.], vec![3., 3., 7.])
    );
    type Case<'a> = (&'a [isize], [[usize; 2]; 2], &'a str);
    let cases: [Case<'_>; 5] = [
        (&[2], [[2, 3], [2, 1]], "axis 2"),
        (&[1, -1], [[2, 3], [2, 1]], "each axis once"),
        (&[1], [[2, 1], [2, 1]], "shape [2, 3]"),
        (&[1], [[2, 3], [2, 3]], "shape [2, 1]"),
        (&[0], [[2, 3], [2, 1]], "shape [1, 3]"),
    ];
    for (axes, shapes, wanted) in cases {
        let found = message(run([2, 3], axes, shapes, &program));
        assert!(found.contains(wanted), "{found}");
    }
    let found = message(run([2, 0], &[1], [[2, 0], [2, 1]], &program));
    assert!(found.contains("max") && found.contains("axis 1 of size 0"), "{found}");
    let empty = run([2, 0], &[1], [[2, 1], [2, 1]], &sums).unwrap();
    assert_eq!(empty[0][..3], [0.0, 0.0, 7.0]);
    assert!(empty[1][0].is_nan() && empty[1][1].is_nan());
    assert!(run([0, 3], &[1], [[0, 3], [0, 1]], &program).is_ok());
    let mut memory = [1.0f32; 6];
    let layout = Layout::contiguous(&[2, 3]).unwrap();
    let mut sum = [0.0f32; 2];
    let sum = HostOutput::new(&mut sum, Layout::contiguous(&[2, 1]).unwrap()).unwrap();
    let output = HostOutput::new(&mut memory, layout).unwrap();
    // An output per element may replace the input; one per group may not.
    let input = HostInput::output(1, &output);
    assert!(message(program.run_host(&[input], &[], &[1], &mut [output, sum])).contains("in-place"));
}

#[test]
fn bad_arguments_of_functions_are_errors_that_name_both_sides() {
    let x = tensor(&[4, 6], DType::F32);
    let five = tensor(&[5], DType::F32);
    let mut six = tensor(&[6], DType::F32);
    let mut integers = six.cast(DType::I32).unwrap();
    let of_integers = x.batch_norm_training(Some((&mut six.clone(), &mut integers)), None, None, 0.1, 1e-5);
    for (found, wanted) in [
        (message(x.softmax(2)), "axis 2"),
        (message(x.cast(DType::I32).unwrap().softmax(0)), "i32"),
        (message(x.cast(DType::F8E4M3).unwrap().log_softmax(0)), "f8e4m3"),
        (message(x.cast(DType::C64).unwrap().standardize(0)), "c64"),
        (message(x.layer_norm(&[4], None, None, 1e-5)), "normalized_shape [4] for shape [4, 6]"),
        (message(x.layer_norm(&[], None, None, 1e-5)), "normalized_shape"),
        (message(x.layer_norm(&[6], Some(&five), None, 1e-5)), "a weight of shape [5]"),
        (message(x.rms_norm(&[4, 6], Some(&five), None)), "[4, 6]"),
        (message(x.group_norm(4, None, None, 1e-5)), "4 groups of 6 channels"),
        (message(x.group_norm(0, None, None, 1e-5)), "0 groups"),
        (message(x.group_norm(2, None, Some(&five), 1e-5)), "a bias of shape [5]"),
        (message(five.group_norm(1, None, None, 1e-5)), "(N, C)"),
        (message(x.batch_norm(&six, &five, None, None, 1e-5)), "a running_var of shape [5]"),
        (message(x.narrow(0, 0, 1).unwrap().batch_norm_training(None, None, None, 0.1, 1e-5)), "1 elements"),
        (
            message(x.batch_norm_training(Some((&mut six, &mut five.clone())), None, None, 0.1, 1e-5)),
            "running_var",
        ),
        (message(of_integers), "found i32"),
        (message(x.normalize(f64::NAN, 1, 1e-12)), "NaN"),
        (message(x.normalize(2.0, 3, 1e-12)), "axis 3"),
        (message(x.standardize(&[0, 0])), "each axis once"),
    ] {
        assert!(found.contains(wanted), "{found} lacks {wanted}");
    }
}
