//! How long each way to make a product takes on a device.
//!
//! Ways take turns within a round and change their order between rounds, so that a card that warms up or slows down does so
//! for all of them. A sample is a graph of as many launches as last about [`LONG`], since the host needs longer for a
//! small product than the device.

use half::{bf16, f16};
use num_complex::Complex;
use selvedge::Result;
use selvedge::driver::{DeviceBuffer, ExecutableGraph, Stream};
use selvedge::gemm::{GemmElement, Product, Way, gemm};
use selvedge::types::DType;

/// A sample this long, in seconds, is known well enough.
const LONG: f64 = 200e-6;
/// The most launches of a sample.
const MOST_LAUNCHES: usize = 40;
/// Different random numbers; operands repeat them.
const DIFFERENT: usize = 1 << 20;

/// A way and the median of its times.
#[derive(Debug, Clone, Copy)]
pub struct Timed {
    pub way: Way,
    /// Seconds of one product.
    pub seconds: f64,
}

/// Operands on the device, long enough for every product that is measured.
pub struct Operands<T: GemmElement> {
    stream: Stream,
    a: DeviceBuffer<T>,
    b: DeviceBuffer<T>,
    c: DeviceBuffer<T>,
    factors: (T::Scalar, T::Scalar),
}

/// Operands of a dtype that is known at run time.
pub enum AnyOperands {
    F16(Operands<f16>),
    BF16(Operands<bf16>),
    F32(Operands<f32>),
    F64(Operands<f64>),
    C64(Operands<Complex<f32>>),
    C128(Operands<Complex<f64>>),
}

impl AnyOperands {
    /// With room for so many elements of A, B and C; none for a dtype that is not tuned.
    pub fn new(stream: &Stream, dtype: DType, elements: [usize; 3]) -> Result<Option<AnyOperands>> {
        let complex = |re: f32, im: f32| Complex::new(re, im);
        let wide = |re: f32, im: f32| Complex::new(f64::from(re), f64::from(im));
        Ok(Some(match dtype {
            DType::F16 => {
                AnyOperands::F16(Operands::new(stream, elements, (1.0, 0.0), |x, _| f16::from_f32(x))?)
            }
            DType::BF16 => {
                AnyOperands::BF16(Operands::new(stream, elements, (1.0, 0.0), |x, _| bf16::from_f32(x))?)
            }
            DType::F32 => AnyOperands::F32(Operands::new(stream, elements, (1.0, 0.0), |x, _| x)?),
            DType::F64 => AnyOperands::F64(Operands::new(stream, elements, (1.0, 0.0), |x, _| x.into())?),
            DType::C64 => {
                let factors = (complex(1.0, 0.0), complex(0.0, 0.0));
                AnyOperands::C64(Operands::new(stream, elements, factors, complex)?)
            }
            DType::C128 => {
                let factors = (wide(1.0, 0.0), wide(0.0, 0.0));
                AnyOperands::C128(Operands::new(stream, elements, factors, wide)?)
            }
            _ => return Ok(None),
        }))
    }

    /// Times these ways; those that fail are left out.
    pub fn time(&mut self, product: &Product, ways: &[Way], rounds: u32) -> Result<Vec<Timed>> {
        match self {
            AnyOperands::F16(operands) => operands.time(product, ways, rounds),
            AnyOperands::BF16(operands) => operands.time(product, ways, rounds),
            AnyOperands::F32(operands) => operands.time(product, ways, rounds),
            AnyOperands::F64(operands) => operands.time(product, ways, rounds),
            AnyOperands::C64(operands) => operands.time(product, ways, rounds),
            AnyOperands::C128(operands) => operands.time(product, ways, rounds),
        }
    }
}

/// A way that is ready to be timed.
struct Ready {
    way: Way,
    graph: ExecutableGraph,
    launches: usize,
    samples: Vec<f64>,
}

impl<T: GemmElement> Operands<T> {
    fn new(
        stream: &Stream,
        [a, b, c]: [usize; 3],
        factors: (T::Scalar, T::Scalar),
        number: impl Fn(f32, f32) -> T,
    ) -> Result<Operands<T>> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut normal = || {
            // Four uniform numbers of 16 bits add up to nearly a normal one.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let bits = state ^ state >> 29;
            let sum: u32 = (0..4).map(|part| u32::from((bits >> (16 * part)) as u16)).sum();
            (sum as f32 / 65_536.0 - 2.0) * 3.0f32.sqrt()
        };
        let values: Vec<T> = (0..DIFFERENT).map(|_| number(normal(), normal())).collect();
        let values = stream.upload(&values)?;
        let filled = |count: usize| -> Result<DeviceBuffer<T>> {
            let mut buffer = stream.uninitialized::<T>(count)?;
            // An odd part, so that repetitions do not line up with rows.
            for start in (0..count).step_by(DIFFERENT - 4099) {
                let length = (DIFFERENT - 4099).min(count - start);
                stream.copy(&values.slice(..length)?, &mut buffer.slice_mut(start..start + length)?)?;
            }
            Ok(buffer)
        };
        let (a, b, c) = (filled(a)?, filled(b)?, stream.zeros::<T>(c)?);
        Ok(Operands { stream: stream.clone(), a, b, c, factors })
    }

    fn multiply(&mut self, stream: &Stream, product: &Product) -> Result<()> {
        let (one, zero) = self.factors;
        gemm::<T, T>(stream, product, one, &self.a, &self.b, zero, &mut self.c)
    }

    fn time(&mut self, product: &Product, ways: &[Way], rounds: u32) -> Result<Vec<Timed>> {
        let mut ready = Vec::with_capacity(ways.len());
        for &way in ways {
            match self.ready(&product.in_way(way), way) {
                Ok(one) => ready.push(one),
                // A device that is lost fails everything; a way that cannot be is one less.
                Err(error) if self.stream.device().is_lost() => return Err(error),
                Err(error) => log::warn!("{way} of {product} is left out: {error}"),
            }
        }
        for round in 0..rounds {
            let order: Vec<usize> = match round % 2 {
                0 => (0..ready.len()).collect(),
                _ => (0..ready.len()).rev().collect(),
            };
            for index in order {
                let Some(one) = ready.get_mut(index) else { continue };
                let seconds = seconds(&self.stream, || one.graph.launch(&self.stream))?;
                one.samples.push(seconds / one.launches as f64);
            }
        }
        Ok(ready
            .into_iter()
            .map(|Ready { way, mut samples, .. }| {
                samples.sort_by(f64::total_cmp);
                Timed { way, seconds: samples.get(samples.len() / 2).copied().unwrap_or(f64::INFINITY) }
            })
            .collect())
    }

    fn ready(&mut self, product: &Product, way: Way) -> Result<Ready> {
        let stream = self.stream.clone();
        // The first one loads what it needs; the second tells how long it takes.
        self.multiply(&stream, product)?;
        let one = seconds(&stream, || self.multiply(&stream, product))?;
        let launches = ((LONG / one.max(1e-9)).ceil() as usize).clamp(1, MOST_LAUNCHES);
        let captured =
            stream.capture(|stream| (0..launches).try_for_each(|_| self.multiply(stream, product)))?;
        let graph = captured.0.instantiate()?;
        graph.launch(&stream)?;
        Ok(Ready { way, graph, launches, samples: Vec::new() })
    }
}

/// The device's own time of some work.
pub fn seconds(stream: &Stream, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let device = stream.device();
    let (mut start, mut end) = (device.timing_event()?, device.timing_event()?);
    start.record(stream)?;
    work()?;
    end.record(stream)?;
    end.synchronize()?;
    Ok(f64::from(start.elapsed_ms(&end)?) / 1e3)
}

/// Bytes a second that a copy on the device reads and writes.
pub fn bandwidth(stream: &Stream) -> Result<f64> {
    const BYTES: usize = 256 << 20;
    let (from, mut to) = (stream.zeros::<u8>(BYTES)?, stream.zeros::<u8>(BYTES)?);
    let mut best = f64::INFINITY;
    for _ in 0..8 {
        best = best.min(seconds(stream, || stream.copy(&from, &mut to))?);
    }
    Ok(2.0 * BYTES as f64 / best)
}
