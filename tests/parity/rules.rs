//! Tests of dtypes, numbers, errors, explanations and in-place runs.

use selvedge::Error;
use selvedge::fuse::{Expression, Graph, HostInput, HostOutput, Number, Operation};
use selvedge::types::{DType, Layout};

use crate::common::suite::Test;

macro_rules! tests {
    ($($name:ident)*) => {
        pub fn tests() -> Vec<Test> {
            vec![$(Test::new(concat!("rules::", stringify!($name)), || {
                $name();
                Ok(())
            })),*]
        }
    };
}

tests! {
    operands_are_promoted
    bad_expressions_are_errors
    bad_operands_are_errors
    numbers_are_parameters_and_never_text
    equal_parts_are_computed_once
    runs_in_place
    the_plan_is_explained
    kernels_of_other_sizes_are_the_same
    large_runs_are_several_launches
    more_parameters_than_a_kernel_takes
    the_list_is_whole
}

fn contiguous(sizes: &[usize]) -> Layout {
    Layout::contiguous(sizes).expect("a layout")
}

/// Returns an expression of two f32 inputs.
fn of_two(
    make: impl for<'g> Fn(selvedge::fuse::Expr<'g>, selvedge::fuse::Expr<'g>) -> selvedge::fuse::Expr<'g>,
) -> Expression {
    let graph = Graph::new();
    let [x, y] = graph.inputs([DType::F32; 2]);
    graph.expression(&[make(x, y)]).expect("an expression")
}

fn operands_are_promoted() {
    let graph = Graph::new();
    let of = |dtype| graph.input(dtype);
    for (found, wanted) in [
        (of(DType::I8) + of(DType::U8), DType::I16),
        (of(DType::I64) / of(DType::U8), DType::F32),
        (of(DType::F16) * of(DType::BF16), DType::F32),
        (of(DType::U8) + 1, DType::U8),
        (of(DType::U8) + 1.5, DType::F32),
        (2.0 / of(DType::F16), DType::F16),
        (of(DType::Bool) + 1, DType::I64),
        (of(DType::I32).lt(2.5), DType::Bool),
        (of(DType::C128).abs(), DType::F64),
        (of(DType::F32).choose(of(DType::I8), of(DType::F64)), DType::F64),
        // A number takes the common dtype of the others; the condition is not one of them.
        (of(DType::Bool).choose(of(DType::F16), 2.5), DType::F16),
        (of(DType::F32).choose(1, of(DType::U8)), DType::U8),
        (of(DType::Bool).choose(1, 0.5), DType::F32),
        (of(DType::F16).clamp(0.1, of(DType::F64)), DType::F64),
        (of(DType::I64).sqrt(), DType::F32),
        (of(DType::F64).logical_not(), DType::Bool),
        (of(DType::BF16) * num_complex::Complex::new(0.0f32, 1.0), DType::C64),
    ] {
        assert_eq!(found.dtype(), wanted);
    }
    graph.expression(&[of(DType::F8E4M3).cast(DType::F32).sqrt()]).expect("a cast first");
}

fn bad_expressions_are_errors() {
    let error = |make: fn(&Graph) -> selvedge::fuse::Expr<'_>| {
        let graph = Graph::new();
        let made = make(&graph);
        let result = graph.expression(&[made]);
        result.expect_err("an error").to_string()
    };
    let message = error(|graph| graph.input(DType::F32) & graph.input(DType::F32));
    assert!(message.contains("bit_and") && message.contains("f32") && message.contains("i64"), "{message}");
    let message = error(|graph| graph.input(DType::F8E5M2) + 1.0);
    assert!(message.contains("cast"), "{message}");
    let message = error(|graph| graph.input(DType::F8E5M2).neg());
    assert!(message.contains("neg") && message.contains("cast"), "{message}");
    let message = error(|graph| graph.input(DType::C64).lt(graph.input(DType::C64)));
    assert!(message.contains("lt wants") && message.contains("c64"), "{message}");
    let message = error(|graph| graph.input(DType::U64) + graph.input(DType::I8));
    assert!(message.contains("u64 and i8"), "{message}");
    let message = error(|graph| graph.scalar(DType::F8E4M3).cast(DType::F32));
    assert!(message.contains("a scalar of f8e4m3"), "{message}");
    let message = error(|graph| graph.input(DType::F32).operation(Operation::Add, &[]));
    assert!(message.contains("found 1; wanted 2"), "{message}");
    let (one, two) = (Graph::new(), Graph::new());
    let (x, y) = (one.input(DType::F32), two.input(DType::F32));
    assert!(one.expression(&[x + y]).expect_err("an error").to_string().contains("two graphs"));
    assert!(
        two.expression(&[one.input(DType::F32)]).expect_err("an error").to_string().contains("another graph")
    );
    assert!(two.expression(&[]).is_err());
    let many = Graph::new();
    let all: Vec<_> = (0..65).map(|_| many.input(DType::U8)).collect();
    assert!(many.expression(&all[..1]).expect_err("an error").to_string().contains("at most 64"));
    let long = Graph::new();
    let mut x = long.input(DType::F32);
    for _ in 0..30_000 {
        x = x.sqrt();
    }
    assert!(long.expression(&[x]).expect_err("an error").to_string().contains("instructions"));
}

fn bad_operands_are_errors() {
    let expression = of_two(|x, y| x + y);
    let (four, five) = (contiguous(&[4]), contiguous(&[5]));
    let data = [1.0f32; 4];
    let whole = [1i32; 4];
    let input = || HostInput::new(&data, four).expect("an input");
    let run = |inputs: &[HostInput<'_>], scalars: &[Number], layout: Layout| {
        let mut out = [0.0f32; 5];
        let mut outputs = [HostOutput::new(&mut out, layout).expect("an output")];
        expression.run_host(inputs, scalars, &mut outputs)
    };
    assert!(run(&[input(), input()], &[], four).is_ok());
    assert!(matches!(run(&[input()], &[], four), Err(Error::LengthMismatch { wanted: 2, found: 1, .. })));
    assert!(matches!(
        run(&[input(), input()], &[1.0.into()], four),
        Err(Error::LengthMismatch { wanted: 0, found: 1, .. })
    ));
    let other = HostInput::new(&whole, four).expect("an input");
    let message = run(&[input(), other], &[], four).expect_err("an error").to_string();
    assert!(message.contains("f32 for input 1") && message.contains("i32"), "{message}");
    let message = run(&[input(), input()], &[], five).expect_err("an error").to_string();
    assert!(message.contains("[4]") && message.contains("[5]"), "{message}");
    assert!(matches!(HostInput::new(&data, five), Err(Error::OutOfRange { end: 5, length: 4, .. })));
    let mut out = [0.0f32; 4];
    let repeated = contiguous(&[1]).expand(four.shape()).expect("a view");
    let mut outputs = [HostOutput::new(&mut out, repeated).expect("an output")];
    let message =
        expression.run_host(&[input(), input()], &[], &mut outputs).expect_err("an error").to_string();
    assert!(message.contains("without overlapping elements"), "{message}");
    let bytes = [0u64; 4];
    let odd = &bytemuck::cast_slice::<u64, u8>(&bytes)[1..];
    assert!(
        HostInput::of_bytes(DType::F32, odd, four)
            .expect_err("an error")
            .to_string()
            .contains("multiple of 4")
    );
}

fn numbers_are_parameters_and_never_text() {
    let (layout, text) = (contiguous(&[100]), |number: f32| {
        let expression = of_two(|x, y| x * number + y.clamp(0.0, number));
        let explanation =
            expression.explain(&[contiguous(&[100]); 2], &[contiguous(&[100])], (9, 0)).expect("a plan");
        (explanation.launches[0].ptx.clone(), explanation.launches[0].parameters.clone())
    });
    let ((one, of_one), (two, of_two)) = (text(2.0), text(-7.5e30));
    assert_eq!(one, two);
    assert_ne!(of_one, of_two);
    let graph = Graph::new();
    let scaled = graph.input(DType::I32) * graph.scalar(DType::I32);
    let expression = graph.expression(&[scaled]).expect("an expression");
    assert_eq!(expression.scalars(), [DType::I32]);
    let data: Vec<i32> = (0..100).collect();
    let mut out = vec![0; 100];
    for factor in [3, -4] {
        let input = HostInput::new(&data, layout).expect("an input");
        let output = HostOutput::new(&mut out, layout).expect("an output");
        expression.run_host(&[input], &[factor.into()], &mut [output]).expect("a run");
        assert!(data.iter().zip(&out).all(|(x, y)| x * factor == *y));
    }
}

fn equal_parts_are_computed_once() {
    let expression = of_two(|x, y| (x * y).sqrt() + (x * y).sqrt() * (x * y));
    let text =
        expression.explain(&[contiguous(&[4]); 2], &[contiguous(&[4])], (8, 0)).expect("a plan").to_string();
    assert_eq!((text.matches("sqrt.rn").count(), text.matches("mul.rn").count()), (4, 8), "{text}");
    // A value that no output depends on is not computed.
    let graph = Graph::new();
    let x = graph.input(DType::F32);
    let _unused = x.sqrt();
    let text = graph.expression(&[x + x]).expect("an expression");
    assert!(
        !text
            .explain(&[contiguous(&[4])], &[contiguous(&[4])], (8, 0))
            .expect("a plan")
            .to_string()
            .contains("sqrt")
    );
}

fn runs_in_place() {
    let expression = of_two(|x, y| x * 2.0 + y);
    let layout = contiguous(&[3000]);
    let mut data: Vec<f32> = (0..3000).map(|k| k as f32).collect();
    let other = vec![1.0f32; 3000];
    let output = HostOutput::new(&mut data, layout).expect("an output");
    let inputs = [HostInput::output(0, &output), HostInput::new(&other, layout).expect("an input")];
    expression.run_host(&inputs, &[], &mut [output]).expect("a run");
    assert!(data.iter().enumerate().all(|(k, x)| *x == 2.0 * k as f32 + 1.0));
    // Another layout of the same memory would read written elements.
    let mut two = [0.0f32; 6];
    let reversed = contiguous(&[2, 3]).flip(&[1]).expect("a view");
    let outputs = HostOutput::new(&mut two, reversed).expect("an output");
    let inputs = [HostInput::output(0, &outputs), HostInput::output(1, &outputs)];
    let message = expression.run_host(&inputs, &[], &mut [outputs]).expect_err("an error").to_string();
    assert!(message.contains("in-place input for output 1"), "{message}");
}

fn the_plan_is_explained() {
    let expression = of_two(|x, y| (x + y).relu());
    let matrix = contiguous(&[64, 64]);
    let explain = |inputs: [Layout; 2], output: Layout| {
        expression.explain(&inputs, &[output], (7, 5)).expect("a plan").to_string()
    };
    assert!(explain([matrix, matrix], matrix).contains("[4096] by linear index, adjacent"));
    assert!(explain([matrix, contiguous(&[64])], matrix).contains("[64, 64] by vectors"));
    assert!(explain([matrix, contiguous(&[64, 1])], matrix).contains("linear, broadcast a vector, linear"));
    assert!(explain([matrix, matrix.transpose(0, 1).expect("a view")], matrix).contains("by tiles"));
    let apart = Layout::strided(&[4095], &[1], 1).expect("a layout");
    let text = explain([apart, apart], apart);
    assert!(text.contains("a block apart") && text.contains(".visible .entry fused("), "{text}");
    assert!(explain([contiguous(&[0]); 2], contiguous(&[0])).contains("no launch"));
    assert!(explain([contiguous(&[]), matrix], matrix).contains("broadcast, linear, linear"));
}

fn kernels_of_other_sizes_are_the_same() {
    let expression = of_two(|x, y| x / y);
    let text = |sizes: [usize; 2]| {
        let row = contiguous(&sizes[1..]);
        let plan =
            expression.explain(&[contiguous(&sizes), row], &[contiguous(&sizes)], (8, 6)).expect("a plan");
        plan.launches[0].ptx.clone()
    };
    assert_eq!(text([10, 64]), text([977, 4096]));
    assert_ne!(text([10, 64]), text([10, 63]));
}

fn large_runs_are_several_launches() {
    let expression = of_two(|x, y| x - y);
    let large = contiguous(&[3, 1 << 30]);
    let row = contiguous(&[1 << 30]);
    let plan = expression.explain(&[large, row], &[large], (9, 0)).expect("a plan");
    assert_eq!(plan.launches.len(), 3);
    assert!(plan.launches.iter().enumerate().all(|(k, launch)| launch.offsets == [k << 30, 0, k << 30]));
    // A text occurs once if the next launch has the same.
    assert_eq!(plan.to_string().matches(".version").count(), 1);
}

fn more_parameters_than_a_kernel_takes() {
    let graph = Graph::new();
    let inputs: Vec<_> = (0..62).map(|_| graph.input(DType::U8)).collect();
    let sum = inputs[1..].iter().fold(inputs[0], |sum, &input| sum + input);
    let expression = graph.expression(&[sum]).expect("an expression");
    // Nothing merges: of each pair of dimensions an input repeats the inner one.
    let sizes = [2; 16];
    let repeats: Vec<usize> = (0..16).map(|axis| 1 + axis % 2).collect();
    let mixed = contiguous(&repeats).expand(contiguous(&sizes).shape()).expect("a view");
    let message =
        expression.explain(&[mixed; 62], &[contiguous(&sizes)], (9, 0)).expect_err("an error").to_string();
    assert!(message.contains("63 operands of 16 dimensions"), "{message}");
    // The CPU has no such limit.
    let (ones, mut out) = (vec![1u8; 256], vec![0u8; 1 << 16]);
    let run: Vec<_> = (0..62).map(|_| HostInput::new(&ones, mixed).expect("an input")).collect();
    expression
        .run_host(&run, &[], &mut [HostOutput::new(&mut out, contiguous(&sizes)).expect("an output")])
        .expect("a run");
    assert!(out.iter().all(|x| *x == 62));
}

fn the_list_is_whole() {
    let mut names: Vec<&str> = Operation::ALL.iter().map(|operation| operation.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Operation::ALL.len());
    for operation in Operation::ALL {
        assert!(operation.document().ends_with('.') && (1..=3).contains(&operation.arity()), "{operation:?}");
        assert!(operation.dtypes().iter().all(|dtype| !dtype.is_storage_only()));
    }
    // A code belongs to one operation, and published codes stay: the last number reveals a missing one.
    let mut codes: Vec<u32> = Operation::ALL.iter().map(|operation| operation.code()).collect();
    assert!(
        Operation::ALL.iter().all(|operation| Operation::from_code(operation.code()) == Some(*operation))
    );
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes, (1..=Operation::ALL.len() as u32).collect::<Vec<u32>>());
    assert_eq!(Operation::from_code(0), None);
    // A new operation takes the next code, as the comment above `ops!` says.
    assert_eq!(codes.last(), Some(&95));
    for (operation, code) in [(Operation::Add, 1), (Operation::Softplus, 69), (Operation::MulHigh, 95)] {
        assert_eq!(operation.code(), code);
    }
    // Every dtype that computes supports addition, comparison, selection and casts.
    for dtype in DType::ALL.into_iter().filter(|dtype| !dtype.is_storage_only()) {
        for operation in [Operation::Add, Operation::Equal, Operation::Select] {
            assert!(operation.dtypes().contains(dtype));
        }
    }
}
