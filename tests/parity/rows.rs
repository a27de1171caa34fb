//! Row programs in one kernel: the text in the interpreter against the CPU bit for bit, for every schedule, dtype of
//! floats and length, and on a device if there is one.

use selvedge::fuse::{Expr, Graph, HostInput, HostOutput, RowLaunches, RowMemory, RowProgram};
use selvedge::types::{DType, Layout};

use super::arrays::{Array, assert_same};
use super::harness;
use super::reductions::{contiguous, plain};
use super::row_runs::{as_ptx, check_faults, on_device, on_host};
use super::texts;
use super::value::special;
use crate::common::suite::Test;
use ptx_interpreter::{Kernel, Memory, Schedule};

const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];
const LENGTHS: [usize; 16] = [1, 2, 31, 32, 33, 127, 128, 129, 256, 1000, 1001, 1024, 1025, 2050, 4096, 4097];
/// The lengths whose kernels are assembled by `scripts/check_fuse.py`, one for each kind of schedule: these texts are long.
const ASSEMBLED: [usize; 4] = [33, 1000, 1001, 4097];
/// Lengths of rows that do not fit registers.
const LONG: [usize; 6] = [33792, 33794, 40000, 50257, 65536, 131072];

type Outputs<'g> = Vec<Expr<'g>>;

/// A name, the inputs beside the elements (true for one value per group, false for one along the group), and the
/// outputs.
pub type Program = (&'static str, &'static [bool], for<'g> fn(Expr<'g>, &[Expr<'g>]) -> Outputs<'g>);

fn softmax<'g>(x: Expr<'g>, _: &[Expr<'g>]) -> Outputs<'g> {
    let powers = (x - x.max_group()).exp();
    vec![powers * powers.sum_group().reciprocal()]
}

fn log_softmax<'g>(x: Expr<'g>, _: &[Expr<'g>]) -> Outputs<'g> {
    let shifted = x - x.max_group();
    vec![shifted - shifted.exp().sum_group().log()]
}

pub fn layer_norm<'g>(x: Expr<'g>, others: &[Expr<'g>]) -> Outputs<'g> {
    let centred = x - x.mean_group();
    let variance = centred.square().mean_group();
    vec![centred * (variance + 1e-5).rsqrt() * others[0] + others[1], variance]
}

fn rms_norm<'g>(x: Expr<'g>, others: &[Expr<'g>]) -> Outputs<'g> {
    vec![x * (x.square().mean_group() + 1e-5).rsqrt() * others[0]]
}

fn standardize<'g>(x: Expr<'g>, _: &[Expr<'g>]) -> Outputs<'g> {
    let centred = x - x.mean_group();
    vec![centred / centred.square().mean_group().sqrt()]
}

/// Two reductions that share a barrier, one that needs both, an index, the element there, tests, and outputs of other dtypes.
fn several<'g>(x: Expr<'g>, others: &[Expr<'g>]) -> Outputs<'g> {
    let (low, high) = (x.min_group(), x.max_group());
    let scaled = (x - low) / (high - low + others[0]);
    let total = scaled.sum_group();
    let place = scaled.argmax_group();
    vec![
        scaled / total,
        x.ge(others[0]).cast(DType::I8),
        total,
        place + 1,
        x.gt(2.0).any_group(),
        (x * 0.5).prod_group(),
        x.at_group(place),
        x.index_in_group().eq(place),
    ]
}

/// With gradients x · others[1] of the result.
pub fn layer_norm_backward<'g>(x: Expr<'g>, others: &[Expr<'g>]) -> Outputs<'g> {
    let gradient = x * others[1];
    let mean = x.mean_group();
    let root = ((x - mean).square().mean_group() + 1e-5).rsqrt();
    let (h, v) = ((x - mean) * root, gradient * others[0]);
    vec![root * (v - v.mean_group() - h * (v * h).mean_group()), mean, root]
}

/// With the smallest element as the label.
fn cross_entropy<'g>(x: Expr<'g>, _: &[Expr<'g>]) -> Outputs<'g> {
    let label = x.argmin_group();
    let largest = x.max_group();
    let powers = (x - largest).exp();
    let total = powers.sum_group();
    let p = powers / total;
    vec![total.log() - (x.at_group(label) - largest), x.index_in_group().eq(label).choose(p - 1.0, p)]
}

/// Values of f16 and bf16 that casts round between operations computed in f32.
fn narrow_casts<'g>(x: Expr<'g>, _: &[Expr<'g>]) -> Outputs<'g> {
    let shares = x / x.max_group();
    let mut outputs = Vec::new();
    for dtype in [DType::F16, DType::BF16] {
        let square = (shares.cast(dtype) * shares.cast(dtype)).cast(dtype);
        outputs.push((square.cast(DType::F32) + x).sum_group());
        outputs.push(square.cast(DType::F32) - shares);
    }
    outputs
}

/// Long stages that read values which another one keeps, the last one among them.
fn repeated<'g>(x: Expr<'g>, _: &[Expr<'g>]) -> Outputs<'g> {
    let powers = (x - x.max_group()).exp();
    let total = (powers - powers.mean_group()).exp().sum_group();
    vec![(powers * total - total).exp()]
}

pub const PROGRAMS: [Program; 10] = [
    ("softmax", &[], softmax),
    ("log_softmax", &[], log_softmax),
    ("layer_norm", &[false, false], layer_norm),
    ("rms_norm", &[false], rms_norm),
    ("standardize", &[], standardize),
    ("several", &[true], several),
    ("layer_norm_backward", &[false, false], layer_norm_backward),
    ("cross_entropy", &[], cross_entropy),
    ("narrow_casts", &[], narrow_casts),
    ("repeated", &[], repeated),
];

pub fn program((_, others, outputs): Program, dtype: DType) -> RowProgram {
    let graph = Graph::new();
    let x = graph.input(dtype);
    let others: Vec<Expr<'_>> = others.iter().map(|_| graph.input(dtype)).collect();
    graph.row_program(&outputs(x, &others)).expect("a program")
}

/// A layout of rows, its groups, and the layouts of values per group and along a group.
pub struct Rows {
    pub elements: Layout,
    /// The layout of outputs per element.
    pub written: Layout,
    pub axes: &'static [isize],
    pub groups: Layout,
    pub along: Layout,
}

impl Rows {
    pub fn contiguous(rows: usize, length: usize) -> Rows {
        let elements = contiguous(&[rows, length]);
        Rows {
            elements,
            written: elements,
            axes: &[1],
            groups: contiguous(&[rows, 1]),
            along: contiguous(&[length]),
        }
    }
}

pub fn operands(
    program: &RowProgram,
    given: Program,
    rows: &Rows,
    is_special: bool,
) -> (Vec<Array>, Vec<Array>) {
    let dtype = program.inputs()[0];
    let values = if is_special { special(dtype) } else { plain(dtype) };
    let mut inputs = vec![Array::new(dtype, rows.elements, &values, 3)];
    for (at, &per_group) in given.1.iter().enumerate() {
        let layout = if per_group { rows.groups } else { rows.along };
        inputs.push(Array::new(dtype, layout, &plain(dtype), 5 + at));
    }
    let outputs = program.outputs().into_iter().enumerate().map(|(at, dtype)| {
        let layout = if program.is_per_group(at) { rows.groups } else { rows.written };
        Array::new(dtype, layout, &special(dtype)[..1], 0)
    });
    (inputs, outputs.collect())
}

/// Checks the kernel of a program against the CPU, and that its schedule is the one that these words name.
fn check(given: Program, dtype: DType, rows: &Rows, schedule: &str) {
    check_values(given, dtype, rows, schedule, &[false, true]);
}

/// Checks plain values, special ones, or both.
fn check_values(given: Program, dtype: DType, rows: &Rows, schedule: &str, special: &[bool]) {
    check_on(given, dtype, rows, schedule, special, &[(9, 0), (7, 5)]);
}

/// Checks some values for devices of these compute capabilities; all but the first for bf16 only.
pub fn check_on(
    given: Program,
    dtype: DType,
    rows: &Rows,
    schedule: &str,
    special: &[bool],
    capabilities: &[(i32, i32)],
) {
    let program = program(given, dtype);
    for &is_special in special {
        let (inputs, before) = operands(&program, given, rows, is_special);
        let mut on_cpu = before.clone();
        on_host(&program, &inputs, rows.axes, &mut on_cpu);
        if let Ok(stream) = harness::device() {
            let mut found = before.clone();
            on_device(stream, &program, &inputs, rows.axes, None, &mut found).expect("a run on the device");
            assert_same(&format!("{} of {dtype} on the device", given.0), &on_cpu, &found, &before);
        }
        for &capability in capabilities {
            let mut found = before.clone();
            let (plan, text) = as_ptx(
                &program,
                (&inputs, rows.axes, None),
                &mut found,
                (capability, Schedule::IN_ORDER),
                &|text| text,
            );
            assert!(plan.contains(schedule), "{plan}, not {schedule}");
            let what = format!("{} of {dtype} in {:?}, {plan}", given.0, rows.elements);
            assert_same(&what, &on_cpu, &found, &before);
            let length = rows.elements.shape().last().copied().unwrap_or(0);
            texts::keep(&[text], !is_special && (ASSEMBLED.contains(&length) || !LENGTHS.contains(&length)));
            if dtype != DType::BF16 {
                break;
            }
        }
    }
}

pub fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    for given in PROGRAMS {
        for dtype in FLOATS {
            for length in LENGTHS {
                tests.push(Test::new(format!("rows::{}::{dtype}::of_{length}", given.0), move || {
                    check(given, dtype, &Rows::contiguous(3, length), "");
                    Ok(())
                }));
            }
        }
    }
    for (name, given) in [("softmax", PROGRAMS[0]), ("layer_norm", PROGRAMS[2]), ("rms_norm", PROGRAMS[3])] {
        for dtype in [DType::F32, DType::BF16] {
            for length in LONG {
                tests.push(Test::new(format!("rows::long::{name}::{dtype}::of_{length}"), move || {
                    check_long(given, dtype, length);
                    Ok(())
                }));
            }
        }
    }
    tests
}

/// Checks long rows for the new devices and the schedule that `long_schedule` says.
fn check_long(given: Program, dtype: DType, length: usize) {
    let schedule = long_schedule(given.0, dtype, length);
    // Fewer blocks would run as several kernels.
    let rows = if schedule.starts_with("a block") { 16 } else { 8 };
    check_on(given, dtype, &Rows::contiguous(rows, length), schedule, &[false], &[(9, 0)]);
}

/// Returns the schedule of long rows on compute capability 9.0.
fn long_schedule(program: &str, dtype: DType, length: usize) -> &'static str {
    // A softmax keeps exponentials in f32.
    match (dtype, program, length) {
        (DType::BF16, "layer_norm" | "rms_norm", 50257) => "a block of",
        (DType::BF16, "softmax", _) | (_, _, 131072) => "a cluster of 8 blocks of",
        _ => "a cluster of 4 blocks of",
    }
}

/// Tests that always run.
pub fn always() -> Vec<Test> {
    let mut tests = Vec::new();
    let mut one = |name: &str, run: fn()| tests.push(Test::of(format!("rows::{name}"), run));
    one("schedules", schedules);
    one("the_schedule_depends_on_the_device", devices);
    one("long_stages_are_loops", long_stages);
    one("layouts", layouts);
    one("faults_are_found", faults);
    one("several_kernels_for_a_reason", several_kernels);
    one("a_wrong_index_is_reported", reports);
    tests
}

fn schedules() {
    for (rows, length, schedule) in [
        (37, 8, "2 threads for each row, in registers"),
        (9, 256, "a warp for each row, in registers; 8 rows a block"),
        (3, 1024, "a warp for each row, in registers"),
        (2, 4096, "a block of 4 warps for each row, in registers"),
        (2, 4097, "a block of 5 warps for each row, in shared memory"),
    ] {
        check(PROGRAMS[2], DType::F32, &Rows::contiguous(rows, length), schedule);
    }
    // The last warps have no segment.
    for (given, length, blocks) in [(0, 16640, 4), (0, 20480, 4), (1, 16640, 2)] {
        let schedule = format!("a cluster of {blocks} blocks of 5 warps for each row, in shared memory");
        let rows = Rows::contiguous(2, length);
        check_on(PROGRAMS[given], DType::BF16, &rows, &schedule, &[false, true], &[(9, 0)]);
    }
    let rows = Rows::contiguous(1, 20000);
    let schedule = "a block of 20 warps for each row, in registers";
    check_on(PROGRAMS[0], DType::BF16, &rows, schedule, &[false, true], &[(8, 0), (7, 5)]);
    for given in [PROGRAMS[0], PROGRAMS[3]] {
        let schedule = "a block of 32 warps for each row, in registers";
        check_values(given, DType::F32, &Rows::contiguous(1, 32768), schedule, &[false]);
    }
    let schedule = "a cluster of 4 blocks of 8 warps for each row, in shared memory";
    check(PROGRAMS[0], DType::F64, &Rows::contiguous(1, 30000), schedule);
    for (length, capability, schedule) in [
        (20001, (9, 0), "a cluster of 4 blocks of 5 warps for each row, in shared memory"),
        (20001, (7, 5), "a block of 10 warps for each row, in shared memory"),
    ] {
        let rows = Rows::contiguous(1, length);
        check_on(PROGRAMS[0], DType::BF16, &rows, schedule, &[false], &[capability]);
    }
}

/// The schedule, the times that the elements are read, and the bytes of dynamic shared memory.
fn devices() {
    let (softmax, norm) = (PROGRAMS[0], PROGRAMS[3]);
    for (given, dtype, length, capability, schedule, reads, shared) in [
        (softmax, DType::F32, 65536, (9, 0), "a cluster of 4 blocks of 16 warps", 1, 64 << 10),
        (softmax, DType::F32, 65536, (12, 0), "a cluster of 4 blocks of 16 warps", 1, 64 << 10),
        (softmax, DType::F32, 65536, (8, 0), "a block of 16 warps for each row, that each stage", 3, 0),
        (softmax, DType::F32, 262144, (9, 0), "a cluster of 8 blocks of 16 warps", 1, 128 << 10),
        (softmax, DType::F32, 262144, (12, 0), "a block of 16 warps for each row, that each stage", 3, 0),
        (softmax, DType::F32, 1 << 19, (9, 0), "a block of 16 warps for each row, that each stage", 3, 0),
        (norm, DType::BF16, 40960, (9, 0), "a cluster of 4 blocks of 5 warps for each row", 1, 20 << 10),
        (norm, DType::BF16, 40960, (8, 0), "a block of 14 warps for each row, in shared", 1, 84 << 10),
        (norm, DType::BF16, 40960, (7, 5), "a block of 16 warps for each row, that each stage", 2, 0),
    ] {
        let program = program(given, dtype);
        let rows = Rows::contiguous(16, length);
        let inputs = [vec![rows.elements], vec![rows.along; given.1.len()]].concat();
        let plan = program.explain(&inputs, rows.axes, &[rows.elements], capability).expect("a plan");
        assert!(plan.schedule.contains(schedule), "{}, not {schedule}", plan.schedule);
        let elements = length * (16 * reads + given.1.len());
        assert_eq!(plan.bytes_read(), elements * dtype.size(), "{}", plan.schedule);
        let RowLaunches::Rows(launch) = &plan.kernels[0].launches else { panic!("{}", plan.schedule) };
        assert_eq!(launch.shared, shared, "{}", plan.schedule);
        assert_eq!(launch.blocks, 16 * launch.cluster);
    }
}

/// The loops in the text of stages in registers, and the most instructions of the text.
fn long_stages() {
    let [softmax, log_softmax, norm, repeated] = [0, 1, 3, 9].map(|at| PROGRAMS[at]);
    for (given, dtype, length, loops, most) in [
        (softmax, DType::F32, 512, 0, 500),
        (softmax, DType::F32, 1024, 1, 600),
        (softmax, DType::F32, 4096, 1, 650),
        (softmax, DType::BF16, 1024, 1, 750),
        (softmax, DType::F64, 1024, 1, 700),
        (log_softmax, DType::F32, 1024, 1, 700),
        (log_softmax, DType::BF16, 1024, 1, 850),
        (norm, DType::F32, 1024, 0, 500),
        (repeated, DType::F32, 512, 2, 1100),
    ] {
        let program = program(given, dtype);
        let rows = Rows::contiguous(16, length);
        let inputs = [vec![rows.elements], vec![rows.along; given.1.len()]].concat();
        let plan = program.explain(&inputs, rows.axes, &[rows.elements], (9, 0));
        let plan = plan.expect("a plan");
        let RowLaunches::Rows(launch) = &plan.kernels[0].launches else { panic!("{}", plan.schedule) };
        let what = format!("{} of {length} {dtype}, {}", given.0, plan.schedule);
        assert_eq!(launch.ptx.matches("\n$round_").count(), loops, "{what}");
        let lines = launch.ptx.lines().count();
        assert!(lines < most, "{what}: {lines} lines");
    }
    for dtype in FLOATS {
        for length in [510, 512] {
            check(repeated, dtype, &Rows::contiguous(3, length), "in registers");
        }
    }
}

fn layouts() {
    let view = |layout: selvedge::Result<Layout>| layout.expect("a view");
    let shifted = |sizes: &[usize], strides: &[isize], offset| view(Layout::strided(sizes, strides, offset));
    let all = [
        // Misaligned, and rows a gap apart.
        Rows { elements: shifted(&[3, 64], &[64, 1], 1), ..Rows::contiguous(3, 64) },
        Rows { written: shifted(&[3, 64], &[65, 1], 0), ..Rows::contiguous(3, 64) },
        Rows { elements: shifted(&[3, 2048], &[2052, 1], 4), ..Rows::contiguous(3, 2048) },
        // Broadcast: all rows are one, or all elements of a row.
        Rows {
            elements: view(contiguous(&[1, 100]).expand(contiguous(&[4, 100]).shape())),
            ..Rows::contiguous(4, 100)
        },
        Rows {
            elements: view(contiguous(&[4, 1]).expand(contiguous(&[4, 100]).shape())),
            ..Rows::contiguous(4, 100)
        },
        Rows { elements: view(contiguous(&[3, 50]).flip(&[1])), ..Rows::contiguous(3, 50) },
        // Groups of two axes, and of two axes around one of groups.
        Rows {
            elements: contiguous(&[3, 5, 24]),
            written: contiguous(&[3, 5, 24]),
            axes: &[1, 2],
            groups: contiguous(&[3, 1, 1]),
            along: contiguous(&[5, 24]),
        },
        Rows {
            elements: contiguous(&[5, 3, 24]),
            written: contiguous(&[5, 3, 24]),
            axes: &[0, -1],
            groups: contiguous(&[1, 3, 1]),
            along: contiguous(&[5, 1, 24]),
        },
        Rows { axes: &[0, 1], groups: contiguous(&[1, 1]), ..Rows::contiguous(3, 700) },
    ];
    for rows in &all {
        for given in [PROGRAMS[0], PROGRAMS[2], PROGRAMS[5]] {
            for dtype in [DType::BF16, DType::F32] {
                check(given, dtype, rows, "");
            }
        }
    }
}

/// Injects faults into the text, which the comparison must find.
fn faults() {
    let rows = Rows::contiguous(2, 4000);
    let program = program(PROGRAMS[2], DType::F32);
    let (inputs, before) = operands(&program, PROGRAMS[2], &rows, false);
    let faults = [
        ("another partner", ", 16, 31, -1;", ", 15, 31, -1;"),
        ("another identity", "0f80000000", "0f3F800000"),
        ("elements left out", ", 896, %", ", 8960, %"),
        ("another lane's value", "shfl.sync.bfly.b32", "shfl.sync.down.b32"),
    ];
    check_faults(&program, &inputs, rows.axes, &before, &faults);
    // A cluster, whose last warps have no segment.
    let rows = Rows::contiguous(2, 16640);
    let program = self::program(PROGRAMS[0], DType::BF16);
    let (inputs, before) = operands(&program, PROGRAMS[0], &rows, false);
    let faults = [
        ("barriers that other blocks may not see", "fence.mbarrier_init.release.cluster;\n", ""),
        ("values that are not counted", "max.u32", "min.u32"),
        ("a wait for another phase", "], 0;\n@!", "], 1;\n@!"),
        ("a store without the other blocks", "barrier.cluster.wait.aligned;\n", ""),
        ("a value of another block", "and.b32 %r4, %r1, 3;", "and.b32 %r4, %r1, 1;"),
    ];
    check_faults(&program, &inputs, rows.axes, &before, &faults);
}

/// The elements of rows at an index of each, by one kernel and by the check of several kernels.
fn reports() {
    let graph = Graph::new();
    let (x, index) = (graph.input(DType::F32), graph.input(DType::I32));
    let program = graph.row_program(&[x.at_group(index)]).expect("a program");
    let (rows, length) = (9, 40usize);
    let elements: Vec<f32> = (0..rows * length).map(|at| at as f32).collect();
    let good = [0i32, 39, 5, 7, 11, 13, 17, 19, 23];
    // An index for each element of a row is no index of the row.
    let all = vec![0i32; rows * length];
    let layouts = [contiguous(&[rows, length]); 2];
    let column = contiguous(&[rows, 1]);
    let plan = program.explain(&layouts, &[1], &[column], (9, 0));
    assert!(plan.is_err(), "an index that differs within a row");
    let inputs = [HostInput::new(&elements, layouts[0]), HostInput::new(&all, layouts[1])];
    let inputs = inputs.map(|input| input.expect("an input"));
    let mut outputs = [0f32; 9];
    let output = HostOutput::new(&mut outputs, column).expect("an output");
    assert!(program.run_host(&inputs, &[], &[1], &mut [output]).is_err());
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    for (wrong, value) in [(None, 0), (Some(8), 40), (Some(3), -1), (Some(0), i32::MIN)] {
        let mut indices = good;
        if let Some(wrong) = wrong {
            indices[wrong] = value;
        }
        let (matrix, column) = (contiguous(&[rows, length]), contiguous(&[rows, 1]));
        let inputs = [HostInput::new(&elements, matrix), HostInput::new(&indices, column)];
        let mut chosen = vec![0f32; rows];
        let found = program.run_host(
            &inputs.map(|input| input.expect("an input")),
            &[],
            &[1],
            &mut [HostOutput::new(&mut chosen, column).expect("an output")],
        );
        let is_outside = matches!(
            found,
            Err(selvedge::Error::IndexOutOfRange { operation: "at_group", index, size: 40, .. })
                if index == i64::from(value)
        );
        assert_eq!(is_outside, wrong.is_some(), "{found:?}");
        // Rows are one kernel; the same elements as columns are several.
        for (layout, axis) in [(matrix, 1), (matrix.transpose(0, 1).expect("a view"), 0)] {
            let groups = if axis == 1 { column } else { contiguous(&[1, rows]) };
            let plan = program.explain(&[layout, groups], &[axis], &[groups], (9, 0)).expect("a plan");
            let one = match &plan.kernels[..] {
                [one] => one,
                all => all
                    .iter()
                    .find(|kernel| kernel.name == "check of the index of at_group")
                    .expect("a check"),
            };
            let (launch, code) = match &one.launches {
                RowLaunches::Rows(launch) => (launch, 16),
                RowLaunches::Check(launch) => (launch, 8),
                _ => panic!("{}", one.name),
            };
            let mut memory = Memory::default();
            let all: Vec<i64> = indices.iter().map(|&index| i64::from(index)).collect();
            let bytes = |index: &usize| match index {
                0 => bytemuck::cast_slice(&elements).to_vec(),
                _ => bytemuck::cast_slice(&indices).to_vec(),
            };
            let inputs = one.operands.iter().filter_map(|operand| match operand {
                RowMemory::Input(index) => Some(bytes(index)),
                _ => None,
            });
            let mut addresses: Vec<u64> = inputs.map(|bytes| memory.add(bytes)).collect();
            addresses.push(match code {
                16 => memory.add(vec![0; 4 * rows]),
                _ => memory.add(bytemuck::cast_slice(&all).to_vec()),
            });
            let report = memory.add(vec![0; 136]);
            let mut parameters: Vec<u8> =
                addresses.iter().flat_map(|address| address.to_le_bytes()).collect();
            let start = parameters.len() + launch.report.expect("a report");
            parameters.extend(&launch.parameters);
            parameters[start..start + 8].copy_from_slice(&report.to_le_bytes());
            parameters[start + code] = 77;
            Kernel::read(&launch.ptx).run(launch.blocks, launch.threads, &parameters, &mut memory);
            let found = memory.bytes(report);
            let wanted = match wrong {
                // Claimed and complete once, the code and no axis, the index, the size.
                Some(_) => [1 | 1 << 32, 77 | 0xffff_ffff << 32, i64::from(value) as u64, 40],
                None => [0; 4],
            };
            assert_eq!([0, 8, 16, 24].map(|at| word(found, at)), wanted, "{}", one.name);
            if code == 16 {
                let found: &[f32] =
                    bytemuck::cast_slice(memory.bytes(*addresses.last().expect("an address")));
                for (row, (&found, &index)) in found.iter().zip(&indices).enumerate() {
                    let wanted =
                        if wrong == Some(row) { 0.0 } else { elements[row * length + index as usize] };
                    assert_eq!(found, wanted, "row {row}");
                }
            }
        }
    }
}

fn several_kernels() {
    let softmax = program(PROGRAMS[0], DType::F32);
    for (sizes, axis, reason) in [
        (&[40000, 33][..], 0, "a group of strided elements has more than 8192"),
        (&[1 << 22], 0, "more than 2097152 elements"),
        (&[3, 40000], 1, "several blocks share each of few long groups"),
        (&[0, 4], 1, "no elements"),
    ] {
        let layout = contiguous(sizes);
        let plan = softmax.explain(&[layout], &[axis], &[layout], (9, 0)).expect("a plan");
        assert!(plan.schedule.contains(reason) && plan.kernels.len() == 3, "{}", plan.schedule);
        assert!(plan.to_string().starts_with(&plan.schedule));
    }
}
