//! Random expressions over random dtypes and layouts: the CPU against the PTX, and each against itself in
//! other layouts.

use selvedge::fuse::{Expr, Expression, Graph, Operation};
use selvedge::types::{DType, Layout, Slice};

use super::arrays::{Array, on_host};
use super::native::{BACKENDS, compare_on};
use super::operations::check;
use super::value::{Value, same, special};
use crate::common::suite::Test;

/// Pseudorandom numbers: the upper half of a linear congruential generator.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }
}

pub fn tests() -> Vec<Test> {
    let mut tests: Vec<Test> = (0..60)
        .map(|seed| {
            Test::new(format!("random::{seed}"), move || {
                run(seed);
                Ok(())
            })
        })
        .collect();
    tests.push(Test::new("random::many_blocks_and_threads", || {
        many();
        Ok(())
    }));
    tests
}

/// Returns a dtype other than the 8-bit floats, which come last.
fn dtype(numbers: &mut Numbers) -> DType {
    DType::ALL[numbers.below(15)]
}

/// Returns an expression of `operations` operations on up to three inputs, with several outputs. `places` adds the positions and
/// indices of elements.
fn expression(numbers: &mut Numbers, inputs: &[DType], operations: usize, places: bool) -> Expression {
    let graph = Graph::new();
    let mut nodes: Vec<Expr<'_>> = inputs.iter().map(|&dtype| graph.input(dtype)).collect();
    let dtype_of_number = dtype(numbers);
    let number = match dtype_of_number {
        DType::Bool => 1.0,
        dtype if dtype.is_integer() => 2.0,
        _ => 2.5,
    };
    nodes.push(graph.number(number, dtype_of_number));
    if places {
        nodes.extend([graph.position(), graph.index(0), graph.index(-1)]);
    }
    let count = nodes.len() + operations;
    while nodes.len() < count {
        let operation = Operation::ALL[numbers.below(Operation::ALL.len())];
        // The sign of a NaN is hardware dependent, and these operations expose it.
        if matches!(operation, Operation::Copysign) {
            continue;
        }
        let operands: Vec<Expr<'_>> =
            (0..operation.arity()).map(|_| nodes[numbers.below(nodes.len())]).collect();
        let dtypes: Vec<DType> = operands.iter().map(|operand| operand.dtype()).collect();
        if operation.signature(&dtypes).is_ok() {
            nodes.push(operands[0].operation(operation, &operands[1..]));
        } else if numbers.below(3) == 0 {
            nodes.push(operands[0].cast(dtype(numbers)));
        }
    }
    let outputs: Vec<Expr<'_>> = (0..1 + numbers.below(3))
        .map(|_| nodes[nodes.len() - 1 - numbers.below(6.min(nodes.len()))])
        .collect();
    graph.expression(&outputs).expect("an expression")
}

/// Returns one of several layouts of a shape.
fn layout(numbers: &mut Numbers, sizes: &[usize], output: bool) -> Layout {
    let whole = Layout::contiguous(sizes).expect("a layout");
    match numbers.below(if output { 5 } else { 7 }) {
        0 => {
            let mut wide = sizes.to_vec();
            wide[1] = 2 * wide[1] + 1;
            Layout::contiguous(&wide)
                .and_then(|wide| wide.slice(1, Slice::from(1..).step(2)))
                .expect("a view")
        }
        1 => whole.flip(&[0, 1]).expect("a view"),
        2 => Layout::contiguous(&[sizes[1], sizes[0]])
            .and_then(|transposed| transposed.transpose(0, 1))
            .expect("a view"),
        3 => Layout::strided(sizes, whole.strides(), 1).expect("a layout"),
        4 => whole,
        5 => Layout::contiguous(&[sizes[0], 1]).expect("a layout"),
        _ => Layout::contiguous(&[sizes[1]]).expect("a layout"),
    }
}

fn run(seed: u64) {
    let mut numbers = Numbers::new(seed * 977 + 5);
    let inputs: Vec<DType> = (0..1 + numbers.below(3)).map(|_| dtype(&mut numbers)).collect();
    let expression = expression(&mut numbers, &inputs, 12, true);
    let sizes = [[5, 16], [7, 9], [40, 33], [1, 70], [64, 2]][numbers.below(5)];
    let arrays: Vec<Array> = inputs
        .iter()
        .map(|&dtype| {
            let start = numbers.below(50);
            Array::new(dtype, layout(&mut numbers, &sizes, false), &special(dtype), start)
        })
        .collect();
    let before: Vec<Array> = expression
        .outputs()
        .iter()
        .map(|&dtype| Array::new(dtype, layout(&mut numbers, &sizes, true), &special(dtype)[..1], 0))
        .collect();
    check(&expression, &arrays, &before, true);
}

pub fn always() -> Vec<Test> {
    vec![Test::new("random::programs_on_machine_code", || {
        on_machine_code();
        Ok(())
    })]
}

/// Programs of one operation to many, for both instruction sets. Every other one has places of elements.
fn on_machine_code() {
    const PROGRAMS: u64 = 160;
    let mut ran = 0;
    for seed in 0..PROGRAMS {
        let mut numbers = Numbers::new(seed * 1009 + 11);
        let inputs: Vec<DType> = (0..1 + numbers.below(3)).map(|_| dtype(&mut numbers)).collect();
        let operations = [1, 3, 12, 12, 40][numbers.below(5)];
        let expression = expression(&mut numbers, &inputs, operations, seed % 2 == 1);
        // A part of a vector, of a block, and several blocks.
        let sizes = [[5, 1], [7, 9], [3, 701], [70, 2], [2, 2100]][numbers.below(5)];
        let layout = |numbers: &mut Numbers, output| match numbers.below(2) {
            0 => Layout::contiguous(&sizes).expect("a layout"),
            _ => layout(numbers, &sizes, output),
        };
        let sources: Vec<Array> = inputs
            .iter()
            .map(|&dtype| Array::new(dtype, layout(&mut numbers, false), &special(dtype), numbers.below(50)))
            .collect();
        let outputs = expression.outputs().iter();
        let before: Vec<Array> = outputs
            .map(|&dtype| Array::new(dtype, layout(&mut numbers, true), &special(dtype)[..1], 0))
            .collect();
        ran += compare_on(&expression, &format!("program {seed}"), &sources, &before);
    }
    // A few instructions leave a program to the interpreter.
    let available = BACKENDS.into_iter().filter(|backend| backend.is_available()).count();
    println!("{ran} runs of {PROGRAMS} programs for {available} instruction sets");
    assert!(
        2 * ran >= PROGRAMS as usize * available,
        "{ran} of {PROGRAMS} programs ran on {available} backends"
    );
}

/// Enough elements for several CPU threads: each element equals that of a small run.
fn many() {
    let graph = Graph::new();
    let [x, y] = graph.inputs([DType::F32, DType::I16]);
    let expression =
        graph.expression(&[x * y + 0.25, (x / 3.0).floor().cast(DType::F16)]).expect("an expression");
    let rows = 700;
    let (wide, narrow) =
        (Layout::contiguous(&[rows, 431]).expect("a layout"), Layout::contiguous(&[431]).expect("a layout"));
    let transposed =
        Layout::contiguous(&[431, rows]).and_then(|layout| layout.transpose(0, 1)).expect("a view");
    let values: Vec<Value> = (0..997).map(|k| Value::Real(f64::from(k) * 0.75 - 300.0)).collect();
    let whole: Vec<Value> = (0..431).map(|k| Value::Integer(k - 200)).collect();
    let inputs = [Array::new(DType::F32, transposed, &values, 0), Array::new(DType::I16, narrow, &whole, 0)];
    let blank = |dtype, layout| Array::new(dtype, layout, &[Value::Real(0.0)], 0);
    let mut large = [blank(DType::F32, wide), blank(DType::F16, wide)];
    on_host(&expression, &inputs, &[], &mut large);
    for row in [0, 1, rows / 2, rows - 1] {
        let of_row = |array: &Array| Array {
            layout: array.layout.select(0, row as isize).expect("a row"),
            ..array.clone()
        };
        let mut small = [blank(DType::F32, narrow), blank(DType::F16, narrow)];
        on_host(&expression, &[of_row(&inputs[0]), inputs[1].clone()], &[], &mut small);
        for (large, small) in large.iter().zip(&small) {
            for (one, two) in of_row(large).element_bytes().into_iter().zip(small.element_bytes()) {
                assert!(same(large.dtype, one, two));
            }
        }
    }
}
