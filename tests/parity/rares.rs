//! Rare bodies: emitted once if they are equal, skipped if no element needs them, and with their own results
//! otherwise.

use selvedge::fuse::{Expr, Expression, Graph, Operation};
use selvedge::types::{DType, Layout};

use super::arrays::{Array, on_host};
use super::operations::check;
use super::value::{Value, read};
use crate::common::suite::Test;

pub fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    let mut add = |name: &str, test: fn()| {
        tests.push(Test::new(format!("rares::{name}"), move || {
            test();
            Ok(())
        }));
    };
    add("some_elements_of_a_vector", some_elements_of_a_vector);
    add("equal_ones_are_written_once", equal_ones_are_written_once);
    add("a_sine_and_a_cosine_share_one", a_sine_and_a_cosine_share_one);
    add("of_a_number_it_is_run_once", of_a_number_it_is_run_once);
    add("one_inside_of_another", one_inside_of_another);
    add("what_no_output_needs_is_not_written", what_no_output_needs_is_not_written);
    tests
}

fn contiguous(sizes: &[usize]) -> Layout {
    Layout::contiguous(sizes).expect("a layout")
}

fn text(expression: &Expression, inputs: usize) -> String {
    let whole = contiguous(&[64]);
    let plan = expression.explain(&vec![whole; inputs], &[whole], (9, 0)).expect("a plan");
    plan.launches[0].ptx.clone()
}

fn a_sine_and_a_cosine_share_one() {
    let branches = |outputs: &dyn for<'g> Fn(Expr<'g>) -> Expr<'g>, dtype| {
        let graph = Graph::new();
        let expression = graph.expression(&[outputs(graph.input(dtype))]).expect("an expression");
        text(&expression, 1).matches("bra $").count()
    };
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        let one = branches(&|x| x.sin(), dtype);
        assert!(one > 0, "{dtype}");
        assert_eq!(branches(&|x| x.sin() * x.cos(), dtype), one, "{dtype}");
        assert_eq!(branches(&|x| x.sin() + x.cos() + x.tan(), dtype), one, "{dtype}");
        // Of another number, and of another function of the number.
        assert!(branches(&|x| x.sin() + (x + 1.0).cos(), dtype) > one, "{dtype}");
        assert!(branches(&|x| x.sin() + x.exp(), dtype) >= one, "{dtype}");
    }
}

/// Every choice of lanes of a thread, beside CPU blocks with none and with one.
fn some_elements_of_a_vector() {
    let graph = Graph::new();
    let expression = graph.expression(&[graph.input(DType::F32).sin()]).expect("an expression");
    let value = |at: usize| {
        // A bit of the vector's number for each of its four lanes; then none for two blocks, then one.
        let large = at < 64 && (at / 4) >> (at % 4) & 1 == 1 || at == 900;
        if large { 1e20 + at as f64 * 1e14 } else { at as f64 * 0.37 }
    };
    let values: Vec<Value> = (0..1024).map(|at| Value::Real(f64::from(value(at) as f32))).collect();
    let layout = contiguous(&[1024]);
    let before = [Array::new(DType::F32, layout, &[Value::Real(0.0)], 0)];
    let after = check(&expression, &[Array::new(DType::F32, layout, &values, 0)], &before, true);
    for (bytes, value) in after[0].element_bytes().into_iter().zip(&values) {
        let (found, wanted) = (read(DType::F32, bytes).real(), value.real().sin());
        assert!(
            (found - wanted).abs() <= 2.4e-7 * wanted.abs(),
            "sin({value:?}) is {found}, wanted {wanted}"
        );
    }
}

fn equal_ones_are_written_once() {
    let graph = Graph::new();
    let x = graph.input(DType::F32);
    let once = graph.expression(&[x.sin()]).expect("an expression");
    let twice = graph.expression(&[x.sin() * x.sin()]).expect("an expression");
    let count = |expression: &Expression| text(expression, 1).matches("mul.hi.u64").count();
    assert!(count(&once) > 0);
    assert_eq!(count(&once), count(&twice));
}

fn of_a_number_it_is_run_once() {
    let count =
        |make: for<'g> fn(selvedge::fuse::Expr<'g>, selvedge::fuse::Expr<'g>) -> selvedge::fuse::Expr<'g>| {
            let graph = Graph::new();
            let x = graph.input(DType::F32);
            let expression =
                graph.expression(&[make(x, graph.number(1e30, DType::F32))]).expect("an expression");
            // One branch for all lanes and one copy of the body, with the right result.
            let layout = contiguous(&[37]);
            let values: Vec<Value> = (0..37).map(|at| Value::Real(f64::from(at) * 0.25)).collect();
            let before = [Array::new(DType::F32, layout, &[Value::Real(0.0)], 0)];
            check(&expression, &[Array::new(DType::F32, layout, &values, 0)], &before, true);
            text(&expression, 1).matches("mul.hi.u64").count()
        };
    let (of_number, of_elements) =
        (count(|x, number| x + number.sin()), count(|x, number| (x + number).sin()));
    assert_eq!(of_elements, 4 * of_number);
}

/// The root in an inverse sine has rare results, and so has a function of them; a body reads values that are
/// the same for all elements.
fn one_inside_of_another() {
    let graph = Graph::new();
    let [x, y] = graph.inputs([DType::F32, DType::F32]);
    let number = graph.number(2.5, DType::F32);
    let result = (x.pow(number) + number.pow(y)).lgamma().sin();
    let expression = graph.expression(&[result]).expect("an expression");
    let values: Vec<Value> = [0.0, -0.5, -3.0, 7.0, 90.0, 1e-40, -1e30, f64::INFINITY, 3.5, f64::NAN, 1e15]
        .map(|x: f64| Value::Real(f64::from(x as f32)))
        .to_vec();
    for layout in [contiguous(&[1001]), contiguous(&[16, 16])] {
        let before = [Array::new(DType::F32, layout, &[Value::Real(0.0)], 0)];
        let inputs = [Array::new(DType::F32, layout, &values, 0), Array::new(DType::F32, layout, &values, 4)];
        let after = check(&expression, &inputs, &before, true);
        // Each element alone equals the element among others.
        for at in [0, 5, 40] {
            let one = contiguous(&[1]);
            let alone = [0, 4].map(|start| Array::new(DType::F32, one, &values, start + at));
            let mut result = [Array::new(DType::F32, one, &[Value::Real(0.0)], 0)];
            on_host(&expression, &alone, &[], &mut result);
            let (single, among) = (result[0].element_bytes()[0], after[0].element_bytes()[at]);
            assert!(super::value::same(DType::F32, single, among), "element {at}");
        }
    }
}

fn what_no_output_needs_is_not_written() {
    let graph = Graph::new();
    let x = graph.input(DType::F32);
    let _unused = x.operation(Operation::Sin, &[]);
    let copy = graph.expression(&[x + 1.0]).expect("an expression");
    assert!(!text(&copy, 1).contains("bra $usual"));
}
