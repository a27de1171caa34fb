//! One product on both sides: ours with the engines forced to be our own, and cuBLAS's on the same operands, each as a
//! graph of several launches; what they compute is compared.

use std::sync::OnceLock;

use bytemuck::Pod;
use half::{bf16, f16};
use num_complex::Complex;
use selvedge::driver::{Device, DeviceBuffer, DeviceSlice, ExecutableGraph, Stream};
use selvedge::gemm::{Choice, GemmElement, GemmResult, Operation, Product, gemm};

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::bare_graph::BareGraphs;
use crate::harness::cublas::{Call, Cublas, Kind};
use crate::harness::random::Random;
use crate::harness::report::Failure;
use crate::harness::turns::{Turns, pairs as turns};

/// Random elements of the operands.
const POOL: usize = 1 << 24;
/// How long the products of one graph take together, in seconds, if a card does 600 TFLOP/s.
const GRAPH_SECONDS: f64 = 400e-6;
/// The most launches in a graph.
const MAX_LAUNCHES: usize = 50;
/// Elements of the result that are compared, at its start and at its end.
const COMPARED: usize = 1 << 22;
/// Of those that differ, how many the exact sum decides about.
const JUDGED: usize = 8;

/// An element type on both sides.
pub trait Number: GemmElement {
    const KIND: Kind;
    /// The rounding of a result to this type, relative.
    const UNIT: f64;
    fn one() -> Self::Scalar;
    fn zero() -> Self::Scalar;
    fn from_normal(re: f32, im: f32) -> Self;
    fn parts(self) -> [f64; 2];
}

macro_rules! numbers {
    ($($type:ty, $kind:ident, $unit:expr, $scalar:expr, $from:expr, $parts:expr;)*) => {$(
        impl Number for $type {
            const KIND: Kind = Kind::$kind;
            const UNIT: f64 = $unit;
            fn one() -> Self::Scalar {
                $scalar(1)
            }
            fn zero() -> Self::Scalar {
                $scalar(0)
            }
            fn from_normal(re: f32, im: f32) -> $type {
                $from(re, im)
            }
            fn parts(self) -> [f64; 2] {
                $parts(self)
            }
        }
    )*};
}

numbers! {
    f16, F16, 1.0 / 1024.0, |x: i8| f32::from(x), |x, _| f16::from_f32(x), |x: f16| [x.to_f64(), 0.0];
    bf16, BF16, 1.0 / 128.0, |x: i8| f32::from(x), |x, _| bf16::from_f32(x), |x: bf16| [x.to_f64(), 0.0];
    f32, F32, 1e-7, |x: i8| f32::from(x), |x, _| x, |x: f32| [f64::from(x), 0.0];
    f64, F64, 1e-15, |x: i8| f64::from(x), |x: f32, _| f64::from(x), |x: f64| [x, 0.0];
    Complex<f32>, C64, 1e-7, |x: i8| Complex::new(f32::from(x), 0.0), Complex::new,
        |x: Complex<f32>| [f64::from(x.re), f64::from(x.im)];
    Complex<f64>, C128, 1e-15, |x: i8| Complex::new(f64::from(x), 0.0),
        |re: f32, im: f32| Complex::new(f64::from(re), f64::from(im)), |x: Complex<f64>| [x.re, x.im];
}

/// A shape of a product of contiguous matrices.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a_transposed: bool,
    pub b_transposed: bool,
    pub batch: usize,
    /// Different Bs that the launches take in turn, so that none is in the cache.
    pub copies: usize,
    pub choice: Choice,
}

impl Shape {
    pub fn new(m: usize, n: usize, k: usize) -> Shape {
        Shape { m, n, k, a_transposed: false, b_transposed: false, batch: 1, copies: 1, choice: Choice::Own }
    }

    pub fn product(&self) -> Product {
        let operation = |transposed| if transposed { Operation::Transpose } else { Operation::None };
        let Shape { m, n, k, batch, .. } = *self;
        Product::new(m, n, k)
            .a(operation(self.a_transposed))
            .b(operation(self.b_transposed))
            .batch(batch, m * k, k * n, m * n)
            .by(self.choice)
    }

    /// Of a graph of it.
    pub fn launches(&self) -> usize {
        let launches = (GRAPH_SECONDS * 600e12 / self.operations()).ceil() as usize;
        launches.clamp(1, MAX_LAUNCHES).next_multiple_of(self.copies)
    }

    fn operations(&self) -> f64 {
        self.product().operations()
    }
}

/// Both sides, ready to measure.
pub struct Sides<'a> {
    pub bare: &'a Bare,
    graphs: BareGraphs,
    pub cublas: Cublas,
    pub stream: Stream,
}

/// The libraries of the toolkit that this process has opened.
pub fn toolkit_in_memory() -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let names = ["libcublas", "libnvrtc", "libcudart"];
    maps.lines().filter(|line| names.iter().any(|name| line.contains(name))).map(str::to_owned).collect()
}

impl<'a> Sides<'a> {
    /// Makes one product of ours, and only then opens cuBLAS: ours must have done without.
    pub fn open(bare: &'a Bare, options: &Options) -> Result<Sides<'a>, Failure> {
        static DONE_WITHOUT: OnceLock<()> = OnceLock::new();
        let stream = Device::new(0)?.stream()?;
        if DONE_WITHOUT.get().is_none() {
            let (a, mut c) = (stream.zeros::<bf16>(64 * 64)?, stream.zeros::<f32>(64 * 64)?);
            gemm(&stream, &Product::new(64, 64, 64).by(Choice::Own), 1.0, &a, &a, 0.0, &mut c)?;
            stream.synchronize()?;
            let opened = toolkit_in_memory();
            if !opened.is_empty() {
                return Err(format!("the library under test opened {opened:?}").into());
            }
            DONE_WITHOUT.get_or_init(|| ());
        }
        if let Some(path) = &options.file {
            // SAFETY: no other thread reads the environment meanwhile.
            unsafe { std::env::set_var("SELVEDGE_BENCH_CUBLAS", path) };
        }
        Ok(Sides { bare, graphs: BareGraphs::open()?, cublas: Cublas::open(bare)?, stream })
    }

    /// The reference, in words.
    pub fn against(&self) -> String {
        let version = self.cublas.version;
        format!("cuBLAS {}.{}", version / 10_000, version % 10_000 / 100)
    }

    /// Random numbers, nearly normal with a variance of 1.
    fn random<T: Number>(&self) -> Result<DeviceBuffer<T>, Failure> {
        let mut random = Random::new(17);
        let mut normal = || {
            // Four uniform numbers of 16 bits, each with a variance of 1/12.
            let bits = random.bits();
            let sum: u32 = (0..4).map(|part| (bits >> (16 * part)) as u16 as u32).sum();
            (sum as f32 / 65_536.0 - 2.0) * 3.0f32.sqrt()
        };
        let count = POOL / size_of::<T>() * 2;
        let values: Vec<T> = (0..count).map(|_| T::from_normal(normal(), normal())).collect();
        Ok(self.stream.upload(&values)?)
    }

    /// So many elements out of the pool, again and again.
    fn filled<T: Pod>(&self, pool: &DeviceBuffer<T>, count: usize) -> Result<DeviceBuffer<T>, Failure> {
        let mut buffer = self.stream.uninitialized::<T>(count)?;
        // An odd part of it, so that the repetitions do not line up with rows.
        let part = pool.len() - 4099;
        let mut start = 0;
        while start < count {
            let length = part.min(count - start);
            self.stream.copy(&pool.slice(..length)?, &mut buffer.slice_mut(start..start + length)?)?;
            start += length;
        }
        Ok(buffer)
    }

    /// The operands' numbers for [`measure_with`](Self::measure_with): as many as the largest shape takes.
    pub fn numbers<T: Number>(&self, a: usize, b: usize) -> Result<[DeviceBuffer<T>; 2], Failure> {
        let pool = self.random::<T>()?;
        Ok([self.filled(&pool, a)?, self.filled(&pool, b)?])
    }

    /// Microseconds (own, reference) of one product in each round, after the results were compared.
    pub fn measure<T: Number, C: GemmResult<T> + Number>(
        &self,
        options: &Options,
        shape: Shape,
        rounds: usize,
    ) -> Result<Vec<(f64, f64)>, Failure> {
        let Shape { m, n, k, batch, copies, .. } = shape;
        let numbers = self.numbers::<T>(batch * m * k, batch * k * n * copies)?;
        self.measure_with::<T, C>(options, shape, rounds, &numbers)
    }

    /// As [`measure`](Self::measure), with operands that begin with these numbers.
    pub fn measure_with<T: Number, C: GemmResult<T> + Number>(
        &self,
        options: &Options,
        shape: Shape,
        rounds: usize,
        [a, b]: &[DeviceBuffer<T>; 2],
    ) -> Result<Vec<(f64, f64)>, Failure> {
        let Shape { m, n, k, batch, copies, .. } = shape;
        let (product, stream) = (shape.product(), &self.stream);
        let mut own = stream.uninitialized::<C>(batch * m * n)?;
        let other = stream.zeros::<C>(batch * m * n)?;
        stream.synchronize()?;
        let of_b = |launch: usize| launch % copies * batch * k * n;

        let call = Call {
            m,
            n,
            k,
            a_transposed: shape.a_transposed,
            b_transposed: shape.b_transposed,
            batch,
            operand: T::KIND,
            result: C::KIND,
        };
        let multiply = |stream: &Stream, launch: usize| {
            gemm::<T, C>(stream, &product, T::one(), a, &b.slice(of_b(launch)..)?, T::zero(), &mut own)
        };
        let reference = |launch: usize| {
            let b = b.address() + (of_b(launch) * size_of::<T>()) as u64;
            // SAFETY: the buffers hold the call's matrices, and live until the stream is idle.
            unsafe { self.cublas.multiply(&call, a.address(), b, other.address()) }
        };
        let pairs = self.in_graphs(options.turns(3, rounds), shape, multiply, reference)?;
        // Both graphs end with the last launch's B.
        let last = b.slice(of_b(shape.launches() - 1)..)?;
        for odd in self.differences(shape, &own, &other)? {
            let exact = self.exact::<T>(shape, a, &last, odd.element)?;
            if !close(shape, odd.own, exact, C::UNIT) {
                return Err(format!("{shape:?}: {odd:?}, exactly {exact:?}").into());
            }
            println!(
                "    element {} is {:?}, cuBLAS {:?}, exactly {exact:?}",
                odd.element, odd.own, odd.reference
            );
        }
        Ok(pairs)
    }

    /// The sum of products that an element is, in `f64`.
    fn exact<T: Number>(
        &self,
        shape: Shape,
        a: &DeviceBuffer<T>,
        b: &DeviceSlice<'_, T>,
        element: usize,
    ) -> Result<[f64; 2], Failure> {
        let Shape { m, n, k, .. } = shape;
        let (matrix, row, column) = (element / (m * n), element / n % m, element % n);
        let a = self.stream.download(&a.slice(matrix * m * k..(matrix + 1) * m * k)?)?;
        let b = self.stream.download(&b.slice(matrix * k * n..(matrix + 1) * k * n)?)?;
        let sum = (0..k).fold(Complex::new(0.0, 0.0), |sum, at| {
            let [re, im] = a[if shape.a_transposed { at * m + row } else { row * k + at }].parts();
            let x = Complex::new(re, im);
            let [re, im] = b[if shape.b_transposed { column * k + at } else { at * n + column }].parts();
            sum + x * Complex::new(re, im)
        });
        Ok([sum.re, sum.im])
    }

    /// Microseconds (own, reference) of one launch in each round, of graphs of several; each side gets the index of the
    /// graph it makes.
    pub fn in_graphs(
        &self,
        rounds: Turns,
        shape: Shape,
        own: impl FnMut(&Stream, usize) -> selvedge::Result<()>,
        mut reference: impl FnMut(usize) -> Result<(), Failure>,
    ) -> Result<Vec<(f64, f64)>, Failure> {
        let launches = shape.launches();
        // The first ones load what they need, which is not captured.
        let graph = self.record(launches, own)?;
        reference(0)?;
        self.bare.synchronize()?;
        let captured = self.graphs.capture(self.bare, || (0..launches).try_for_each(&mut reference))?;
        let executable = self.graphs.instantiate(&captured)?;

        let pairs = turns(
            rounds,
            || self.time(&graph, launches),
            || {
                let work = || self.graphs.launch(self.bare, &executable);
                // SAFETY: the stream lives as long as the process.
                Ok(unsafe { self.bare.device_time(self.bare.stream, work) }? * 1e3 / launches as f64)
            },
        )?;
        self.bare.synchronize()?;
        self.graphs.discard_executable(executable)?;
        self.graphs.discard(captured)?;
        Ok(pairs)
    }

    /// A graph of so many launches of ours, each of which gets its index. One is made before, not captured.
    pub fn record(
        &self,
        launches: usize,
        mut own: impl FnMut(&Stream, usize) -> selvedge::Result<()>,
    ) -> Result<ExecutableGraph, Failure> {
        own(&self.stream, 0)?;
        let all = |stream: &Stream| (0..launches).try_for_each(|launch| own(stream, launch));
        let (graph, ()) = self.stream.capture(all)?;
        Ok(graph.instantiate()?)
    }

    /// Microseconds of one launch of such a graph.
    pub fn time(&self, graph: &ExecutableGraph, launches: usize) -> Result<f64, Failure> {
        let work = || Ok(graph.launch(&self.stream)?);
        // SAFETY: the stream lives until the end of this function.
        Ok(unsafe { self.bare.device_time(self.stream.as_raw(), work) }? * 1e3 / launches as f64)
    }

    /// Fails where the two results differ by more than both may be off.
    pub fn compare<C: Number>(
        &self,
        shape: Shape,
        own: &DeviceBuffer<C>,
        other: &DeviceBuffer<C>,
    ) -> Result<(), Failure> {
        match self.differences(shape, own, other)?.first() {
            Some(odd) => Err(format!("{shape:?}: {odd:?}").into()),
            None => Ok(()),
        }
    }

    /// The first elements that differ by more than both may be off; says how many elements have equal bits.
    fn differences<C: Number>(
        &self,
        shape: Shape,
        own: &DeviceBuffer<C>,
        other: &DeviceBuffer<C>,
    ) -> Result<Vec<Odd>, Failure> {
        let length = own.len();
        let (mut equal, mut compared, mut odd) = (0usize, 0usize, Vec::new());
        for start in [0, length.saturating_sub(COMPARED)] {
            let range = start..(start + COMPARED).min(length);
            let ours = self.stream.download(&own.slice(range.clone())?)?;
            let theirs = self.stream.download(&other.slice(range)?)?;
            for (index, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
                compared += 1;
                if bytemuck::bytes_of(ours) == bytemuck::bytes_of(theirs) {
                    equal += 1;
                } else if odd.len() < JUDGED && !close(shape, ours.parts(), theirs.parts(), C::UNIT) {
                    odd.push(Odd { element: start + index, own: ours.parts(), reference: theirs.parts() });
                }
            }
        }
        if equal < compared {
            println!("    {equal} of {compared} elements have cuBLAS's bits");
        }
        Ok(odd)
    }
}

/// An element that differs, which the exact sum decides about: cuBLAS may add parts of long sums after it has rounded them.
#[derive(Debug)]
struct Odd {
    element: usize,
    own: [f64; 2],
    reference: [f64; 2],
}

/// Returns true where a number is within its rounding, a 500th of what the sums vary, which long sums in another order may be off, and
/// what the tensor cores cut off in each step of 16.
fn close(shape: Shape, found: [f64; 2], wanted: [f64; 2], unit: f64) -> bool {
    let cut = shape.k as f64 / 16.0 * f64::from(f32::EPSILON);
    found.into_iter().zip(wanted).all(|(x, y)| {
        let allowed = (2.0 * unit + cut) * y.abs() + 2e-3 * (shape.k as f64).sqrt();
        // Not so of NaN.
        (x - y).abs() <= allowed
    })
}

/// Prints the speeds of both sides, in TFLOP/s.
pub fn print_speeds(shape: Shape, pairs: &[(f64, f64)]) {
    let median = |pick: fn(&(f64, f64)) -> f64| {
        let mut times: Vec<f64> = pairs.iter().map(pick).collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let (own, reference) = (median(|pair| pair.0), median(|pair| pair.1));
    let speed = |time: f64| shape.operations() / time / 1e6;
    println!(
        "    {}x{}x{}: own {own:.1} us {:.1} TFLOP/s, cuBLAS {reference:.1} us {:.1} TFLOP/s, {:.3} of its speed",
        shape.m,
        shape.n,
        shape.k,
        speed(own),
        speed(reference),
        reference / own
    );
}
