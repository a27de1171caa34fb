//! The figures: the time of a step, its part of the peak, and the peak of memory.

use std::cell::Cell;

use selvedge::tensor::Device;

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::report::{Failure, Figure, Rule, Unit};
use crate::harness::turns::{Subject, figure, pairs};
use crate::own::Own;
use crate::reference::PyTorchTraining;
use crate::rows::{ROWS, Reference, Row, Work, named};

/// The time of the steps between two events, in milliseconds, and the most of them.
const SAMPLE: f64 = 500.0;
const MAX_STEPS: f64 = 20.0;
const GIB: f64 = (1u64 << 30) as f64;

const METHOD: &str = "Milliseconds of a step by events on the device around as many steps as take half a second, on uniformly random \
     ids: forward, backward, clipping of the gradients' norm to 1, and AdamW, with parameters, gradients and moments in f32. Ours is \
     a Trainer with captured steps, whose host draws each batch and reads each loss, as selvedge train does. PyTorch runs \
     benches/training/pytorch_gpt.py in a process of its own: bf16 is autocast, so its residual stream is f32, and f32 is IEEE; AdamW is \
     fused, GPT-2's vocabulary padded to 50304, attention the fastest backend of scaled_dot_product_attention for the shape, the loss \
     a part of the compiled model, and its host waits for no step of a sample, which comes behind a step that is not timed. max-autotune-no-cudagraphs is that mode of torch.compile, \
     and compiled its default. Operations are llm.c's count: an id takes 6 for each parameter, and 6 x layers x width x context for \
     causal attention. Memory is the peak of live bytes in each side's pool: ours since before the model was made, PyTorch's after \
     its warm-up, as autotuning takes memory. Rows may be of several runs of one commit.";

/// Measures the rows that the command line names.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let names = options.file.as_deref().map(|names| names.to_string_lossy());
    let names = named(names.as_deref())?;
    let mut recorder = Recorder::new(bare, "training", "Steps of training of language models", METHOD)?;
    let earlier = recorder.earlier_figures(&options.out)?;
    let device = Device::cuda(0)?;
    let (mut measured, mut failed) = (0, Vec::new());
    for row in &ROWS {
        let mut figures = Vec::new();
        if names.contains(&row.name) {
            if let Err(failure) = measure_row(row, &device, options, &mut recorder, &mut figures) {
                eprintln!("{}: {failure}", row.name);
                failed.push(row.name);
            }
            // The next row's peers are other processes.
            device.trim()?;
        }
        let is_replaced = |figure: &Figure| figures.iter().any(|new| new.name == figure.name);
        for figure in earlier.iter().filter(|figure| row.has(figure) && !is_replaced(figure)) {
            recorder.keep(figure.clone());
        }
        measured += figures.len();
        figures.into_iter().for_each(|figure| recorder.add(figure));
    }
    match measured {
        0 => println!("  left out: nothing to compare with, so no report is written"),
        _ => recorder.finish(&options.out)?,
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("rows failed: {}", failed.join(", ")).into()) }
}

/// Adds the figures of a row. A failure of PyTorch's goes to the recorder.
fn measure_row(
    row: &Row,
    device: &Device,
    options: &Options,
    recorder: &mut Recorder,
    figures: &mut Vec<Figure>,
) -> Result<(), Failure> {
    let work = row.work()?;
    let mut own = Own::new(row, device)?;
    let milliseconds = own.milliseconds(2)?;
    let steps = (SAMPLE / milliseconds).ceil().clamp(1.0, MAX_STEPS) as usize;
    println!("  {}", side(&row.title(), &work, milliseconds, own.peak_bytes()));
    if let Some(goal) = row.utilization {
        let least = work.least_milliseconds();
        let times = pairs(options.turns(1, 20), || own.milliseconds(steps), || Ok(least))?;
        let name = format!("{}, beside the peak of the tensor cores", row.title());
        let subject = Subject {
            name: &name,
            against: &format!("{:.1} TFLOP/s", work.peak / 1e12),
            unit: Unit::Milliseconds,
            bytes: None,
            rule: Rule::Speed,
            goal: Some(goal),
        };
        let figure = with_operations(figure(&subject, &times)?, &work);
        println!("    {}", side("selvedge", &work, figure.own.median, own.peak_bytes()));
        figures.push(figure);
    }
    for reference in row.references {
        if let Err(why) = beside(row, reference, &work, (&mut own, steps), options, figures)? {
            recorder.skip(format!("{}, beside {}: {why}.", row.title(), reference.mode));
        }
    }
    Ok(())
}

/// Adds the figures beside a form of PyTorch. The inner error is PyTorch's.
fn beside(
    row: &Row,
    reference: &Reference,
    work: &Work,
    (own, steps): (&mut Own, usize),
    options: &Options,
    figures: &mut Vec<Figure>,
) -> Result<Result<(), String>, Failure> {
    let mut pytorch = match PyTorchTraining::start(row, reference) {
        Ok(pytorch) => pytorch,
        Err(why) => return Ok(Err(why)),
    };
    let lost = Cell::new(None);
    let theirs = || {
        pytorch.milliseconds(steps).map_err(|why| {
            lost.set(Some(why));
            Failure::from("no answer")
        })
    };
    let times = pairs(options.turns(1, 20), || own.milliseconds(steps), theirs);
    if let Some(why) = lost.take() {
        return Ok(Err(why));
    }
    let times = times?;
    let bytes = match pytorch.peak_bytes() {
        Ok(bytes) => (own.peak_bytes(), bytes),
        Err(why) => return Ok(Err(why)),
    };
    let name = format!("{}, beside {}", row.title(), reference.mode);
    let subject = Subject {
        name: &name,
        against: &pytorch.call,
        unit: Unit::Milliseconds,
        bytes: None,
        rule: Rule::Speed,
        goal: reference.speed,
    };
    let speed = with_operations(figure(&subject, &times)?, work);
    println!("    {}", side("selvedge", work, speed.own.median, bytes.0));
    println!("    {}", side(&pytorch.call, work, speed.reference.median, bytes.1));
    println!("    speed {:.3}, memory {:.3}", speed.comparison.median, bytes.0 as f64 / bytes.1 as f64);
    figures.push(speed);
    if reference.memory.is_some() {
        let name = format!("{}, peak memory beside {}", row.title(), reference.mode);
        let counted = vec![(bytes.0 as f64 / GIB, bytes.1 as f64 / GIB); times.len()];
        let subject = Subject {
            name: &name,
            unit: Unit::Gibibytes,
            rule: Rule::Memory,
            goal: reference.memory,
            ..subject
        };
        figures.push(Figure { order: "counted, not timed".to_owned(), ..figure(&subject, &counted)? });
    }
    Ok(Ok(()))
}

fn with_operations(figure: Figure, work: &Work) -> Figure {
    Figure { operations: Some(work.operations), ..figure }
}

/// A line of a side: its speed, its part of the peak, and its memory.
fn side(name: &str, work: &Work, milliseconds: f64, bytes: u64) -> String {
    format!(
        "{name}: {milliseconds:.2} ms a step, {:.0} tokens/s, MFU {:.3} of {:.1} TFLOP/s, peak {:.2} GiB",
        work.ids_per_second(milliseconds),
        work.utilization(milliseconds),
        work.peak / 1e12,
        bytes as f64 / GIB
    )
}
