//! Row programs with random words and positions of elements: dropout by position before a norm, in every schedule.

use selvedge::fuse::{Expr, Graph, HostInput, HostOutput, RowProgram};
use selvedge::types::{DType, Layout};

use super::reductions::contiguous;
use super::rows::{Program, Rows, check_on, layer_norm};
use crate::common::suite::Test;

/// Dropout and a bias before a layer norm, with the element before the norm as an output.
const DROPOUT_NORM: Program = ("dropout_norm", &[false, false, false], dropout_norm);
/// The same with 64-bit words, of which an element takes two, and four of 32 bits.
const WORDS: Program = ("words", &[false, false], words);
/// A program that weights elements by their position.
const POSITIONS: Program = ("positions", &[false, false], positions);
/// Sums of positions, which depend on the shape of an input alone.
const PLACES: Program = ("places", &[], places);
/// Words after the last reduction alone.
const NORM_DROPOUT: Program = ("norm_dropout", &[false, false], norm_dropout);

fn dropped<'g>(x: Expr<'g>, seed: u64) -> Expr<'g> {
    let graph = x.graph();
    let [word] = graph.random(DType::U32, graph.number(seed, DType::U64), graph.number(5u64, DType::U64));
    word.ge(graph.number(1u64 << 30, DType::U32)).choose(x * 1.25, x * 0.0)
}

fn dropout_norm<'g>(x: Expr<'g>, others: &[Expr<'g>]) -> Vec<Expr<'g>> {
    let y = dropped(x, 7) + others[2];
    let mut outputs = layer_norm(y, &others[..2]);
    outputs.push(y);
    outputs
}

fn norm_dropout<'g>(x: Expr<'g>, others: &[Expr<'g>]) -> Vec<Expr<'g>> {
    layer_norm(x, others).into_iter().take(1).map(|y| dropped(y, 9)).collect()
}

fn words<'g>(x: Expr<'g>, others: &[Expr<'g>]) -> Vec<Expr<'g>> {
    let graph = x.graph();
    let numbers = |number: u64| graph.number(number, DType::U64);
    let [long] = graph.random(DType::U64, numbers(11), numbers(0));
    let [one, two, three, four] = graph.random(DType::U32, numbers(11), numbers(1 << 40));
    let share = long.normal().cast(x.dtype()) * x;
    let any = (one ^ two ^ three ^ four).cast(DType::F64) * 2f64.powi(-32);
    let y = share + any.cast(x.dtype());
    vec![y / y.square().sum_group().sqrt() * others[0], long, one, four, y.max_group()]
}

fn positions<'g>(x: Expr<'g>, others: &[Expr<'g>]) -> Vec<Expr<'g>> {
    let place = x.graph().position();
    let y = x + (place % 10i64).cast(x.dtype()) * others[0];
    vec![y - y.mean_group(), place]
}

fn places<'g>(x: Expr<'g>, _: &[Expr<'g>]) -> Vec<Expr<'g>> {
    let sum = x.graph().position().sum_group();
    vec![sum, x * sum.cast(x.dtype())]
}

pub fn always() -> Vec<Test> {
    let test = |name: &str, run: fn()| {
        Test::new(format!("rows::{name}"), move || {
            run();
            Ok(())
        })
    };
    vec![
        test("random_words", schedules),
        test("random_words_are_those_of_an_expression", words_of_an_expression),
        test("random_words_of_other_groups_take_several_kernels", several),
        test("a_seed_in_memory", seeds_in_memory),
        test("sums_over_groups_of_drawn_elements_are_those_of_elements_in_memory", sums),
    ]
}

/// Groups of the last axes in three dimensions.
fn blocks(axes: &'static [isize]) -> Rows {
    let sizes = [3, 5, 64];
    let elements = contiguous(&sizes);
    let size = |axis: usize| if axes.contains(&(axis as isize)) { 1 } else { sizes[axis] };
    let groups = contiguous(&[size(0), size(1), size(2)]);
    Rows { elements, written: elements, axes, groups, along: contiguous(&[64]) }
}

fn schedules() {
    let one = &[(9, 0)][..];
    for (given, dtype, rows, schedule) in [
        (DROPOUT_NORM, DType::F32, Rows::contiguous(5, 33), "one kernel: "),
        (DROPOUT_NORM, DType::F32, Rows::contiguous(7, 128), "one kernel: "),
        (DROPOUT_NORM, DType::BF16, Rows::contiguous(3, 1000), "one kernel: "),
        (DROPOUT_NORM, DType::BF16, Rows::contiguous(3, 1001), "one kernel: "),
        (DROPOUT_NORM, DType::BF16, Rows::contiguous(2, 4096), "one kernel: a block of "),
        (DROPOUT_NORM, DType::F32, Rows::contiguous(2, 4097), "one kernel: a block of "),
        (DROPOUT_NORM, DType::F32, Rows::contiguous(16, 40000), "one kernel: a cluster"),
        (DROPOUT_NORM, DType::F64, Rows::contiguous(2, 300), "one kernel: "),
        (DROPOUT_NORM, DType::F32, blocks(&[2]), "one kernel"),
        (DROPOUT_NORM, DType::F32, blocks(&[1, 2]), "one kernel"),
        (NORM_DROPOUT, DType::BF16, Rows::contiguous(3, 1024), "one kernel"),
        (NORM_DROPOUT, DType::F32, Rows::contiguous(3, 65), "one kernel"),
        (WORDS, DType::F32, Rows::contiguous(3, 130), "one kernel"),
        (WORDS, DType::BF16, Rows::contiguous(2, 64), "one kernel"),
        (WORDS, DType::F64, Rows::contiguous(2, 40), "one kernel"),
        (POSITIONS, DType::F32, Rows::contiguous(4, 260), "one kernel"),
        (POSITIONS, DType::F32, blocks(&[1, 2]), "one kernel"),
        (PLACES, DType::F64, Rows::contiguous(3, 70), "one kernel"),
    ] {
        check_on(given, dtype, &rows, schedule, &[false], one);
    }
}

/// Runs a program of f32 on the CPU.
fn on_cpu<const COUNT: usize>(
    outputs: impl for<'g> Fn(Expr<'g>) -> [Expr<'g>; COUNT],
    x: (&[f32], Layout),
    axes: &[isize],
) -> [Vec<f32>; COUNT] {
    let graph = Graph::new();
    let program = graph.row_program(&outputs(graph.input(DType::F32))).expect("a program");
    let mut found = std::array::from_fn(|_| vec![0f32; x.0.len()]);
    let written = found.each_mut().map(|found| HostOutput::new(found, x.1).expect("an output"));
    let input = HostInput::new(x.0, x.1).expect("an input");
    program.run_host(&[input], &[], axes, &mut Vec::from(written)).expect("a run");
    found
}

fn dropped_and_divided<'g>(x: Expr<'g>) -> [Expr<'g>; 2] {
    let y = dropped(x, 7);
    [y / y.square().sum_group(), y]
}

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|k| (k * 37 % 101) as f32 * 0.125 - 4.0).collect()
}

fn words_of_an_expression() {
    for (sizes, axes) in
        [(&[6, 70][..], &[1][..]), (&[4, 3, 10], &[0]), (&[4, 3, 10], &[1, 2]), (&[9, 5], &[0])]
    {
        let layout = contiguous(sizes);
        let x = numbers(layout.count());
        // The elements that dropout leaves, by an elementwise expression.
        let graph = Graph::new();
        let expression = graph.expression(&[dropped(graph.input(DType::F32), 7)]).expect("an expression");
        let mut kept = vec![0f32; x.len()];
        let output = HostOutput::new(&mut kept, layout).expect("an output");
        let input = HostInput::new(&x, layout).expect("an input");
        expression.run_host(&[input], &[], &mut [output]).expect("a run");
        assert!(kept.iter().filter(|kept| **kept == 0.0).count() * 8 > x.len());
        let [wanted] = on_cpu(|y| [y / y.square().sum_group()], (&kept, layout), axes);
        let [found, elements] = on_cpu(dropped_and_divided, (&x, layout), axes);
        assert_eq!((found, elements), (wanted, kept), "{sizes:?} along {axes:?}");
    }
}

fn several() {
    let graph = Graph::new();
    let y = dropped(graph.input(DType::F32), 3);
    let program = graph.row_program(&[y - y.mean_group()]).expect("a program");
    let reason = |sizes: &[usize], axes: &[isize]| {
        let layout = contiguous(sizes);
        let plan = program.explain(&[layout], axes, &[layout], (9, 0)).expect("a plan");
        let drawn = plan.kernels.iter().filter(|kernel| kernel.name.starts_with("random words")).count();
        assert_eq!(drawn, usize::from(plan.kernels.len() > 1), "{plan}");
        plan.schedule
    };
    assert!(
        reason(&[4, 3, 40], &[0, 2])
            .contains("positions, such as of random words, need groups of the last axes")
    );
    assert!(reason(&[40, 33], &[0]).contains("positions, such as of random words"));
    assert!(reason(&[4, 3, 40], &[1, 2]).starts_with("one kernel"));
    // An index along an axis depends on the shape.
    let graph = Graph::new();
    let y = graph.input(DType::F32) + graph.index(0).cast(DType::F32);
    let program = graph.row_program(&[y - y.mean_group()]).expect("a program");
    let layout = contiguous(&[4, 50]);
    let plan = program.explain(&[layout], &[1], &[layout], (9, 0)).expect("a plan");
    assert!(plan.schedule.contains("indices along an axis"), "{}", plan.schedule);
    let mut found = vec![0f32; 200];
    let x = numbers(200);
    let output = HostOutput::new(&mut found, layout).expect("an output");
    program
        .run_host(&[HostInput::new(&x, layout).expect("an input")], &[], &[1], &mut [output])
        .expect("a run");
    let [wanted] = on_cpu(|x| [x - x.mean_group()], (&x, layout), &[1]);
    for (found, wanted) in found.iter().zip(wanted) {
        assert!((found - wanted).abs() < 1e-5, "the index is the same within a row");
    }
}

fn seeds_in_memory() {
    let graph = Graph::new();
    let x = graph.input(DType::F32);
    let seed = graph.zero_dim_input(DType::U64);
    let [word] = graph.random(DType::U32, seed, graph.number(5u64, DType::U64));
    let y = word.ge(graph.number(1u64 << 30, DType::U32)).choose(x * 1.25, x * 0.0);
    let program = graph.row_program(&[y / y.square().sum_group(), y]).expect("a program");
    let layout = contiguous(&[6, 70]);
    let x = numbers(420);
    let run = |seeds: &[u64]| {
        let mut found = [vec![0f32; 420], vec![0f32; 420]];
        let outputs = found.each_mut().map(|found| HostOutput::new(found, layout).expect("an output"));
        let sizes: &[usize] = if seeds.len() == 1 { &[] } else { &[6, 1] };
        let inputs = [
            HostInput::new(&x, layout).expect("an input"),
            HostInput::new(seeds, contiguous(sizes)).expect("a seed"),
        ];
        program.run_host(&inputs, &[], &[1], &mut Vec::from(outputs)).map(|()| found)
    };
    assert_eq!(run(&[7]).expect("a run"), on_cpu(dropped_and_divided, (&x, layout), &[1]));
    assert_ne!(run(&[8]).expect("a run"), on_cpu(dropped_and_divided, (&x, layout), &[1]));
    let error = run(&[7; 6]).expect_err("a seed of several elements").to_string();
    assert!(error.contains("input 1 of shape [6, 1]") && error.contains("one element"), "{error}");
    let plan = program.explain(&[layout, contiguous(&[])], &[1], &[layout, layout], (9, 0)).expect("a plan");
    assert!(plan.schedule.starts_with("one kernel"), "{}", plan.schedule);
}

/// Sums over groups of drawn elements are those of the elements in memory.
fn sums() {
    for (sizes, along, axes) in [
        (&[130, 7][..], &[1, 7][..], &[1][..]),
        (&[70, 9], &[70, 1], &[0]),
        (&[65, 3, 4], &[1, 3, 4], &[1, 2]),
        (&[5, 20, 3], &[5, 1, 3], &[0, 2]),
    ] {
        let (layout, along) = (contiguous(sizes), contiguous(along));
        let x = numbers(layout.count());
        let run =
            |program: &RowProgram, x: &[f32], seed: Option<&[u64]>, outputs: &mut [(&mut [f32], Layout)]| {
                let mut inputs = vec![HostInput::new(x, layout)?];
                if let Some(seed) = seed {
                    let sizes: &[usize] = if seed.len() == 1 { &[] } else { &[seed.len(), 1] };
                    inputs.push(HostInput::new(seed, contiguous(sizes))?);
                }
                let mut written = Vec::new();
                for (output, layout) in outputs {
                    written.push(HostOutput::new(output, *layout)?);
                }
                program.run_host(&inputs, &[], axes, &mut written)
            };
        let sum_of = |y: &[f32]| {
            let graph = Graph::new();
            let program = graph.row_program(&[graph.input(DType::F32).sum_over_groups()]).expect("a program");
            let mut sums = vec![0f32; along.count()];
            run(&program, y, None, &mut [(&mut sums, along)]).expect("a run");
            sums
        };
        for with_groups in [false, true] {
            let graph = Graph::new();
            let x_of = graph.input(DType::F32);
            let place = graph.position().cast(DType::F32);
            let [one, other] =
                [dropped(x_of, 3), place].map(|y| if with_groups { y - x_of.max_group() } else { y });
            let outputs = [one.sum_over_groups(), one, other.sum_over_groups(), other];
            let program = graph.row_program(&outputs).expect("a program");
            let mut sums = [vec![0f32; along.count()], vec![0f32; along.count()]];
            let mut terms = [vec![0f32; x.len()], vec![0f32; x.len()]];
            let ([first, second], [one, other]) = (&mut sums, &mut terms);
            let mut outputs: [(&mut [f32], Layout); 4] =
                [(first, along), (one, layout), (second, along), (other, layout)];
            run(&program, &x, None, &mut outputs).expect("a run");
            assert_eq!(sums, terms.each_ref().map(|terms| sum_of(terms)), "{sizes:?} along {axes:?}");
            assert_ne!(sums[0], sum_of(&x));
        }
        // A seed in memory.
        let graph = Graph::new();
        let (x_of, seed) = (graph.input(DType::F32), graph.zero_dim_input(DType::U64));
        let [word] = graph.random(DType::U32, seed, graph.number(5u64, DType::U64));
        let y = word.ge(graph.number(1u64 << 30, DType::U32)).choose(x_of * 1.25, x_of * 0.0);
        let program = graph.row_program(&[(y + x_of.max_group()).sum_over_groups(), y]).expect("a program");
        let [of_seven, of_eight] = [7, 8].map(|seed| {
            let (mut sums, mut elements) = (vec![0f32; along.count()], vec![0f32; x.len()]);
            let mut outputs: [(&mut [f32], Layout); 2] = [(&mut sums, along), (&mut elements, layout)];
            run(&program, &x, Some(&[seed]), &mut outputs).expect("a run");
            elements
        });
        assert_eq!(of_seven, on_cpu(dropped_and_divided, (&x, layout), axes)[1]);
        assert_ne!(of_seven, of_eight);
        let (mut sums, mut elements) = (vec![0f32; along.count()], vec![0f32; x.len()]);
        let mut outputs: [(&mut [f32], Layout); 2] = [(&mut sums, along), (&mut elements, layout)];
        let error =
            run(&program, &x, Some(&vec![7; sizes[0]]), &mut outputs).map_err(|error| error.to_string());
        assert!(error.as_ref().is_err_and(|error| error.contains("one element")), "{error:?}");
    } // One kernel for many rows, whose plan needs no run.
    let graph = Graph::new();
    let (x, seed) = (graph.input(DType::F32), graph.zero_dim_input(DType::U64));
    let [word] = graph.random(DType::U32, seed, graph.number(5u64, DType::U64));
    let y = word.ge(graph.number(1u64 << 30, DType::U32)).choose(x, 0.0) - x.mean_group();
    let program = graph.row_program(&[y, y.sum_over_groups()]).expect("a program");
    let explain = |seed: &[usize]| {
        let elements = contiguous(&[1 << 16, 4]);
        program.explain(&[elements, contiguous(seed)], &[1], &[elements, contiguous(&[1, 4])], (9, 0))
    };
    let schedule = explain(&[]).expect("a plan").schedule;
    assert!(schedule.starts_with("one kernel and the sums of chunks"), "{schedule}");
    let error = explain(&[1 << 16, 1]).map(drop).map_err(|error| error.to_string());
    assert!(error.as_ref().is_err_and(|error| error.contains("one element")), "{error:?}");
}
