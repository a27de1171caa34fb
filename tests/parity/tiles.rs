//! Inputs that are contiguous along another dimension than the output, for which a device iterates in tiles:
//! by size, start, batch, number of such inputs and element width.

use selvedge::fuse::{Expression, Graph};
use selvedge::types::{DType, Layout, Slice};

use super::arrays::{Array, assert_same, on_host};
use super::harness::as_ptx;
use super::operations::check;
use super::value::{Value, special};
use crate::common::suite::Test;

/// For each element width, a number type and another type.
const DTYPES: [DType; 8] =
    [DType::U8, DType::Bool, DType::BF16, DType::I16, DType::F32, DType::C64, DType::F64, DType::C128];

/// Around the sides of tiles, and short sides.
const SIZES: [[usize; 2]; 14] = [
    [17, 31],
    [31, 32],
    [32, 33],
    [63, 64],
    [64, 65],
    [65, 127],
    [127, 128],
    [128, 129],
    [129, 63],
    [64, 64],
    [160, 144],
    [4, 300],
    [300, 4],
    [16, 513],
];

pub fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    let mut add = |name: String, run: Box<dyn Fn() + Send>| {
        tests.push(Test::new(format!("tiles::{name}"), move || {
            run();
            Ok(())
        }));
    };
    for dtype in DTYPES {
        for sizes in SIZES {
            let [rows, columns] = sizes;
            add(format!("copy::{dtype}::{rows}x{columns}"), Box::new(move || copy(dtype, &sizes, 0)));
        }
        add(format!("copy::{dtype}::late_start"), Box::new(move || copy(dtype, &[96, 160], 1)));
        add(format!("copy::{dtype}::wide_start"), Box::new(move || copy(dtype, &[96, 160], 16)));
        add(format!("copy::{dtype}::batch"), Box::new(move || copy(dtype, &[3, 64, 48], 0)));
        add(format!("sum::{dtype}"), Box::new(move || sum(dtype)));
        add(format!("in_place::{dtype}"), Box::new(move || in_place(dtype)));
        for other in [DType::U8, DType::BF16, DType::F32, DType::C128] {
            add(format!("cast::{dtype}_to_{other}"), Box::new(move || cast(dtype, other)));
        }
    }
    add("several_inputs".to_owned(), Box::new(several_inputs));
    add("more_inputs_than_fit".to_owned(), Box::new(more_inputs_than_fit));
    add("several_widths".to_owned(), Box::new(several_widths));
    add("orders_of_dimensions".to_owned(), Box::new(orders_of_dimensions));
    add("steps_and_backwards".to_owned(), Box::new(steps_and_backwards));
    add("where_tiles_pay".to_owned(), Box::new(where_tiles_pay));
    add("long_programs_loop_over_rows".to_owned(), Box::new(long_programs_loop_over_rows));
    tests
}

fn contiguous(sizes: &[usize]) -> Layout {
    Layout::contiguous(sizes).expect("a layout")
}

/// Returns the layout with the last two dimensions exchanged, in memory that begins `start` elements late.
fn transposed(sizes: &[usize], start: usize) -> Layout {
    let mut sizes = sizes.to_vec();
    let rank = sizes.len();
    sizes.swap(rank - 2, rank - 1);
    let layout = Layout::strided(&sizes, contiguous(&sizes).strides(), start).expect("a layout");
    layout.transpose(rank as isize - 2, rank as isize - 1).expect("a view")
}

fn blank(dtype: DType, layout: Layout) -> Array {
    let mut array = Array::new(dtype, layout, &special(dtype)[..1], 0);
    array.bytes.fill(0x5A);
    if dtype == DType::Bool {
        array.bytes.fill(1);
    }
    array
}

fn filled(dtype: DType, layout: Layout, start: usize) -> Array {
    Array::new(dtype, layout, &special(dtype), start)
}

/// Runs the sum of the inputs in a common dtype, and returns whether its kernel uses shared memory.
fn run(expression: &Expression, inputs: &[Array], output: Array) -> bool {
    let before = [output];
    check(expression, inputs, &before, true);
    let mut after = before.to_vec();
    as_ptx(expression, inputs, &mut after, (9, 0)).iter().all(|text| text.contains("bar.sync"))
}

/// Returns the sum of inputs of these dtypes, cast to the last.
fn sum_of(inputs: &[DType], output: DType) -> Expression {
    let graph = Graph::new();
    let all: Vec<_> = inputs.iter().map(|&dtype| graph.input(dtype).cast(output)).collect();
    let sum = all[1..].iter().fold(all[0], |sum, &input| sum + input);
    graph.expression(&[sum]).expect("an expression")
}

fn copy(dtype: DType, sizes: &[usize], start: usize) {
    let expression = sum_of(&[dtype], dtype);
    let input = filled(dtype, transposed(sizes, start), 3);
    run(&expression, &[input], blank(dtype, contiguous(sizes)));
}

fn sum(dtype: DType) {
    for sizes in [[96, 160], [67, 95]] {
        let expression = sum_of(&[dtype; 3], dtype);
        let inputs = [
            filled(dtype, contiguous(&sizes), 0),
            filled(dtype, transposed(&sizes, 0), 7),
            filled(dtype, contiguous(&[sizes[0], 1]), 1),
        ];
        assert!(run(&expression, &inputs, blank(dtype, contiguous(&sizes))));
    }
}

fn cast(from: DType, to: DType) {
    for sizes in [[96, 256], [70, 65]] {
        let expression = sum_of(&[from], to);
        let input = filled(from, transposed(&sizes, 0), 0);
        assert!(run(&expression, &[input], blank(to, contiguous(&sizes))));
    }
}

/// An output that is an input in its layout, beside a transposed input: all reads precede the writes.
fn in_place(dtype: DType) {
    let graph = Graph::new();
    let [x, y, z] = graph.inputs([dtype; 3]);
    let expression = graph.expression(&[x + y, y + z]).expect("an expression");
    let sizes = [80, 96];
    let (straight, across) = (contiguous(&sizes), transposed(&sizes, 0));
    let inputs =
        [filled(dtype, straight, 0), filled(dtype, across, 5), filled(dtype, transposed(&sizes, 0), 2)];
    let before = [filled(dtype, straight, 0), filled(dtype, across, 5)];
    let mut wanted = before.to_vec();
    on_host(&expression, &inputs, &[], &mut wanted);
    let mut found = before.to_vec();
    super::harness::in_place(&expression, &inputs, &mut found, &[(0, 0), (1, 1)]);
    assert_same("in place", &wanted, &found, &before);
}

fn several_inputs() {
    for dtype in [DType::U8, DType::BF16, DType::F32, DType::F64] {
        for count in [2, 3, 4] {
            let sizes = [100, 136];
            let inputs: Vec<Array> =
                (0..count).map(|k| filled(dtype, transposed(&sizes, 0), 11 * k)).collect();
            assert!(run(&sum_of(&vec![dtype; count], dtype), &inputs, blank(dtype, contiguous(&sizes))));
        }
    }
}

fn more_inputs_than_fit() {
    let sizes = [40, 72];
    let inputs: Vec<Array> = (0..5).map(|k| filled(DType::C128, transposed(&sizes, 0), 3 * k)).collect();
    let expression = sum_of(&[DType::C128; 5], DType::C128);
    assert!(run(&expression, &inputs, blank(DType::C128, contiguous(&sizes))));
    let explanation =
        expression.explain(&[transposed(&sizes, 0); 5], &[contiguous(&sizes)], (9, 0)).expect("a plan");
    assert_eq!(explanation.to_string().matches("through shared memory").count(), 3);
}

fn several_widths() {
    let dtypes = [DType::U8, DType::BF16, DType::F32, DType::F64, DType::I64];
    for sizes in [[128, 256], [61, 130]] {
        let inputs: Vec<Array> =
            dtypes.iter().enumerate().map(|(k, &dtype)| filled(dtype, transposed(&sizes, 0), k)).collect();
        for output in [DType::BF16, DType::F64] {
            assert!(run(&sum_of(&dtypes, output), &inputs, blank(output, contiguous(&sizes))));
        }
    }
}

/// Every order of four dimensions.
fn orders_of_dimensions() {
    let sizes = [3, 34, 5, 40];
    let mut orders = Vec::new();
    for code in 0..256 {
        let order = [code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6];
        if (0..4).all(|axis| order.contains(&axis)) {
            orders.push(order);
        }
    }
    assert_eq!(orders.len(), 24);
    let expression = sum_of(&[DType::F32; 2], DType::F32);
    for order in orders {
        let layout = contiguous(&sizes).permute(&order.map(|axis| axis as isize)).expect("a view");
        let plain = Layout::from_shape(*layout.shape());
        let inputs = [filled(DType::F32, layout, 0), filled(DType::F32, plain, 1)];
        let tiled = run(&expression, &inputs, blank(DType::F32, plain));
        // Neighbours of the output that are neighbours of the input form one long dimension.
        let (mut innermost, mut at) = (sizes[order[3]], 3);
        while at > 0 && order[at - 1] + 1 == order[at] {
            at -= 1;
            innermost *= sizes[order[at]];
        }
        assert_eq!(tiled, innermost > 16 && order[3] != 3, "{order:?}");
    }
}

fn steps_and_backwards() {
    let sizes = [66, 70];
    let stepped = contiguous(&[70, 132])
        .slice(1, Slice::from(..).step(2))
        .and_then(|view| view.transpose(0, 1))
        .expect("a view");
    let back = transposed(&sizes, 0).flip(&[0]).expect("a view");
    let both = transposed(&sizes, 0).flip(&[0, 1]).expect("a view");
    let expression = sum_of(&[DType::F32; 2], DType::F32);
    for (input, other) in [(stepped, back), (back, both), (both, stepped)] {
        let inputs = [filled(DType::F32, input, 0), filled(DType::F32, other, 9)];
        assert!(run(&expression, &inputs, blank(DType::F32, contiguous(&sizes))));
        // An output whose elements are not adjacent.
        let apart = contiguous(&[66, 140]).slice(1, Slice::from(1..).step(2)).expect("a view");
        assert!(run(&expression, &inputs, blank(DType::F32, apart)));
    }
}

/// Tiles depend on the layouts alone, with 16 bytes an access where the layouts allow it.
fn where_tiles_pay() {
    let plan = |dtype: DType, input: Layout, output: Layout| {
        sum_of(&[dtype], dtype).explain(&[input], &[output], (9, 0)).expect("a plan").to_string()
    };
    let square = |dtype, side: usize| plan(dtype, transposed(&[side, side], 0), contiguous(&[side, side]));
    for (dtype, tile) in [
        (DType::U8, "128 along the output, 128 across: 8"),
        (DType::BF16, "128 along the output, 128 across: 8"),
        (DType::F32, "64 along the output, 64 across: 4"),
        (DType::C64, "32 along the output, 32 across: 2"),
        (DType::C128, "32 along the output, 32 across: 1"),
    ] {
        let text = square(dtype, 1024);
        assert!(text.contains(tile) && text.contains("16 bytes an access, linear"), "{text}");
        assert!(text.contains("ld.global.v") && text.contains("st.global.v"), "{text}");
    }
    assert!(square(DType::F32, 1023).contains("through shared memory, element by element"));
    // Neither a row, nor a column, nor inputs read in whole sectors.
    for (input, output) in [
        (transposed(&[1000, 1], 0), contiguous(&[1000, 1])),
        (contiguous(&[64, 64]), contiguous(&[64, 64])),
        (transposed(&[64, 8], 0), contiguous(&[64, 8])),
        (contiguous(&[4, 6, 64]).permute(&[1, 0, 2]).expect("a view"), contiguous(&[6, 4, 64])),
        (contiguous(&[64]), contiguous(&[64, 64])),
        (contiguous(&[64, 1]), contiguous(&[64, 64])),
    ] {
        assert!(!plan(DType::F32, input, output).contains("by tiles"), "{input:?}");
    }
    // A short side makes the other longer.
    let text = plan(DType::F32, transposed(&[20, 4096], 0), contiguous(&[20, 4096]));
    assert!(text.contains("128 along the output, 32 across"), "{text}");
    let text = plan(DType::F32, transposed(&[4096, 20], 0), contiguous(&[4096, 20]));
    assert!(text.contains("32 along the output, 128 across"), "{text}");
}

fn long_programs_loop_over_rows() {
    let graph = Graph::new();
    let [x, y] = graph.inputs([DType::F32; 2]);
    let mut sum = x;
    for _ in 0..8 {
        sum = (sum * y).exp() + sum.log1p();
    }
    let expression = graph.expression(&[sum]).expect("an expression");
    let sizes = [70, 96];
    let values: Vec<Value> = (0..97).map(|k| Value::Real(f64::from(k) * 0.01)).collect();
    let inputs = [
        Array::new(DType::F32, transposed(&sizes, 0), &values, 0),
        Array::new(DType::F32, contiguous(&sizes), &values, 13),
    ];
    assert!(run(&expression, &inputs, blank(DType::F32, contiguous(&sizes))));
    let text = expression
        .explain(&[transposed(&sizes, 0), contiguous(&sizes)], &[contiguous(&sizes)], (9, 0))
        .expect("a plan")
        .to_string();
    assert!(text.contains("bra $rows;"));
    assert!(
        !sum_of(&[DType::F32], DType::F32)
            .explain(&[transposed(&sizes, 0)], &[contiguous(&sizes)], (9, 0))
            .expect("a plan")
            .to_string()
            .contains("bra $rows;")
    );
}
