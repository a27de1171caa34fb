//! Sums over groups beside row programs: the CPU against their definition, and the kernels in the interpreter against
//! the CPU bit for bit, and on a device if there is one.

use selvedge::fuse::{Expr, Graph, RowExplanation, RowLaunches, RowMemory, RowProgram};
use selvedge::types::{DType, Layout};

use super::arrays::{Array, assert_same};
use super::harness;
use super::reductions::{contiguous, plain};
use super::row_runs::{on_device, on_host, run_plan};
use super::row_squares;
use super::texts;
use super::value::special;
use crate::common::suite::Test;
use ptx_interpreter::Schedule;

/// A name, and the outputs for x, its gradient and a weight along a group.
type Program = (&'static str, for<'g> fn([Expr<'g>; 3]) -> Vec<Expr<'g>>);

/// Two stages of reductions, and values of groups in the terms.
fn layer_norm_backward([x, gradient, weight]: [Expr<'_>; 3]) -> Vec<Expr<'_>> {
    let mean = x.mean_group();
    let root = ((x - mean).square().mean_group() + 1e-5).rsqrt();
    let (h, v) = ((x - mean) * root, gradient * weight);
    let result = root * (v - v.mean_group() - h * (v * h).mean_group());
    vec![(gradient * h).sum_over_groups(), result.cast(x.dtype()), gradient.sum_over_groups(), mean]
}

/// One stage of reductions, whose slots each row writes again.
fn shares([x, gradient, weight]: [Expr<'_>; 3]) -> Vec<Expr<'_>> {
    let share = x / x.abs().sum_group();
    vec![share * weight, (share * gradient).sum_over_groups()]
}

/// One stage, which runs twice for some rows.
fn norms([x, gradient, weight]: [Expr<'_>; 3]) -> Vec<Expr<'_>> {
    let (sum, factor) = x.sum_of_squares_group();
    let unit = x / (sum.sqrt() / factor);
    vec![unit * weight, (unit * gradient).sum_over_groups()]
}

/// Two stages, of which the second one runs twice for some rows.
fn deviations([x, gradient, weight]: [Expr<'_>; 3]) -> Vec<Expr<'_>> {
    let centred = x - x.mean_group();
    let (mean, factor) = centred.mean_of_squares_group();
    let h = centred * mean.rsqrt() * factor;
    vec![h * weight, (gradient * h).sum_over_groups(), (h * gradient).sum_group()]
}

/// No reduction of groups, and indices in the terms.
fn columns([x, gradient, _]: [Expr<'_>; 3]) -> Vec<Expr<'_>> {
    let second = x.index_in_group().eq(1).choose(x, 2.0);
    vec![(x * gradient).sum_over_groups(), second.sum_over_groups()]
}

/// Values of groups as terms.
fn of_groups([x, gradient, weight]: [Expr<'_>; 3]) -> Vec<Expr<'_>> {
    vec![x.max_group().sum_over_groups(), (x + gradient * weight).max_group()]
}

/// Elements of x by random words, times 5/4, or 0.
fn dropped(x: Expr<'_>) -> Expr<'_> {
    let graph = x.graph();
    let [word] = graph.random(DType::U32, graph.number(7u64, DType::U64), graph.number(5u64, DType::U64));
    word.ge(graph.number(1u64 << 30, DType::U32)).choose(x * 1.25, 0.0)
}

/// Random words and positions in terms, with values of groups and in an output.
fn drawn([x, gradient, weight]: [Expr<'_>; 3]) -> Vec<Expr<'_>> {
    let y = dropped(x);
    let centred = y - y.mean_group();
    let place = (x.graph().position() % 5i64).cast(x.dtype());
    vec![(gradient * centred).sum_over_groups(), centred * weight, (centred * place).sum_over_groups()]
}

/// Random words in terms alone, and without reductions of groups.
fn drawn_columns([x, gradient, _]: [Expr<'_>; 3]) -> Vec<Expr<'_>> {
    let graph = x.graph();
    let [long] = graph.random(DType::U64, graph.number(3u64, DType::U64), graph.number(9u64, DType::U64));
    let noise = long.normal().cast(x.dtype());
    vec![(dropped(x) * gradient).sum_over_groups(), noise.sum_over_groups(), (x + gradient).sum_over_groups()]
}

const PROGRAMS: [Program; 4] = [
    ("layer_norm_backward", layer_norm_backward),
    ("shares", shares),
    ("columns", columns),
    ("of_groups", of_groups),
];
const DRAWN: Program = ("drawn", drawn);
const DRAWN_COLUMNS: Program = ("drawn_columns", drawn_columns);

fn program((_, outputs): Program, dtype: DType) -> RowProgram {
    let graph = Graph::new();
    let inputs = [graph.input(dtype), graph.input(dtype), graph.input(dtype)];
    graph.row_program(&outputs(inputs)).expect("a program")
}

/// The layouts of a run: elements, values along a group, values of groups, and the axes of a group.
struct Groups {
    elements: Layout,
    along: Layout,
    groups: Layout,
    axes: &'static [isize],
    /// True if squares of some groups of x leave the range.
    is_changed: bool,
}

impl Groups {
    fn rows(rows: usize, length: usize) -> Groups {
        Groups {
            elements: contiguous(&[rows, length]),
            along: contiguous(&[1, length]),
            groups: contiguous(&[rows, 1]),
            axes: &[1],
            is_changed: false,
        }
    }

    fn inputs(&self, dtype: DType) -> [Array; 3] {
        let values = plain(dtype);
        let array = |layout, seed| Array::new(dtype, layout, &values, seed);
        let mut x = array(self.elements, 3);
        if self.is_changed {
            let length = self.along.count();
            row_squares::change(&mut x, |place| place / length);
        }
        [x, array(self.elements, 5), array(self.along, 7)]
    }

    fn output_layouts(&self, program: &RowProgram) -> Vec<Layout> {
        let written = contiguous(self.elements.shape());
        let layout = |at| match (program.is_per_group(at), program.is_over_groups(at)) {
            (true, _) => self.groups,
            (_, true) => self.along,
            _ => written,
        };
        (0..program.outputs().len()).map(layout).collect()
    }

    fn outputs(&self, program: &RowProgram) -> Vec<Array> {
        let outputs = program.outputs().into_iter().zip(self.output_layouts(program));
        outputs.map(|(dtype, layout)| Array::new(dtype, layout, &special(dtype)[..1], 0)).collect()
    }
}

/// Compares the kernels with the CPU. Returns the schedule.
fn check(given: Program, dtype: DType, groups: &Groups) -> String {
    check_kernels(given, dtype, groups, None)
}

/// As [`check`], with the kernel for `many` rows if given.
fn check_kernels(given: Program, dtype: DType, groups: &Groups, many: Option<usize>) -> String {
    let program = program(given, dtype);
    let inputs = groups.inputs(dtype);
    let before = groups.outputs(&program);
    let mut on_cpu = before.clone();
    on_host(&program, &inputs, groups.axes, &mut on_cpu);
    if let Ok(stream) = harness::device() {
        let mut found = before.clone();
        on_device(stream, &program, &inputs, groups.axes, None, &mut found).expect("a run on the device");
        assert_same(&format!("{} of {dtype} on the device", given.0), &on_cpu, &found, &before);
    }
    let layouts = |arrays: &[Array]| arrays.iter().map(|array| array.layout).collect::<Vec<_>>();
    let mut plan =
        program.explain(&layouts(&inputs), groups.axes, &layouts(&before), (9, 0)).expect("a plan");
    if let Some(rows) = many {
        plan = of_few_rows(&program, groups, rows, plan);
    }
    // Warps of a cluster take turns in the second order, which finds slots that are written too early.
    let clusters = plan
        .kernels
        .iter()
        .any(|kernel| matches!(&kernel.launches, RowLaunches::Rows(launch) if launch.cluster > 1));
    let schedules = [Schedule::IN_ORDER, Schedule { resident: 1, seed: Some(3) }];
    for schedule in &schedules[..if clusters { 2 } else { 1 }] {
        let mut found = before.clone();
        run_plan(&plan, (&inputs, None), &mut found, *schedule);
        let what = format!("{} of {dtype} in {:?}, {}", given.0, groups.elements, plan.schedule);
        assert_same(&what, &on_cpu, &found, &before);
    }
    let texts = texts::of_rows(&plan);
    // A load with a predicate would hold its registers from row to row.
    if plan.schedule.contains("beside the next row") {
        let is_conditional = |line: &&str| line.starts_with('@') && line.contains("ld.shared.v");
        assert_eq!(texts[0].lines().find(is_conditional), None, "{}", plan.schedule);
    }
    texts::keep(&texts, groups.elements.count() > 1000);
    plan.schedule
}

/// Returns the plan of a run with the kernel of one of `many` rows, whose parameters only the number of rows changes.
fn of_few_rows(program: &RowProgram, groups: &Groups, many: usize, few: RowExplanation) -> RowExplanation {
    let [rows, length] = groups.elements.shape()[..] else { panic!("a matrix") };
    let large = Groups::rows(many, length);
    let inputs = [large.elements, large.elements, large.along];
    let outputs = large.output_layouts(program);
    let mut plan = program.explain(&inputs, large.axes, &outputs, (9, 0)).expect("a plan");
    plan.kernels.truncate(1);
    let RowLaunches::Rows(launch) = &mut plan.kernels[0].launches else { panic!("{}", plan.schedule) };
    let bytes = |words: [usize; 3]| -> Vec<u8> {
        words.iter().flat_map(|&word| (word as u32).to_le_bytes()).collect()
    };
    let wanted = bytes([length, many, many]);
    let at = launch.parameters.windows(12).position(|window| window == wanted).expect("the size of the run");
    launch.parameters[at..at + 12].copy_from_slice(&bytes([length, rows, rows]));
    let of_block = many.div_ceil(64).div_ceil((launch.blocks / launch.cluster) as usize);
    launch.blocks = rows.div_ceil(64).div_ceil(of_block) as u32 * launch.cluster;
    let folds = few.kernels.into_iter().filter(|kernel| kernel.name == "sum of all chunks");
    // The one kernel has no other temporary memory than the sums of chunks.
    plan.kernels.extend(folds.enumerate().map(|(sum, mut fold)| {
        fold.operands[0] = RowMemory::Temporary(sum);
        fold
    }));
    plan
}

/// Tests that always run.
pub fn always() -> Vec<Test> {
    let mut tests = Vec::new();
    let mut one = |name: &str, run: fn()| {
        tests.push(Test::new(format!("row_sums::{name}"), move || {
            run();
            Ok(())
        }));
    };
    one("the_order_is_that_of_the_definition", definition);
    one("kernels_have_the_bits_of_the_cpu", kernels);
    one("one_kernel_has_the_bits_of_two", fused);
    one("clusters_have_the_bits_of_the_cpu", clusters);
    one("sums_of_squares_leave_the_range", squares);
    one("long_terms_are_stored", long_terms);
    one("layouts_do_not_change_the_order", layouts);
    one("wrong_uses_are_refused", refused);
    tests
}

pub fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|word| f32::from_le_bytes(word.try_into().expect("4 bytes"))).collect()
}

fn definition() {
    let program = program(PROGRAMS[2], DType::F32);
    for (rows, length) in [(1, 3), (63, 5), (64, 1), (65, 7), (1000, 33)] {
        let groups = Groups::rows(rows, length);
        let inputs = groups.inputs(DType::F32);
        let mut outputs = groups.outputs(&program);
        on_host(&program, &inputs, groups.axes, &mut outputs);
        let [x, gradient] = [0, 1].map(|at: usize| floats(&inputs[at].bytes));
        let found: Vec<f32> = floats(&outputs[0].bytes);
        for (column, found) in found.iter().take(length).enumerate() {
            let of_chunk = |chunk: usize| {
                let rows = chunk * 64..rows.min(chunk * 64 + 64);
                rows.map(|row| row * length + column).fold(-0.0f32, |sum, at| sum + x[at] * gradient[at])
            };
            // Fewer than 256 chunks have a lane each: the lower half of the lanes adds the upper one, again and again.
            let mut chunks: Vec<f32> = (0..rows.div_ceil(64)).map(of_chunk).collect();
            chunks.resize(256, -0.0);
            while chunks.len() > 1 {
                let upper = chunks.split_off(chunks.len() / 2);
                chunks.iter_mut().zip(upper).for_each(|(low, high)| *low += high);
            }
            assert_eq!(found.to_bits(), chunks[0].to_bits(), "column {column} of {rows} rows");
        }
    }
}

fn kernels() {
    for (rows, length) in [(1, 1), (63, 8), (64, 31), (65, 260), (1000, 3)] {
        for given in PROGRAMS {
            check(given, DType::F32, &Groups::rows(rows, length));
        }
    }
    for (rows, length) in [(1, 1), (65, 12), (130, 3)] {
        for given in [DRAWN, DRAWN_COLUMNS] {
            check(given, DType::F32, &Groups::rows(rows, length));
        }
    }
    check(DRAWN, DType::BF16, &Groups::rows(3, 40));
    check(PROGRAMS[0], DType::BF16, &Groups::rows(65, 40));
    check(PROGRAMS[1], DType::F64, &Groups::rows(65, 9));
}

/// The kernel for many rows: a part of a warp, a warp with a tail, and a block of two warps.
fn fused() {
    const MANY: usize = 1 << 16;
    let (both, one, drawn) = (&PROGRAMS[..2], &PROGRAMS[1..2], &[DRAWN][..]);
    for (rows, length, dtype, programs) in [
        (1, 4, DType::F32, both),
        (64, 4, DType::BF16, both),
        (200, 4, DType::F32, both),
        (65, 9, DType::F64, both),
        (63, 40, DType::F32, both),
        (65, 256, DType::BF16, one),
        (65, 1030, DType::F32, one),
        (130, 4, DType::F32, drawn),
        (3, 40, DType::BF16, drawn),
        (2, 300, DType::F32, drawn),
    ] {
        for &given in programs {
            let schedule = check_kernels(given, dtype, &Groups::rows(rows, length), Some(MANY));
            assert!(schedule.starts_with("one kernel and the sums of chunks"), "{schedule}");
        }
    }
}

/// Rows of clusters: whole slices, slices of which one warp has no segment, and a last segment with a tail.
fn clusters() {
    const MANY: usize = 1 << 14;
    let sizes = [
        (2, 8192, DType::BF16, PROGRAMS[0], "a cluster of 2 blocks of 4 warps"),
        (3, 5000, DType::F32, PROGRAMS[0], "a cluster of 2 blocks of 3 warps"),
        (2, 9224, DType::BF16, PROGRAMS[1], "a cluster of 4 blocks of 3 warps"),
        (1, 16392, DType::F32, PROGRAMS[1], "a cluster of 8 blocks of 3 warps"),
    ];
    for (rows, length, dtype, given, of) in sizes {
        let schedule = check_kernels(given, dtype, &Groups::rows(rows, length), Some(MANY));
        assert!(schedule.starts_with(&format!("one kernel and the sums of chunks: {of}")), "{schedule}");
    }
}

/// A part of a warp, a warp, a block, and clusters, with rows of every change, several in turn for each of them.
fn squares() {
    const MANY: usize = 1 << 16;
    for (rows, length, dtype, many) in [
        (200, 4, DType::F32, MANY),
        (65, 9, DType::F64, MANY),
        (65, 256, DType::BF16, MANY),
        (65, 1030, DType::F32, MANY),
        (9, 5000, DType::F32, 1 << 14),
        (9, 9224, DType::BF16, 1 << 14),
    ] {
        for given in [("norms", norms), ("deviations", deviations)] as [Program; 2] {
            let groups = Groups { is_changed: true, ..Groups::rows(rows, length) };
            let schedule = check_kernels(given, dtype, &groups, Some(many));
            assert!(schedule.starts_with("one kernel and the sums of chunks"), "{schedule}");
        }
    }
}

/// Indices of elements, values of groups and random words in terms of too many instructions for the kernel of the sums.
fn deep([x, _, _]: [Expr<'_>; 3]) -> Vec<Expr<'_>> {
    let index = x.index_in_group().cast(x.dtype());
    let term = (0..100).fold(x + index + x.max_group(), |deep, _| deep.tan());
    vec![term.sum_over_groups(), dropped(x).sum_over_groups()]
}

fn long_terms() {
    let graph = Graph::new();
    let outputs = deep([graph.input(DType::F32), graph.input(DType::F32), graph.input(DType::F32)]);
    let groups = Groups::rows(65, 8);
    let layouts = [groups.elements, groups.elements, groups.along];
    let program = graph.row_program(&outputs).expect("a program");
    let plan = program.explain(&layouts, groups.axes, &[groups.along; 2], (9, 0)).expect("a plan");
    assert!(plan.kernels.iter().any(|kernel| kernel.name == "terms of the sums"), "{plan}");
    check(("long_terms", deep), DType::F32, &groups);
}

fn layouts() {
    let view = |layout: selvedge::Result<Layout>| layout.expect("a view");
    let groups = |elements, groups: &[usize], along: &[usize], axes| Groups {
        elements,
        groups: contiguous(groups),
        along: contiguous(along),
        axes,
        is_changed: false,
    };
    let transposed = view(contiguous(&[30, 3, 8]).transpose(0, 1));
    let all = [
        groups(transposed, &[3, 30, 1], &[1, 1, 8], &[2]),
        groups(contiguous(&[3, 30, 8]), &[3, 30, 1], &[1, 1, 8], &[2]),
        groups(contiguous(&[4, 70, 3]), &[1, 70, 1], &[4, 1, 3], &[0, -1]),
        groups(view(contiguous(&[20, 70]).transpose(0, 1)), &[70, 1], &[1, 20], &[1]),
        groups(contiguous(&[5, 20]), &[1, 1], &[5, 20], &[0, 1]),
    ];
    for groups in &all {
        for dtype in [DType::F32, DType::BF16] {
            check(("products", |[x, gradient, _]| vec![(x * gradient).sum_over_groups()]), dtype, groups);
            check(DRAWN_COLUMNS, dtype, groups);
        }
    }
}

fn refused() {
    let graph = Graph::new();
    let (x, index) = (graph.input(DType::F32), graph.input(DType::I32));
    let sum = x.sum_over_groups();
    for (outputs, reason) in [
        (vec![sum + 1.0], "a sum over groups as an operand"),
        (vec![sum.sum_group()], "a sum over groups as an operand"),
        (vec![graph.number(1.0, DType::F32).sum_over_groups()], "a sum over groups of numbers"),
    ] {
        let found = graph.row_program(&outputs).map(drop).expect_err("an error").to_string();
        assert!(found.contains(reason), "{found}");
    }
    assert!(graph.expression(&[sum]).is_err());
    let found = graph.row_program(&[index.sum_over_groups()]).map(drop).expect_err("an error").to_string();
    assert!(found.contains("sum_over_groups") && found.contains("i32"), "{found}");
}
