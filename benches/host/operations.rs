//! Small operations of tensors and runs of expressions: their own time above a bare launch, and how often they call the
//! driver and the heap.
//!
//! The time of a bare launch is measured in turns with theirs and taken off. It is measured twice: with launches that
//! return at once, and with launches that crowd the caller out of the first-level caches, as those of a GPU's driver do.

use std::alloc::{GlobalAlloc, Layout as Allocation, System};
use std::cell::Cell;
use std::ffi::c_void;
use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::Criterion;
use selvedge::driver::{DeviceBuffer, Stream};
use selvedge::fuse::{DeviceInput, DeviceOutput, Expression, Graph};
use selvedge::tensor::{self, Fused, Tensor};
use selvedge::types::{DType, Layout};

use crate::idle_driver::IdleDriver;

/// Launches between two looks at the clock.
const BURST: u64 = 256;
const COUNT: usize = 1024;

type Failure = Box<dyn std::error::Error>;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counting what this thread asks for.
pub struct CountingAllocator;

// SAFETY: the system's own.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Allocation) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's word.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Allocation) {
        // SAFETY: the caller's word.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// An operation that is measured, and its name.
type Operation<'a> = (&'a str, Box<dyn Fn() -> selvedge::Result<()> + 'a>);

/// Operations of one node, with a number, of strided operands, and of ten nodes; and a run into memory that is there.
pub fn measure(driver: &IdleDriver, criterion: &mut Criterion) -> Result<(), Failure> {
    let device = tensor::Device::cuda(0)?;
    let stream = device.stream()?;
    let data = vec![1.0f32; COUNT];
    let upload = || Tensor::from_slice(&data, &[COUNT], &device);
    let (a, b, c) = (upload()?, upload()?, upload()?);
    let [square, other] = [&a, &b].map(|x| x.reshape(&[32, 32]));
    let (square, turned) = (square?, other?.transpose(0, 1)?);
    let fused = Fused::new(|[a, b, c, scale]| {
        ((((a * b + c).relu() * 2.0 - a).abs() + b).minimum(c) * scale).maximum(a)
    });
    let graph = Graph::new();
    let [x, y] = graph.inputs([DType::F32; 2]);
    let sum = graph.expression(&[x + y])?;
    let run = Run::new(&sum, &stream)?;
    let operations: [Operation<'_>; 5] = [
        ("a + b of memory that is there", Box::new(|| run.again())),
        ("a + b", Box::new(|| black_box(&a + &b).map(drop))),
        ("a * 0.25", Box::new(|| black_box(&a * 0.25).map(drop))),
        ("a + b transposed", Box::new(|| black_box(&square + &turned).map(drop))),
        ("10 operations, a number", Box::new(|| black_box(fused.run((&a, &b, &c, 0.25))).map(drop))),
    ];

    for (name, operation) in &operations {
        // The first runs plan, load and fill caches.
        (0..8).try_for_each(|_| operation())?;
        let (calls, allocations) = (driver.calls(), ALLOCATIONS.get());
        (0..100).try_for_each(|_| operation())?;
        let (calls, allocations) = (driver.calls() - calls, ALLOCATIONS.get() - allocations);
        println!(
            "{name}: {:.2} driver calls, {:.2} allocations",
            calls as f64 / 100.0,
            allocations as f64 / 100.0
        );
    }
    for (crowded, group) in [(false, "above a launch"), (true, "above a launch that crowds the caches")] {
        driver.crowd(crowded);
        let mut group = criterion.benchmark_group(group);
        for (name, operation) in &operations {
            group.bench_function(*name, |bencher| {
                bencher.iter_custom(|rounds| above_launch(driver, rounds, operation));
            });
        }
        group.finish();
    }
    Ok(())
}

/// The time of so many operations less that of as many launches, in turns.
fn above_launch(driver: &IdleDriver, rounds: u64, operation: &dyn Fn() -> selvedge::Result<()>) -> Duration {
    let mut values = [0u64; 4];
    let mut arguments = values.each_mut().map(|value| std::ptr::from_mut(value).cast::<c_void>());
    let (mut own, mut bare) = (Duration::ZERO, Duration::ZERO);
    let mut left = rounds;
    while left > 0 {
        let burst = left.min(BURST);
        left -= burst;
        let start = Instant::now();
        for _ in 0..burst {
            // An error would be one of every operation: they have succeeded before.
            let _ = operation();
        }
        own += start.elapsed();
        let start = Instant::now();
        for _ in 0..burst {
            black_box(driver.launch(&mut arguments));
        }
        bare += start.elapsed();
    }
    own.saturating_sub(bare)
}

/// A run of an expression of two inputs, its operands named anew each time.
struct Run<'a> {
    expression: &'a Expression,
    stream: &'a Stream,
    inputs: [DeviceBuffer<f32>; 2],
    output: std::cell::RefCell<DeviceBuffer<f32>>,
    layout: Layout,
}

impl<'a> Run<'a> {
    fn new(expression: &'a Expression, stream: &'a Stream) -> Result<Run<'a>, Failure> {
        Ok(Run {
            expression,
            stream,
            inputs: [stream.zeros(COUNT)?, stream.zeros(COUNT)?],
            output: stream.zeros(COUNT)?.into(),
            layout: Layout::contiguous(&[COUNT])?,
        })
    }

    fn again(&self) -> selvedge::Result<()> {
        let output = &mut *self.output.borrow_mut();
        let [x, y] = &self.inputs;
        let inputs = [DeviceInput::new(x, self.layout)?, DeviceInput::new(y, self.layout)?];
        self.expression.run(self.stream, &inputs, &[], &mut [DeviceOutput::new(output, self.layout)?])
    }
}
