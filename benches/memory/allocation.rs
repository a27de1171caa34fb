//! Buffers that are made and dropped, where a cached block serves them, beside the driver's own pool.

use std::sync::Barrier;
use std::time::Instant;

use selvedge::driver::{Device, DeviceBuffer, Stream};

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::bare_pool::BarePool;
use crate::harness::machine::Recorder;
use crate::harness::report::{Failure, Figure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};

/// Pairs of a round, of each thread.
const PAIRS: usize = 4096;
/// Pairs before the clock starts on a thread, which fill its caches.
const FIRST: usize = 256;
const THREADS: usize = 8;

/// The sizes of a request. A multiple of each length fits into [`PAIRS`].
struct Shape {
    name: &'static str,
    /// All are made, then all dropped, again and again.
    sizes: &'static [usize],
}

const SINGLE: [Shape; 4] = [
    Shape { name: "512 B", sizes: &[512] },
    Shape { name: "64 KiB", sizes: &[64 << 10] },
    Shape { name: "5 MiB", sizes: &[5 << 20] },
    Shape { name: "300 MiB", sizes: &[300 << 20] },
];

/// As a layer's intermediate tensors: of several sizes, alive at the same time.
const SEVERAL: Shape = Shape {
    name: "16 of 512 B to 5 MiB",
    sizes: &[
        512,
        4 << 10,
        64 << 10,
        512,
        1 << 20,
        4 << 10,
        5 << 20,
        100_000,
        512,
        64 << 10,
        3 << 20,
        4 << 10,
        1 << 20,
        512,
        100_000,
        2_000_000,
    ],
};

/// One thread over several sizes, then eight.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::new(
        bare,
        "allocation",
        "Buffers made and dropped",
        "The host's time for one buffer that is made and dropped, where a block that was used before serves it, as the \
         mean over 4096 of a round; with several threads, each thread's own time, as the mean over the threads, which \
         start together. The reference is a pool of the driver's that never gives memory back.",
    )?;
    let pool = BarePool::new()?;
    for shape in SINGLE.iter().chain([&SEVERAL]) {
        recorder.add(single(bare, &pool, options, shape)?);
    }
    for (streams, text) in [(THREADS, "8 threads of a stream each"), (4, "8 threads over 4 streams")] {
        for shape in [&SINGLE[1], &SEVERAL] {
            recorder.add(several(&pool, options, shape, streams, text)?);
        }
    }
    bare.synchronize()?;
    pool.close()?;
    recorder.finish(&options.out)
}

fn subject(name: &str, goal: f64) -> Subject<'_> {
    Subject {
        name,
        against: "cuMemAllocFromPoolAsync and cuMemFreeAsync",
        unit: Unit::Nanoseconds,
        bytes: None,
        rule: Rule::Own,
        goal: Some(goal),
    }
}

/// Makes and drops buffers of the shape, `pairs` in all.
fn own(stream: &Stream, shape: &Shape, pairs: usize) -> Result<(), Failure> {
    if let [size] = *shape.sizes {
        for _ in 0..pairs {
            drop(stream.uninitialized::<u8>(size)?);
        }
        return Ok(());
    }
    let mut alive: Vec<DeviceBuffer<u8>> = Vec::with_capacity(shape.sizes.len());
    for _ in 0..pairs / shape.sizes.len() {
        for &size in shape.sizes {
            alive.push(stream.uninitialized(size)?);
        }
        alive.clear();
    }
    Ok(())
}

/// The same by the driver's pool.
fn reference(pool: &BarePool, stream: &Bare, shape: &Shape, pairs: usize) -> Result<(), Failure> {
    if let [size] = *shape.sizes {
        for _ in 0..pairs {
            let address = pool.allocate(stream, size)?;
            pool.free(stream, address)?;
        }
        return Ok(());
    }
    let mut alive = Vec::with_capacity(shape.sizes.len());
    for _ in 0..pairs / shape.sizes.len() {
        for &size in shape.sizes {
            alive.push(pool.allocate(stream, size)?);
        }
        for address in alive.drain(..) {
            pool.free(stream, address)?;
        }
    }
    Ok(())
}

fn each(start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64 / PAIRS as f64
}

fn single(bare: &Bare, pool: &BarePool, options: &Options, shape: &Shape) -> Result<Figure, Failure> {
    let stream = Device::new(0)?.stream()?;
    turns(
        options.turns(5, 100),
        &subject(&format!("{}, 1 thread", shape.name), 100.0),
        || {
            let start = Instant::now();
            own(&stream, shape, PAIRS)?;
            Ok(each(start))
        },
        || {
            let start = Instant::now();
            reference(pool, bare, shape, PAIRS)?;
            let taken = each(start);
            bare.synchronize()?;
            Ok(taken)
        },
    )
}

fn several(
    pool: &BarePool,
    options: &Options,
    shape: &Shape,
    streams: usize,
    text: &str,
) -> Result<Figure, Failure> {
    let device = Device::new(0)?;
    let own_streams = (0..streams).map(|_| device.stream()).collect::<selvedge::Result<Vec<_>>>()?;
    let bare_streams = (0..streams).map(|_| Bare::open(0)).collect::<Result<Vec<_>, _>>()?;
    let figure = turns(
        options.turns(5, 60),
        &subject(&format!("{}, {text}", shape.name), 400.0),
        || together(|thread, pairs| own(&own_streams[thread % streams], shape, pairs)),
        || {
            let taken = together(|thread, pairs| {
                let stream = &bare_streams[thread % streams];
                stream.make_current()?;
                reference(pool, stream, shape, pairs)
            })?;
            bare_streams.iter().try_for_each(Bare::synchronize)?;
            Ok(taken)
        },
    )?;
    Ok(figure)
}

/// Does the work on several threads that start together; returns each thread's nanoseconds for a pair, as the mean.
fn together(work: impl Fn(usize, usize) -> Result<(), Failure> + Sync) -> Result<f64, Failure> {
    let (barrier, work) = (Barrier::new(THREADS), &work);
    let timed = |thread: usize| -> Result<f64, String> {
        let first = work(thread, FIRST);
        // All get here, also those that failed.
        barrier.wait();
        let start = Instant::now();
        let result = first.and_then(|()| work(thread, PAIRS));
        let taken = each(start);
        result.map(|()| taken).map_err(|failure| failure.to_string())
    };
    std::thread::scope(|scope| {
        let timed = &timed;
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || timed(thread))).collect();
        let mut sum = 0.0;
        for thread in threads {
            sum += thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(sum / THREADS as f64)
    })
}
