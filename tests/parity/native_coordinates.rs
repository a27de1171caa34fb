//! Machine code of programs with coordinates and random words against the interpreter, for both instruction sets: every
//! number of words an element, several streams, streams from memory, all layouts, tails, and rare bodies.

use selvedge::fuse::{CpuBackend, Expr, Expression, Graph};
use selvedge::types::{DType, Layout};

use super::arrays::{Array, assert_same, on_host_with};
use super::native::{BACKENDS, compare_on, inputs_of, outputs_of, shifted};
use crate::common::suite::Test;

pub fn always() -> Vec<Test> {
    let named = |name: &str, run: fn()| Test::of(format!("native::{name}"), run);
    vec![
        named("positions_and_words_of_any_count_are_exact", counts),
        named("positions_and_words_of_any_layout_are_exact", layouts),
        named("streams_of_scalars_and_of_memory_reach_the_code", streams),
    ]
}

/// Returns a seed and an offset whose halves all matter; the offset's lower half overflows.
fn stream(graph: &Graph) -> [Expr<'_>; 2] {
    [0x0123_4567_89ab_cdefu64, 0x7_ffff_fff0].map(|number| graph.number(number, DType::U64))
}

fn uniform(bits: Expr<'_>) -> Expr<'_> {
    (bits >> 8).cast(DType::F32) * 2f64.powi(-24)
}

/// Returns a position as i32: AVX2 has no conversion of 64 bits to f32.
fn narrow(position: Expr<'_>) -> Expr<'_> {
    position.cast(DType::I32)
}

/// Returns programs of numbers and words, by name.
pub fn expressions() -> Vec<(&'static str, Expression)> {
    type Build = fn(&Graph) -> Vec<Expr<'_>>;
    let table: [(&str, Build); 9] = [
        ("positions", |graph| {
            let index = graph.index(-1);
            vec![narrow(graph.position()).cast(DType::F32), index + graph.input(DType::I16), graph.index(0)]
        }),
        ("uniform numbers", |graph| {
            let [seed, offset] = stream(graph);
            let [bits] = graph.random(DType::U32, seed, offset);
            vec![uniform(bits)]
        }),
        ("normal numbers", |graph| {
            let [seed, offset] = stream(graph);
            let [bits] = graph.random(DType::U32, seed, offset);
            vec![bits.normal()]
        }),
        ("dropout", |graph| {
            let [seed, offset] = stream(graph);
            let [bits] = graph.random(DType::U32, seed, offset);
            let x = graph.input(DType::F32);
            vec![uniform(bits).lt(0.75).choose(x * 1.25, graph.number(0.0, DType::F32))]
        }),
        ("two words", |graph| {
            let [seed, offset] = stream(graph);
            graph.random::<2>(DType::U32, seed, offset).to_vec()
        }),
        ("four words", |graph| {
            let [seed, offset] = stream(graph);
            graph.random::<4>(DType::U32, seed, offset).to_vec()
        }),
        ("words of 64 bits", |graph| {
            let [seed, offset] = stream(graph);
            let [bits] = graph.random(DType::U64, seed, offset);
            vec![bits, (bits >> 11).cast(DType::F64) * 2f64.powi(-53)]
        }),
        ("normal numbers of 64 bits", |graph| {
            let [seed, offset] = stream(graph);
            let [bits] = graph.random(DType::U64, seed, offset);
            vec![bits.normal()]
        }),
        ("several streams beside a position and a rare body", |graph| {
            let [seed, offset] = stream(graph);
            let [a] = graph.random(DType::U32, seed, offset);
            let [b] = graph.random(DType::U32, offset, seed);
            let [c, d] = graph.random(DType::U32, seed, seed);
            let large = narrow(graph.position()).cast(DType::F32) * 1e3;
            vec![uniform(a) - uniform(b) * large.sin(), uniform(c) + uniform(d), a ^ b]
        }),
    ];
    let build = |(name, build): (&'static str, Build)| {
        let graph = Graph::new();
        let outputs = build(&graph);
        (name, graph.expression(&outputs).expect("an expression"))
    };
    table.into_iter().map(build).collect()
}

fn available() -> usize {
    BACKENDS.into_iter().filter(|backend| backend.is_available()).count()
}

fn counts() {
    for (name, expression) in expressions() {
        for count in (0..=70).chain([511, 2047, 2048, 2049, 5001, 17000]) {
            let inputs = inputs_of(&expression, shifted(count, count % 5));
            let outputs = outputs_of(&expression, shifted(count, count % 3));
            let ran = compare_on(&expression, &format!("{count} of {name}"), &inputs, &outputs);
            assert_eq!(ran, available(), "{count} of {name}");
        }
    }
}

fn layouts() {
    let strided = |sizes: &[usize], strides: &[isize], offset| {
        Layout::strided(sizes, strides, offset).expect("a layout")
    };
    let sizes = [6, 301];
    let all = [
        strided(&sizes, &[301, 1], 5),
        strided(&sizes, &[1, 6], 0),
        strided(&sizes, &[1500, 2], 3),
        // Rows in one block each, whose first elements begin in the middle of a group.
        strided(&sizes, &[333, 1], 2),
        strided(&sizes, &[301, -1], 300),
        // Rows that are shorter than a block.
        strided(&[103, 5], &[7, 1], 0),
        strided(&[7, 2, 40], &[1, 300, 7], 0),
        strided(&[1], &[1], 0),
    ];
    for (name, expression) in expressions() {
        for layout in all {
            let inputs = inputs_of(&expression, Layout::from_shape(*layout.shape()));
            let outputs = outputs_of(&expression, layout);
            let ran = compare_on(&expression, &format!("{name} in {layout:?}"), &inputs, &outputs);
            assert_eq!(ran, available(), "{name}");
        }
    }
}

fn streams() {
    let graph = Graph::new();
    let seed = graph.scalar(DType::U64);
    let offset = graph.zero_dim_input(DType::U64);
    let [of_scalar] = graph.random(DType::U32, seed, seed);
    let [of_memory] = graph.random(DType::U32, offset, seed + offset);
    let all_four: [_; 4] = graph.random(DType::U32, seed, offset);
    let sum = all_four[1..].iter().fold(all_four[0], |sum, &word| sum ^ word);
    let expression = graph.expression(&[of_scalar, of_memory, sum]).expect("an expression");
    let before = outputs_of(&expression, shifted(4099, 1));
    for (seed, offset) in [(0, 0), (7, u64::MAX), (u64::MAX - 3, 1 << 33)] {
        let layout = Layout::contiguous(&[]).expect("a layout");
        let bytes = offset.to_ne_bytes().to_vec();
        let (inputs, scalars) = ([Array { dtype: DType::U64, layout, bytes }], [seed.into()]);
        let run = |backend| {
            let mut found = before.clone();
            on_host_with(backend, &expression, &inputs, &scalars, &mut found).expect("a run");
            found
        };
        let wanted = run(CpuBackend::Interpreter);
        for backend in BACKENDS.into_iter().filter(|backend| backend.is_available()) {
            assert_same(&format!("the stream {seed}, {backend:?}"), &wanted, &run(backend), &before);
        }
    }
}
