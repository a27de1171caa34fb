//! The kernels of attention for compute capability 9.0 without a GPU, held against the definition in f64: results, LSE and gradients.
//!
//! Every output is NaN before, also between the elements of its layout, which must stay so. Gradients have the same bits under
//! another schedule. Blocks start in any order.

mod options;
mod sequences;

use bytemuck::Pod;
use half::{bf16, f16};
use selvedge::attention::{Band, Gradients, Operands, Problem, backward, forward};
use selvedge::driver::{DeviceBuffer, DeviceSlice, Stream};
use selvedge::types::{DType, Layout};

use super::build::Family;
use super::{Child, Outcome, emulate, every, with_seeds};
use crate::support::{Fake, Numbers};

const fn attention(source: &'static str, defines: &'static [&'static str]) -> Family {
    Family { source, defines, cluster: 1, resident: 4, any_order: true, fault: None }
}

const FORWARD: &str = "attention_forward.cu";
const BACKWARD: &str = "attention_backward.cu";
const FORWARD_F16: Family = attention(FORWARD, &["-DELEMENT=f16"]);
const BACKWARD_F16: Family = attention(BACKWARD, &["-DELEMENT=f16"]);
const FORWARD_BF16: Family = attention(FORWARD, &["-DELEMENT=bf16"]);
const BACKWARD_BF16: Family = attention(BACKWARD, &["-DELEMENT=bf16"]);
/// The families of the injected faults.
pub(super) const FAULTY_FORWARD: Family = attention(FORWARD, &["-DELEMENT=f16", "-DDIMENSION=64"]);
pub(super) const FAULTY_WIDE: Family = attention(FORWARD, &["-DELEMENT=f16", "-DDIMENSION=192"]);
pub(super) const FAULTY_BACKWARD: Family = attention(BACKWARD, &["-DELEMENT=f16", "-DDIMENSION=64"]);

pub(super) static CHILDREN: &[(&str, Child)] = &[
    ("attention_f16", |fake| in_every_case::<f16>(fake, &[FORWARD_F16, BACKWARD_F16])),
    ("attention_bf16", |fake| in_every_case::<bf16>(fake, &[FORWARD_BF16, BACKWARD_BF16])),
    ("attention_options_f16", |fake| options::in_every_case::<f16>(fake, &[FORWARD_F16, BACKWARD_F16])),
    ("attention_options_bf16", |fake| options::in_every_case::<bf16>(fake, &[FORWARD_BF16, BACKWARD_BF16])),
    ("attention_sequences", |fake| sequences::that_do_not_fit(fake, &[FORWARD_F16, BACKWARD_F16])),
];

/// Fewer than most cases have tiles, so that blocks take several.
const MULTIPROCESSORS: i32 = 2;

/// An element type with its unit roundoff and smallest normal number.
trait Element: Pod {
    const DTYPE: DType;
    const UNIT: f64;
    const MIN_POSITIVE: f64;
    fn nearest(x: f64) -> Self;
    fn value(self) -> f64;
    fn bits(self) -> u16;
}

macro_rules! elements {
    ($($element:ty: $dtype:expr, $unit:expr, $smallest:expr;)*) => {$(
        impl Element for $element {
            const DTYPE: DType = $dtype;
            const UNIT: f64 = $unit;
            const MIN_POSITIVE: f64 = $smallest;
            fn nearest(x: f64) -> Self {
                <$element>::from_f64(x)
            }
            fn value(self) -> f64 {
                self.to_f64()
            }
            fn bits(self) -> u16 {
                self.to_bits()
            }
        }
    )*};
}

elements! {
    f16: DType::F16, 1.0 / 2048.0, 1.0 / 16384.0;
    bf16: DType::BF16, 1.0 / 256.0, f32::MIN_POSITIVE as f64;
}

/// The bits of a NaN in both element types, which outputs have before.
const POISON: u16 = 0xffff;

/// One attention.
#[derive(Clone, Copy, Debug)]
struct Case {
    batch: usize,
    heads: usize,
    key_heads: usize,
    queries: usize,
    keys: usize,
    dimension: usize,
    band: Band,
    /// Queries, keys and values of a position are consecutive, and so are the heads of a result.
    is_packed: bool,
}

/// Heads of two batches, whose queries share no keys, or in pairs, or all.
const HEADS: [(usize, usize, usize); 4] = [(1, 2, 2), (2, 1, 1), (1, 4, 2), (1, 3, 1)];
const DIMENSIONS: [usize; 5] = [8, 40, 64, 96, 128];
/// Queries and keys: fewer, as many and more than the rows of tiles, and queries without keys where the band is causal.
const LENGTHS: [(usize, usize); 11] = [
    (1, 1),
    (1, 257),
    (257, 1),
    (63, 63),
    (63, 130),
    (130, 63),
    (130, 130),
    (257, 257),
    (257, 130),
    (130, 257),
    (390, 390),
];
/// The largest head dimension of the backward.
const BACKWARD_DIMENSION: usize = 128;
/// Head dimensions of the forward alone, and lengths around its tiles of 128 queries and blocks of 112 and 80 keys.
const WIDE_DIMENSIONS: [usize; 4] = [136, 192, 200, 256];
const WIDE_LENGTHS: [(usize, usize); 11] = [
    (1, 1),
    (1, 225),
    (129, 1),
    (63, 80),
    (64, 81),
    (65, 112),
    (128, 113),
    (130, 130),
    (257, 257),
    (257, 130),
    (130, 257),
];

fn bands() -> [Band; 6] {
    let band = |before, after| Band { before, after };
    [
        Band::default(),
        Band::causal(),
        band(Some(40), Some(0)),
        band(Some(10), Some(70)),
        band(None, Some(129)),
        band(Some(0), Some(0)),
    ]
}

/// Every head dimension with all lengths. The dtypes alternate in the bands, because each case takes a second.
fn cases(dtype: DType, dimensions: &[usize], lengths: &[(usize, usize)]) -> Vec<Case> {
    let (mut cases, bands) = (Vec::new(), bands());
    for (index, &dimension) in dimensions.iter().enumerate() {
        for &(queries, keys) in lengths {
            let number = cases.len();
            let band = bands[(number + index + usize::from(dtype == DType::BF16)) % bands.len()];
            let (batch, heads, key_heads) = HEADS[number % HEADS.len()];
            let is_packed = queries == keys && number % 3 != 0;
            cases.push(Case { batch, heads, key_heads, queries, keys, dimension, band, is_packed });
        }
    }
    cases
}

impl Case {
    fn scale(&self) -> f64 {
        1.0 / (self.dimension as f64).sqrt()
    }

    /// Returns the layouts of queries, keys and values in one memory, and its length.
    fn layouts(&self) -> selvedge::Result<([Layout; 3], usize)> {
        let Case { batch, heads, key_heads, queries, keys, dimension, .. } = *self;
        let counts = [heads, key_heads, key_heads];
        let lengths = [queries, keys, keys];
        let row = (heads + 2 * key_heads) * dimension + 8;
        let (mut layouts, mut next) = ([Layout::contiguous(&[0])?; 3], 0);
        for ((layout, count), length) in layouts.iter_mut().zip(counts).zip(lengths) {
            let strides = if self.is_packed {
                [length * row, dimension, row, 1]
            } else {
                [count * length * dimension, length * dimension, dimension, 1]
            };
            *layout = Layout::strided(
                &[batch, count, length, dimension],
                &strides.map(|stride| stride as isize),
                next,
            )?;
            next += if self.is_packed { count * dimension } else { batch * count * length * dimension };
        }
        Ok((layouts, if self.is_packed { batch * queries * row } else { next }))
    }

    /// Returns the layout of the result.
    fn result(&self) -> selvedge::Result<Layout> {
        let Case { batch, heads, queries, dimension, .. } = *self;
        if self.is_packed {
            return Layout::contiguous(&[batch, queries, heads, dimension])?.transpose(1, 2);
        }
        Layout::contiguous(&[batch, heads, queries, dimension])
    }

    /// Returns the keys that a query reads.
    fn keys_of(&self, query: usize) -> std::ops::Range<usize> {
        let position = query as i64 + self.keys as i64 - self.queries as i64;
        let limit = |limit: Option<usize>| limit.map_or(i64::from(i32::MAX), |limit| limit as i64);
        let first = (position - limit(self.band.before)).max(0);
        let end = (position + limit(self.band.after) + 1).min(self.keys as i64);
        first as usize..end.max(first) as usize
    }
}

/// An array of (batch, heads, length, head dimension).
struct Array {
    sizes: [usize; 4],
    numbers: Vec<f64>,
}

impl Array {
    fn zeros(layout: &Layout) -> Array {
        let sizes = std::array::from_fn(|axis| layout.shape()[axis]);
        Array { sizes, numbers: vec![0.0; sizes.iter().product()] }
    }

    fn start(&self, batch: usize, head: usize, position: usize) -> usize {
        ((batch * self.sizes[1] + head) * self.sizes[2] + position) * self.sizes[3]
    }

    fn row(&self, batch: usize, head: usize, position: usize) -> &[f64] {
        &self.numbers[self.start(batch, head, position)..][..self.sizes[3]]
    }

    /// Adds `factor` times `row` to a row.
    fn add(&mut self, at: [usize; 3], factor: f64, row: &[f64]) {
        let start = self.start(at[0], at[1], at[2]);
        for (sum, number) in self.numbers[start..].iter_mut().zip(row) {
            *sum += factor * number;
        }
    }

    fn absolute(&self) -> Array {
        Array { sizes: self.sizes, numbers: self.numbers.iter().map(|number| number.abs()).collect() }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The offsets of a layout's elements in memory, in row-major order.
fn offsets(layout: &Layout) -> Vec<usize> {
    let mut offsets = vec![layout.offset()];
    for (&size, &stride) in layout.shape().iter().zip(layout.strides()) {
        offsets = offsets
            .iter()
            .flat_map(|offset| (0..size).map(move |index| offset + index * stride as usize))
            .collect();
    }
    offsets
}

fn array<T: Element>(memory: &[T], layout: &Layout) -> Array {
    let numbers = offsets(layout).into_iter().map(|offset| memory[offset].value()).collect();
    Array { numbers, ..Array::zeros(layout) }
}

/// An array with the magnitude of the terms that make it, to which an error is relative.
struct Wanted {
    value: Array,
    magnitude: Array,
}

impl Wanted {
    fn zeros(layout: &Layout) -> Wanted {
        Wanted { value: Array::zeros(layout), magnitude: Array::zeros(layout) }
    }
}

/// The definition: the result, the LSE, and the gradients of queries, keys and values.
struct Reference {
    result: Wanted,
    lse: Vec<f64>,
    gradients: [Wanted; 3],
}

fn reference<T: Element>(case: &Case, [q, k, v, d_o]: [&Array; 4], layouts: &[Layout; 3]) -> Reference {
    let [of_q, of_k, of_v] = [layouts[0], layouts[1], layouts[2]];
    let mut result = Wanted::zeros(&of_q);
    let mut gradients = [Wanted::zeros(&of_q), Wanted::zeros(&of_k), Wanted::zeros(&of_v)];
    let [abs_q, abs_k, abs_v, abs_do] = [q, k, v, d_o].map(Array::absolute);
    let mut lse = Vec::new();
    for batch in 0..case.batch {
        for head in 0..case.heads {
            let key_head = head / (case.heads / case.key_heads);
            for query in 0..case.queries {
                let (keys, at) = (case.keys_of(query), [batch, head, query]);
                let row = q.row(batch, head, query);
                let scores: Vec<f64> =
                    keys.clone().map(|key| case.scale() * dot(row, k.row(batch, key_head, key))).collect();
                let maximum = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = scores.iter().map(|score| (score - maximum).exp()).sum();
                let own_lse = if scores.is_empty() { f64::NEG_INFINITY } else { maximum + sum.ln() };
                lse.push(own_lse);
                let p: Vec<f64> = scores.iter().map(|score| (score - own_lse).exp()).collect();
                for (key, p) in keys.clone().zip(&p) {
                    result.value.add(at, *p, v.row(batch, key_head, key));
                    result.magnitude.add(at, p + T::MIN_POSITIVE, abs_v.row(batch, key_head, key));
                }
                let of_result = d_o.row(batch, head, query);
                let abs_of_result = abs_do.row(batch, head, query);
                let delta = dot(result.value.row(batch, head, query), of_result);
                let abs_delta = dot(result.magnitude.row(batch, head, query), abs_of_result);
                let [d_q, d_k, d_v] = &mut gradients;
                for (key, p) in keys.zip(p) {
                    let at_key = [batch, key_head, key];
                    let change = dot(of_result, v.row(batch, key_head, key)) - delta;
                    let d_s = case.scale() * p * change;
                    // P and dS are rounded, and delta is that of a rounded result.
                    let abs_ds = case.scale()
                        * ((p + T::MIN_POSITIVE) * (2.0 * change.abs() + 2.0 * abs_delta) + T::MIN_POSITIVE);
                    d_q.value.add(at, d_s, k.row(batch, key_head, key));
                    d_q.magnitude.add(at, abs_ds, abs_k.row(batch, key_head, key));
                    d_k.value.add(at_key, d_s, row);
                    d_k.magnitude.add(at_key, abs_ds, abs_q.row(batch, head, query));
                    d_v.value.add(at_key, p, of_result);
                    d_v.magnitude.add(at_key, p + T::MIN_POSITIVE, abs_of_result);
                }
            }
        }
    }
    Reference { result, lse, gradients }
}

/// Compares an element with a value whose terms have a magnitude.
fn compare_element<T: Element>(element: T, value: f64, magnitude: f64) -> Result<(), String> {
    let found = element.value();
    // Numbers without terms are 0 exactly.
    let least = if magnitude == 0.0 { 0.0 } else { T::MIN_POSITIVE };
    let allowed = 1.25 * T::UNIT * (magnitude + value.abs() + least);
    if (found - value).abs() > allowed || found.is_nan() {
        return Err(format!("{found} in place of {value} within {allowed}"));
    }
    Ok(())
}

/// Compares elements in memory, of which those outside of the layouts are as before.
fn compare<T: Element>(name: &str, memory: &[T], parts: &[(&Layout, &Wanted)]) -> Outcome {
    let mut is_outside = vec![true; memory.len()];
    for (index, (layout, wanted)) in parts.iter().enumerate() {
        for (place, offset) in offsets(layout).into_iter().enumerate() {
            is_outside[offset] = false;
            let (value, magnitude) = (wanted.value.numbers[place], wanted.magnitude.numbers[place]);
            if let Err(error) = compare_element(memory[offset], value, magnitude) {
                let [_, heads, length, dimension] = wanted.value.sizes;
                let (row, column) = (place / dimension, place % dimension);
                let at = [row / length / heads, row / length % heads, row % length, column];
                return Err(format!("{name} {index} at {at:?}: {error}").into());
            }
        }
    }
    let mut outside = is_outside.iter().zip(memory).filter(|(is_outside, _)| **is_outside);
    match outside.find(|(_, element)| element.bits() != POISON) {
        Some((_, element)) => Err(format!("{name}: an element outside is {}", element.value()).into()),
        None => Ok(()),
    }
}

fn poisoned<T: Element>(stream: &Stream, length: usize) -> selvedge::Result<DeviceBuffer<u8>> {
    stream.upload(&vec![0xff; length * size_of::<T>()])
}

fn elements<T: Element>(stream: &Stream, memory: &DeviceBuffer<u8>) -> selvedge::Result<Vec<T>> {
    Ok(stream.download(memory)?.chunks_exact(2).map(bytemuck::pod_read_unaligned).collect())
}

/// Runs the forward, and the backward so many times, and compares both with the definition. The backward refuses wide heads.
fn check<T: Element>(stream: &Stream, case: &Case, backwards: usize) -> Outcome {
    let mut numbers = Numbers(1 + case.queries as u64);
    let mut random = |count: usize, most: f64| -> Vec<T> {
        let number = |numbers: &mut Numbers| most * (f64::from(numbers.next()) / 2f64.powi(31) - 1.0);
        (0..count).map(|_| T::nearest(number(&mut numbers))).collect()
    };
    let (layouts, length) = case.layouts()?;
    let of_result = case.result()?;
    let inputs = random(length, 1.5);
    let gradient = random(of_result.end(), 1.0);
    let arrays = layouts.map(|layout| array(&inputs, &layout));
    let of_gradient = array(&gradient, &of_result);
    let [q, k, v] = &arrays;
    let wanted = reference::<T>(case, [q, k, v, &of_gradient], &layouts);

    let [queries, keys, values] = layouts;
    let problem = Problem { band: case.band, ..Problem::new(T::DTYPE, queries, keys, values) };
    let inputs = stream.upload(bytemuck::cast_slice::<T, u8>(&inputs))?;
    let gradient = stream.upload(bytemuck::cast_slice::<T, u8>(&gradient))?;
    let [a, b, c] = [&inputs; 3].map(DeviceSlice::from);
    let memory = Operands::new(a, b, c);
    let mut result = poisoned::<T>(stream, of_result.end())?;
    let mut lse = stream.upload(&vec![f32::NAN; wanted.lse.len()])?;
    forward(stream, &problem, memory, (result.slice_mut(..)?, &of_result), lse.slice_mut(..)?)?;
    compare("the result", &elements::<T>(stream, &result)?, &[(&of_result, &wanted.result)])?;
    for (row, (found, wanted)) in stream.download(&lse)?.into_iter().zip(&wanted.lse).enumerate() {
        let is_near = (f64::from(found) - wanted).abs() < 1e-5;
        if !is_near && f64::from(found) != *wanted {
            return Err(format!("the LSE of row {row} is {found} in place of {wanted}").into());
        }
    }

    let mut first: Option<Vec<T>> = None;
    for _ in 0..backwards {
        let mut gradients = poisoned::<T>(stream, length)?;
        backward(
            stream,
            &problem,
            memory,
            (DeviceSlice::from(&result), &of_result),
            DeviceSlice::from(&lse),
            (DeviceSlice::from(&gradient), &of_result),
            Gradients { memory: gradients.slice_mut(..)?, layouts },
        )?;
        let found = elements::<T>(stream, &gradients)?;
        match &first {
            Some(first) if first.iter().zip(&found).any(|(a, b)| a.bits() != b.bits()) => {
                return Err("the gradients of another schedule have other bits".into());
            }
            Some(_) => {}
            None => {
                let parts = [0, 1, 2].map(|index| (&layouts[index], &wanted.gradients[index]));
                compare("gradient", &found, &parts)?;
                first = Some(found);
            }
        }
    }
    Ok(())
}

/// Child: every head dimension, length and band.
fn in_every_case<T: Element>(fake: &Fake, families: &[Family]) -> Outcome {
    fake.set_multiprocessors(MULTIPROCESSORS);
    emulate(fake, families)?;
    with_seeds(2, |stream| {
        for (name, dimensions, lengths, backwards) in [
            ("attention", &DIMENSIONS[..], &LENGTHS, 2),
            ("wide attention", &WIDE_DIMENSIONS[..], &WIDE_LENGTHS, 0),
        ] {
            for case in every(7, name, cases(T::DTYPE, dimensions, lengths)) {
                check::<T>(stream, &case, backwards).map_err(|error| format!("{case:?}: {error}"))?;
            }
        }
        Ok(())
    })
}

/// Attentions with a faulty family: queries without keys, blocks with and without a mask, blocks that only some consumers read, more
/// blocks than stages, and several tiles of one key block for each block.
pub(super) fn faulty(fake: &Fake, family: Family) -> Outcome {
    fake.set_multiprocessors(MULTIPROCESSORS);
    let is_forward = family.source == FORWARD;
    let dimension = if family.defines == FAULTY_WIDE.defines { 192 } else { 64 };
    if is_forward {
        emulate(fake, &[family])?;
    } else {
        emulate(fake, &[family, FORWARD_F16])?;
    }
    with_seeds(20, |stream| {
        let window = Band { before: Some(300), after: Some(20) };
        for (heads, queries, keys, band) in [
            (2, 257, 200, Band::causal()),
            (2, 150, 400, window),
            (4, 257, 257, Band { before: Some(0), after: Some(0) }),
            (12, 64, 64, Band::default()),
            (1, 130, 700, Band::default()),
        ] {
            let case = Case {
                batch: 1,
                heads,
                key_heads: heads.div_ceil(2),
                queries,
                keys,
                dimension,
                band,
                is_packed: false,
            };
            check::<f16>(stream, &case, usize::from(!is_forward))?;
        }
        options::faulty(stream, dimension)
    })
}
