//! Random row programs over random dtypes, shapes, axes and layouts: the kernel's text in the interpreter against the CPU
//! bit for bit, the CPU's interpreter against its machine code, and each layout against contiguous rows. A failing case is
//! made smaller before it is printed.

mod case;

use std::panic::{AssertUnwindSafe, catch_unwind};

use selvedge::fuse::{Number, RowExplanation, RowProgram};

use super::arrays::{Array, assert_same};
use super::harness;
use super::reductions::plain;
use super::row_runs::{on_device_with, on_host_with, run_plan};
use super::texts;
use super::value::special;
use crate::common::suite::Test;
use case::{Case, Node, Order, Role, Variety};
use ptx_interpreter::Schedule;

/// The basic cases of the whole set.
const CASES: u64 = 480;
/// The extended cases of the whole set, with scalars, random words and sums over groups.
const EXTENDED: u64 = 360;

/// The operands of a run.
struct Operands {
    inputs: Vec<Array>,
    scalars: Vec<Number>,
    before: Vec<Array>,
    axes: Vec<isize>,
}

impl Operands {
    fn new(case: &Case, program: &RowProgram) -> Operands {
        let inputs = case.inputs.iter().enumerate().map(|(at, &(dtype, role, order))| {
            let values = if case.is_special { special(dtype) } else { plain(dtype) };
            Array::new(dtype, order.layout(&case.sizes_of(role)), &values, 3 + 5 * at)
        });
        let outputs = program.outputs().into_iter().zip(&case.outputs).enumerate();
        let outputs = outputs.map(|(at, (dtype, (_, order)))| {
            Array::new(dtype, order.layout(&case.sizes_of(role(program, at))), &special(dtype)[..1], 0)
        });
        let axes = case.axes.iter().map(|&axis| axis as isize).collect();
        let scalars = case.scalars();
        Operands { inputs: inputs.collect(), scalars, before: outputs.collect(), axes }
    }

    /// Returns the same elements as contiguous rows.
    fn as_rows(&self, case: &Case, program: &RowProgram) -> Operands {
        let rows = |array: &Array, role: Role| {
            let layout = array.layout.permute(&case.order_of_rows()).expect("a view");
            let values = array.elements(&layout);
            Array::new(array.dtype, case.as_rows(role), &values, 0)
        };
        let inputs = self.inputs.iter().zip(&case.inputs).map(|(array, (_, role, _))| rows(array, *role));
        let outputs = self.before.iter().enumerate().map(|(at, array)| {
            Array::new(array.dtype, case.as_rows(role(program, at)), &special(array.dtype)[..1], 0)
        });
        let scalars = self.scalars.clone();
        Operands { inputs: inputs.collect(), scalars, before: outputs.collect(), axes: vec![1] }
    }

    /// Returns the kernels for these layouts.
    fn plan(&self, program: &RowProgram, capability: (i32, i32)) -> RowExplanation {
        let layouts = |arrays: &[Array]| arrays.iter().map(|array| array.layout).collect::<Vec<_>>();
        let plan = program.explain(&layouts(&self.inputs), &self.axes, &layouts(&self.before), capability);
        plan.expect("a plan")
    }

    /// Compares the kernels in the interpreter with the CPU, and machine code on the CPU with its interpreter.
    fn check(&self, what: &str, case: &Case, keep: bool) -> Vec<Array> {
        let program = case.program().expect("a program");
        let mut on_cpu = self.before.clone();
        on_host_with(&program, (&self.inputs, &self.scalars), &self.axes, &mut on_cpu);
        // The first runs of few elements are interpreted.
        for _ in 0..3 {
            let mut again = self.before.clone();
            on_host_with(&program, (&self.inputs, &self.scalars), &self.axes, &mut again);
            assert_same(&format!("{what}, another run on the CPU"), &on_cpu, &again, &self.before);
        }
        if let Ok(stream) = harness::device() {
            let mut found = self.before.clone();
            on_device_with(stream, &program, (&self.inputs, &self.scalars), &self.axes, &mut found)
                .expect("a run on the device");
            assert_same(&format!("{what}, on the device"), &on_cpu, &found, &self.before);
        }
        let texts = texts::of_rows(&self.plan(&program, case.capability));
        // A plan has no scalars, and their values are parameters of the same kernels.
        let numbers = case.without_scalars().program().expect("a program");
        let plan = self.plan(&numbers, case.capability);
        assert!(texts == texts::of_rows(&plan), "{what}: kernels differ without scalars");
        let mut found = self.before.clone();
        run_plan(&plan, (&self.inputs, None), &mut found, Schedule::IN_ORDER);
        assert_same(&format!("{what}, {}", plan.schedule), &on_cpu, &found, &self.before);
        texts::keep_random(&texts, keep);
        on_cpu
    }
}

/// Returns the elements of an output.
fn role(program: &RowProgram, output: usize) -> Role {
    match (program.is_per_group(output), program.is_over_groups(output)) {
        (true, _) => Role::PerGroup,
        (_, true) => Role::AlongGroup,
        _ => Role::PerElement,
    }
}

/// Checks a case in its layouts and as contiguous rows.
fn check(case: &Case, keep: bool) {
    let program = case.program().expect("a program");
    let operands = Operands::new(case, &program);
    let rows = operands.as_rows(case, &program);
    let found = operands.check("the layouts of the case", case, keep);
    let wanted = rows.check("contiguous rows", case, false);
    if !case.has_positions_of_rows() {
        return;
    }
    let found: Vec<Array> = found
        .iter()
        .zip(&wanted)
        .map(|(found, wanted)| {
            let layout = found.layout.permute(&case.order_of_rows()).expect("a view");
            Array::new(found.dtype, wanted.layout, &found.elements(&layout), 0)
        })
        .collect();
    assert_same("the layouts of the case and contiguous rows", &wanted, &found, &rows.before);
}

/// Returns the message of a failing check.
fn failure(case: &Case) -> Option<String> {
    let caught = catch_unwind(AssertUnwindSafe(|| check(case, false))).err()?;
    let text = caught.downcast_ref::<String>().cloned();
    Some(text.or_else(|| caught.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
}

/// Returns cases that are a little smaller.
fn smaller(case: &Case) -> Vec<Case> {
    let mut found = Vec::new();
    let mut add = |change: &dyn Fn(&mut Case)| {
        let mut one = case.clone();
        change(&mut one);
        found.push(one);
    };
    for output in 0..case.outputs.len() {
        if case.outputs.len() > 1 {
            add(&|one| one.outputs.retain(|given| *given != case.outputs[output]));
        }
        add(&|one| one.outputs[output].1 = Order::Contiguous);
        for operand in case.nodes[case.outputs[output].0].operands() {
            add(&|one| one.outputs[output].0 = operand);
        }
    }
    let needed = case.needed();
    for node in (0..case.nodes.len()).rev().filter(|&node| needed[node]) {
        for operand in case.nodes[node].operands() {
            add(&|one| one.nodes.iter_mut().for_each(|other| other.replace(node, operand)));
        }
    }
    for axis in 0..case.sizes.len() {
        for size in [1, case.sizes[axis] / 2, case.sizes[axis].saturating_sub(1)] {
            add(&|one| one.sizes[axis] = size.max(1));
        }
    }
    for input in 0..case.inputs.len() {
        add(&|one| one.inputs[input].2 = Order::Contiguous);
    }
    add(&|one| one.is_special = false);
    found
}

/// Returns a measure that each step of [`smallest`] decreases.
fn weight(case: &Case) -> usize {
    let orders = case.inputs.iter().map(|input| input.2).chain(case.outputs.iter().map(|output| output.1));
    let orders = orders.filter(|order| *order != Order::Contiguous).count();
    let needed = case.needed().into_iter().filter(|needed| *needed).count();
    let elements: usize = case.sizes.iter().product();
    10000 * (needed + case.outputs.len()) + 4 * elements + orders + usize::from(case.is_special)
}

/// Makes a failing case smaller as long as it fails.
fn smallest(mut case: Case, fails: impl Fn(&Case) -> bool) -> Case {
    let mut tries = 0;
    'smaller: loop {
        for one in smaller(&case) {
            let is_program = weight(&one) < weight(&case) && one.is_valid();
            tries += usize::from(is_program);
            if is_program && tries < 400 && fails(&one) {
                case = one;
                continue 'smaller;
            }
        }
        return case;
    }
}

fn run(seed: u64, variety: Variety) {
    let case = Case::new(seed, variety);
    if catch_unwind(AssertUnwindSafe(|| check(&case, true))).is_ok() {
        return;
    }
    let case = smallest(case, |case| failure(case).is_some());
    panic!("a smaller case of seed {seed}:\n{case}{}", failure(&case).unwrap_or_default());
}

pub fn tests() -> Vec<Test> {
    let test = |(variety, row, seed)| {
        Test::new(format!("random_rows::{row}::{seed}"), move || {
            run(seed, variety);
            Ok(())
        })
    };
    let basic = (0..CASES).map(|seed| (Variety::Basic, "programs", seed));
    let extended = (0..EXTENDED).map(|seed| (Variety::Extended, "extended", seed));
    basic.chain(extended).map(test).collect()
}

/// Tests that always run.
pub fn always() -> Vec<Test> {
    let named = |name: &str, run: fn()| Test::of(format!("random_rows::{name}"), run);
    vec![
        named("most_are_one_kernel", one_kernel),
        named("extended_programs_take_every_schedule", schedules),
        named("a_failing_case_becomes_small", becomes_small),
    ]
}

/// Returns the plan of a seed and the nodes that its outputs depend on.
fn plan_of(seed: u64, variety: Variety) -> (RowExplanation, Vec<Node>) {
    let case = Case::new(seed, variety);
    let program = case.program().expect("a program");
    let needed = case.nodes.iter().zip(case.needed()).filter(|(_, needed)| *needed);
    let nodes = needed.map(|(node, _)| node.clone()).collect();
    (Operands::new(&case, &program).plan(&program, case.capability), nodes)
}

fn one_kernel() {
    let of_rows = |seed: &u64| {
        let case = Case::new(*seed, Variety::Basic);
        let program = case.program().expect("a program");
        let operands = Operands::new(&case, &program).as_rows(&case, &program);
        operands.plan(&program, case.capability).schedule.starts_with("one kernel")
    };
    let count = (0..40).filter(of_rows).count();
    assert!(count >= 30, "{count} of 40");
}

fn schedules() {
    let plans: Vec<(RowExplanation, Vec<Node>)> =
        (0..60).map(|seed| plan_of(seed, Variety::Extended)).collect();
    let has = |wanted: fn(&Node) -> bool| plans.iter().filter(|(_, nodes)| nodes.iter().any(wanted)).count();
    let scheduled = |wanted: &str| plans.iter().filter(|(plan, _)| plan.schedule.contains(wanted)).count();
    for (kind, count) in [
        ("scalars", has(|node| matches!(node, Node::Scalar(..)))),
        ("positions", has(|node| matches!(node, Node::Position))),
        ("random words", has(|node| matches!(node, Node::Dropped(..) | Node::Uniform(_)))),
        ("sums over groups", has(|node| matches!(node, Node::SumOverGroups(_)))),
        ("tiles of columns", scheduled("tiles of")),
        ("several kernels", scheduled("kernels, because")),
    ] {
        assert!(count >= 5, "{count} of 60 programs have {kind}");
    }
}

fn becomes_small() {
    let has_sum = |case: &Case| {
        let needed = case.needed();
        let mut nodes = case.nodes.iter().zip(needed).filter(|(_, needed)| *needed);
        nodes.any(|(node, _)| matches!(node, Node::Reduce(0 | 6, _)))
    };
    let case = (0..)
        .map(|seed| Case::new(seed, Variety::Basic))
        .find(|case| has_sum(case) && case.nodes.len() > 12)
        .expect("a case");
    let small = smallest(case, has_sum);
    assert_eq!((small.sizes.iter().product::<usize>(), small.outputs.len()), (1, 1));
    assert!(small.to_string().lines().count() <= 5, "{small}");
}
