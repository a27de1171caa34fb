//! Programs that exceed the limits of one expression: their values against the same operations one by one, on the CPU and
//! on a device if there is one, the words of `explain`, and its kernels in the interpreter against the CPU.

use selvedge::fuse::{Expr, Graph, RowExplanation, RowLaunches, RowProgram};
use selvedge::tensor::{Device, Fused, Tensor, fuse};
use selvedge::types::{DType, Layout};

use super::arrays::{Array, assert_same};
use super::harness;
use super::reductions::{contiguous, plain};
use super::row_runs::{on_device, on_host, run_plan, try_on_host};
use super::row_sums::floats;
use super::value::special;
use crate::common::suite::Test;
use ptx_interpreter::Schedule;

/// More inputs than an expression may have operands.
const MANY: usize = 70;
/// Tangents of more than 20000 instructions together.
const TANGENTS: usize = 400;
const OPERANDS: &str = "because a phase has more than 64 operands";
const INSTRUCTIONS: &str = "because a phase has more than 20000 instructions";

pub fn always() -> Vec<Test> {
    let test = |name: &str, run: fn()| {
        Test::new(format!("rows::sections::{name}"), move || {
            run();
            Ok(())
        })
    };
    vec![
        test("many_operands", operands),
        test("many_operands_without_reductions", elementwise),
        test("many_instructions", instructions),
        test("many_literals_of_groups", literals),
        test("many_outputs_in_place", outputs),
        test("kernels_have_the_bits_of_the_cpu", kernels),
        test("terms_of_sums_over_groups", terms_of_sums),
        test("a_small_program_is_not_divided", small),
    ]
}

/// Returns the CPU, and the device if there is one.
fn devices() -> Vec<Device> {
    let mut all = vec![Device::cpu()];
    if harness::device().is_ok() {
        all.push(Device::best());
    }
    all
}

fn tensors(count: usize, dtype: DType, device: &Device) -> Vec<Tensor> {
    let tensor = |at: usize| {
        let numbers = (0..99).map(|k| ((k * 37 + at * 11) % 101) as f64 / 64.0 - 0.75);
        Tensor::from_vec(numbers.collect::<Vec<f64>>(), &[3, 33], device).expect("a tensor")
    };
    (0..count).map(|at| tensor(at).cast(dtype).expect("a cast")).collect()
}

fn bits(x: &Tensor) -> Vec<u64> {
    let numbers = x.cast(DType::F64).expect("a cast").to_vec::<f64>().expect("numbers");
    numbers.into_iter().map(f64::to_bits).collect()
}

/// Checks that a plan names the reason and several kernels, which have texts.
fn check_plan(plan: &RowExplanation, reason: &str) {
    assert!(plan.schedule.contains(reason), "{}", plan.schedule);
    assert!(plan.schedule.starts_with(&format!("{} kernels, ", plan.kernels.len())), "{}", plan.schedule);
    let is_stored = |name: &str| name.contains(" intermediate values of each ");
    assert!(plan.kernels.iter().any(|kernel| is_stored(&kernel.name)), "{:?}", plan.schedule);
    assert!(plan.temporary() > 0 && plan.to_string().starts_with(&plan.schedule));
    for kernel in &plan.kernels {
        let texts = match &kernel.launches {
            RowLaunches::Expression(explained) => explained.to_string(),
            RowLaunches::Reduction(explained) => explained.to_string(),
            RowLaunches::Rows(launch) | RowLaunches::Check(launch) => launch.ptx.clone(),
        };
        assert!(texts.contains(".visible .entry"), "{}", kernel.name);
    }
}

fn product_sum<'g>(x: &[Expr<'g>; MANY]) -> Expr<'g> {
    (2..MANY).fold(x[0] * x[1], |sum, at| sum + x[at] * x[at * 7 % MANY])
}

fn product_sum_by_steps(x: &[Tensor]) -> Tensor {
    let product = |at: usize, other: usize| fuse([&x[at], &x[other]], |[a, b]| a * b).expect("a product");
    (2..MANY).fold(product(0, 1), |sum, at| {
        fuse([&sum, &product(at, at * 7 % MANY)], |[a, b]| a + b).expect("a sum")
    })
}

fn operands() {
    let softmax = Fused::new(|x: [Expr<'_>; MANY]| {
        let sum = product_sum(&x);
        let powers = (sum - sum.max_group()).exp();
        powers / powers.sum_group()
    });
    for device in devices() {
        let x = tensors(MANY, DType::F32, &device);
        let given: [&Tensor; MANY] = std::array::from_fn(|at| &x[at]);
        check_plan(&softmax.explain_groups(given).expect("a plan"), OPERANDS);
        let sum = product_sum_by_steps(&x);
        let powers = fuse([&sum], |[sum]| (sum - sum.max_group()).exp()).expect("powers");
        let wanted = fuse([&powers], |[powers]| powers / powers.sum_group()).expect("a softmax");
        assert_eq!(bits(&softmax.run(given).expect("a run")), bits(&wanted), "on {device}");
    }
}

fn elementwise() {
    let sum = Fused::new(|x: [Expr<'_>; MANY]| product_sum(&x));
    for device in devices() {
        for dtype in [DType::F16, DType::F32] {
            let x = tensors(MANY, dtype, &device);
            let given: [&Tensor; MANY] = std::array::from_fn(|at| &x[at]);
            let plan = sum.explain_groups(given).expect("a plan");
            check_plan(&plan, OPERANDS);
            assert!(sum.explain(given).expect_err("several kernels").to_string().contains("explain_groups"));
            let wanted = product_sum_by_steps(&x);
            assert_eq!(bits(&sum.run(given).expect("a run")), bits(&wanted), "{dtype} on {device}");
        }
    }
}

fn instructions() {
    let many = Fused::new(|[x, y]| {
        let deep = (0..TANGENTS).fold(x, |sum, _| sum.tan() * y);
        deep - deep.max_group()
    });
    for device in devices() {
        let x = tensors(2, DType::F64, &device);
        check_plan(&many.explain_groups([&x[0], &x[1]]).expect("a plan"), INSTRUCTIONS);
        let step = |sum: Tensor, _| fuse([&sum, &x[1]], |[sum, y]| sum.tan() * y).expect("a step");
        let deep = (0..TANGENTS).fold(fuse([&x[0]], |[x]| x * 1.0).expect("a copy"), step);
        let wanted = fuse([&deep], |[deep]| deep - deep.max_group()).expect("a difference");
        assert_eq!(bits(&many.run([&x[0], &x[1]]).expect("a run")), bits(&wanted), "on {device}");
    }
}

/// The literals of a step, which f32 holds.
fn step_numbers(step: usize) -> [f32; 2] {
    [1.0 + step as f32 / 128.0, step as f32 * 0.25]
}

/// Values of groups that depend on more literals than an expression may have, and random words beside them.
fn literals() {
    let scaled = Fused::new(|[x]| {
        let scale = (0..MANY).fold(x.sum_group(), |value, step| {
            let [factor, term] = step_numbers(step);
            value * factor - term
        });
        let graph = x.graph();
        let [word] = graph.random(DType::U32, graph.number(7u64, DType::U64), graph.number(5u64, DType::U64));
        word.ge(graph.number(1u64 << 30, DType::U32)).choose(x * scale, x * scale.max_group())
    });
    for device in devices() {
        let x = &tensors(1, DType::F32, &device)[0];
        let plan = scaled.explain_groups([x]).expect("a plan");
        check_plan(&plan, OPERANDS);
        assert!(plan.kernels.iter().any(|kernel| kernel.name.ends_with("intermediate values of each group")));
        // Sums keep their axis here, so that the next step broadcasts.
        let mut scale = fuse([x], |[x]| x * 0.0 + x.sum_group()).expect("sums");
        for step in 0..MANY {
            let [factor, term] = step_numbers(step);
            scale =
                fuse((&scale, factor, term), |[value, factor, term]| value * factor - term).expect("a step");
        }
        let wanted = fuse([x, &scale], |[x, scale]| {
            let graph = x.graph();
            let numbers = [7u64, 5].map(|number| graph.number(number, DType::U64));
            let [word] = graph.random(DType::U32, numbers[0], numbers[1]);
            word.ge(graph.number(1u64 << 30, DType::U32)).choose(x * scale, x * scale)
        });
        assert_eq!(bits(&scaled.run([x]).expect("a run")), bits(&wanted.expect("a product")), "on {device}");
    }
}

/// An input whose elements the first output replaces, while later expressions read it too.
fn outputs() {
    let graph = Graph::new();
    let x = graph.input(DType::F32);
    let mut all: Vec<Expr<'_>> = vec![x - x.max_group()];
    (1..MANY).for_each(|at| all.push(all[at - 1] + x));
    all.push(all[3]);
    let program = graph.row_program(&all).expect("a program");
    let layout = contiguous(&[3, 33]);
    let input = Array::new(DType::F32, layout, &plain(DType::F32), 3);
    let before: Vec<Array> =
        all.iter().map(|_| Array::new(DType::F32, layout, &plain(DType::F32)[..1], 0)).collect();
    let plan = program.explain(&[layout], &[1], &vec![layout; all.len()], (9, 0)).expect("a plan");
    assert!(plan.schedule.contains(OPERANDS), "{}", plan.schedule);
    let mut found = before.clone();
    try_on_host(&program, std::slice::from_ref(&input), &[1], None, &mut found).expect("a run");
    let mut in_place = before.clone();
    in_place[0] = input.clone();
    try_on_host(&program, std::slice::from_ref(&input), &[1], Some(0), &mut in_place)
        .expect("a run in place");
    assert_same("in place", &found, &in_place, &before);
    assert_eq!(found[MANY].bytes, found[3].bytes);
    let x = floats(&input.bytes);
    let found: Vec<Vec<f32>> = found.iter().map(|array| floats(&array.bytes)).collect();
    // The bytes end with a guard.
    for (row, x) in x[..99].chunks(33).enumerate() {
        let largest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        for (column, &element) in x.iter().enumerate() {
            let mut wanted = element - largest;
            for (at, array) in found[..MANY].iter().enumerate() {
                assert_eq!(array[row * 33 + column], wanted, "output {at}");
                wanted += element;
            }
        }
    }
}

/// Runs a program on the CPU, and compares the kernels of its plan, and a device if there is one. Returns the outputs and the
/// plan.
fn check_kernels(
    program: &RowProgram,
    inputs: &[Array],
    layouts: &[Layout],
    axes: &[isize],
) -> (Vec<Array>, RowExplanation) {
    let before = program.outputs().into_iter().zip(layouts);
    let before: Vec<Array> =
        before.map(|(dtype, &layout)| Array::new(dtype, layout, &special(dtype)[..1], 0)).collect();
    let of_inputs: Vec<Layout> = inputs.iter().map(|input| input.layout).collect();
    let plan = program.explain(&of_inputs, axes, layouts, (9, 0)).expect("a plan");
    let mut on_cpu = before.clone();
    on_host(program, inputs, axes, &mut on_cpu);
    let mut found = before.clone();
    run_plan(&plan, (inputs, None), &mut found, Schedule::IN_ORDER);
    assert_same(&plan.schedule, &on_cpu, &found, &before);
    if let Ok(stream) = harness::device() {
        let mut found = before.clone();
        on_device(stream, program, inputs, axes, None, &mut found).expect("a run on the device");
        assert_same("on the device", &on_cpu, &found, &before);
    }
    (on_cpu, plan)
}

/// Elements, values of groups and random words, as rows and as columns.
fn kernels() {
    for dtype in [DType::F32, DType::BF16] {
        let graph = Graph::new();
        let x: [Expr<'_>; MANY] = std::array::from_fn(|_| graph.input(dtype));
        let sum = product_sum(&x);
        let powers = (sum - sum.max_group()).exp();
        let total = powers.sum_group();
        let [word] = graph.random(DType::U32, graph.number(7u64, DType::U64), graph.number(5u64, DType::U64));
        let kept = word.ge(graph.number(1u64 << 30, DType::U32)).choose(powers / total, 0.0);
        let place = sum.argmax_group();
        let program = graph.row_program(&[kept.cast(dtype), total, place]).expect("a program");
        for (sizes, groups, axis) in [([5, 40], [5, 1], 1), ([37, 6], [1, 6], 0)] {
            let [layout, groups] = [sizes, groups].map(|sizes| contiguous(&sizes));
            let inputs: Vec<Array> =
                (0..MANY).map(|at| Array::new(dtype, layout, &plain(dtype), at * 3)).collect();
            let (_, plan) = check_kernels(&program, &inputs, &[layout, groups, groups], &[axis]);
            check_plan(&plan, OPERANDS);
        }
    }
}

/// Terms that exceed the limits together, which are stored, and more sums than an expression may have operands.
fn terms_of_sums() {
    let graph = Graph::new();
    let x: [Expr<'_>; MANY] = std::array::from_fn(|_| graph.input(DType::F32));
    let sum = product_sum(&x);
    let share = sum / sum.abs().sum_group();
    let largest = sum.max_group();
    let terms: Vec<Expr<'_>> = [share, largest].into_iter().chain(x.iter().map(|x| *x * share)).collect();
    let mut outputs: Vec<Expr<'_>> = terms.iter().map(|term| term.sum_over_groups()).collect();
    outputs.extend(&terms);
    let program = graph.row_program(&outputs).expect("a program");
    let [elements, groups, along] = [[70, 5], [70, 1], [1, 5]].map(|sizes| contiguous(&sizes));
    let mut layouts = vec![along; terms.len()];
    layouts.extend((0..terms.len()).map(|at| if at == 1 { groups } else { elements }));
    let inputs: Vec<Array> =
        (0..MANY).map(|at| Array::new(DType::F32, elements, &plain(DType::F32), at * 3)).collect();
    let (found, plan) = check_kernels(&program, &inputs, &layouts, &[1]);
    assert!(plan.schedule.contains(OPERANDS), "{}", plan.schedule);
    let (sums, terms) = found.split_at(terms.len());
    // A sum of a term that is an input.
    let graph = Graph::new();
    let one = graph.row_program(&[graph.input(DType::F32).sum_over_groups()]).expect("a sum");
    for (at, (sum, term)) in sums.iter().zip(terms).enumerate() {
        let expanded = term.layout.expand(elements.shape()).expect("a view");
        let input = Array { layout: expanded, ..term.clone() };
        let before = Array::new(DType::F32, along, &special(DType::F32)[..1], 0);
        let mut wanted = [before.clone()];
        on_host(&one, &[input], &[1], &mut wanted);
        assert_same(&format!("sum {at}"), &wanted, std::slice::from_ref(sum), &[before]);
    }
}

fn small() {
    let graph = Graph::new();
    let x = graph.input(DType::F32);
    let program = graph.row_program(&[x / x.sum_group()]).expect("a program");
    let layout = contiguous(&[3, 33]);
    let plan = program.explain(&[layout], &[1], &[layout], (9, 0)).expect("a plan");
    assert!(plan.schedule.starts_with("one kernel: "), "{}", plan.schedule);
}
