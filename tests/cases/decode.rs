//! Decoding (`selvedge::attention::decode`) against its definition in f64, and the bits of a sequence in other batches and caches. Shared
//! by the emulated kernels and the device suite.

use half::{bf16, f16};
use selvedge::attention::{
    Band, DecodeOperands, DecodeWorkspace, NewPositions, Problem, RotaryAngles, decode,
};
use selvedge::driver::{DeviceSlice, Stream};
use selvedge::types::{DType, Layout};

pub type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Sequences of several lengths against one cache.
#[derive(Clone, Debug)]
pub struct DecodeCase {
    pub dtype: DType,
    /// Query heads and key heads.
    pub heads: [usize; 2],
    pub queries: usize,
    /// The keys of each sequence, with the new ones.
    pub lengths: Vec<usize>,
    pub capacity: usize,
    pub dimension: usize,
    pub band: Band,
    pub soft_cap: Option<f64>,
    /// The last positions are new.
    pub has_new: bool,
    /// The pairs that turn.
    pub half: Option<usize>,
    /// Cache and result are (batch, position, head, element) in memory, and queries and new keys parts of one packed tensor.
    pub is_packed: bool,
}

impl DecodeCase {
    pub fn new(heads: [usize; 2], queries: usize, lengths: &[usize], dimension: usize) -> DecodeCase {
        DecodeCase {
            dtype: DType::BF16,
            heads,
            queries,
            lengths: lengths.to_vec(),
            capacity: lengths.iter().copied().max().unwrap_or(0) + 5,
            dimension,
            band: Band::causal(),
            soft_cap: None,
            has_new: false,
            half: None,
            is_packed: false,
        }
    }
}

/// The cases of both dtypes: around chunks of 256 keys and groups of 2048, groups of heads, several queries, windows, soft caps, new
/// positions with and without rotation. `longest` limits the lengths.
pub fn cases(longest: usize) -> Vec<DecodeCase> {
    let window = |before| Band { before: Some(before), after: Some(0) };
    let mut all = vec![
        DecodeCase::new([1, 1], 1, &[1, 0, 64], 64),
        DecodeCase::new([4, 2], 1, &[255, 256, 257, 1], 64),
        DecodeCase { has_new: true, half: Some(64), ..DecodeCase::new([8, 2], 1, &[300, 1, 513], 128) },
        DecodeCase { has_new: true, half: Some(32), ..DecodeCase::new([2, 2], 1, &[65, 400], 64) },
        DecodeCase { has_new: true, is_packed: true, ..DecodeCase::new([4, 4], 2, &[130, 2, 257], 40) },
        DecodeCase { has_new: true, half: Some(10), ..DecodeCase::new([6, 2], 3, &[70, 3, 258], 96) },
        DecodeCase { band: window(70), ..DecodeCase::new([4, 1], 1, &[600, 30], 64) },
        DecodeCase { band: window(0), has_new: true, ..DecodeCase::new([2, 1], 4, &[520, 4], 128) },
        DecodeCase {
            soft_cap: Some(2.0),
            half: Some(20),
            has_new: true,
            ..DecodeCase::new([2, 1], 1, &[300], 40)
        },
        DecodeCase { band: Band::default(), ..DecodeCase::new([2, 2], 8, &[300, 5], 64) },
        DecodeCase { has_new: true, half: Some(128), ..DecodeCase::new([4, 2], 1, &[270, 20], 256) },
        DecodeCase { is_packed: true, ..DecodeCase::new([20, 1], 1, &[300], 136) },
        // More rows than a block has, and a query before the first key.
        DecodeCase { has_new: true, half: Some(64), ..DecodeCase::new([12, 1], 8, &[290, 5], 128) },
        DecodeCase { has_new: true, half: Some(32), ..DecodeCase::new([2, 1], 1, &[2100, 4099], 64) },
        DecodeCase { band: window(2500), ..DecodeCase::new([2, 1], 2, &[4500, 2050], 64) },
    ];
    all.retain(|case| case.lengths.iter().all(|length| *length <= longest));
    let f16 = all.iter().map(|case| DecodeCase { dtype: DType::F16, ..case.clone() });
    let f16: Vec<DecodeCase> = f16.collect();
    all.extend(f16);
    all
}

fn rounded(dtype: DType, x: f64) -> (u16, f64) {
    match dtype {
        DType::BF16 => (bf16::from_f64(x).to_bits(), bf16::from_f64(x).to_f64()),
        _ => (f16::from_f64(x).to_bits(), f16::from_f64(x).to_f64()),
    }
}

fn value(dtype: DType, bits: u16) -> f64 {
    match dtype {
        DType::BF16 => bf16::from_bits(bits).to_f64(),
        _ => f16::from_bits(bits).to_f64(),
    }
}

/// A number in -1.5 to 1.5 that follows from its place.
fn number(place: [usize; 5]) -> f64 {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    for part in place {
        state = (state ^ part as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        state ^= state >> 32;
    }
    3.0 * ((state >> 11) as f64 / (1u64 << 53) as f64 - 0.5)
}

/// Returns the offset of a row.
fn offset_of(place: [usize; 3], layout: &Layout) -> usize {
    place.iter().zip(layout.strides()).map(|(at, stride)| at * *stride as usize).sum()
}

/// The kinds of operands, by which their numbers differ.
const QUERY: usize = 0;
const KEY: usize = 1;

/// The bits of a NaN of both dtypes.
const POISON: u16 = 0xffff;

/// Operands in memory, and what the results are.
struct Prepared {
    queries: (Vec<u16>, Layout),
    caches: [(Vec<u16>, Layout); 2],
    new: Option<[(Vec<u16>, Layout); 2]>,
    angles: Option<[Vec<f32>; 2]>,
    /// The values of (batch, head, query, element), with the magnitude of their terms.
    results: Vec<(f64, f64)>,
    /// The caches after the call.
    filled: [Vec<u16>; 2],
}

impl DecodeCase {
    fn layout(&self, heads: usize, positions: usize, more: usize) -> selvedge::Result<Layout> {
        let sizes = [self.lengths.len(), heads, positions, self.dimension];
        if !self.is_packed {
            return Layout::contiguous(&sizes);
        }
        let row = heads * self.dimension + more;
        let strides = [positions * row, self.dimension, row, 1];
        Layout::strided(&sizes, &strides.map(|stride| stride as isize), 0)
    }

    fn angle(&self, position: usize, pair: usize) -> (f32, f32) {
        let (sin, cos) = (position as f64 * 0.7f64.powi(pair as i32)).sin_cos();
        (cos as f32, sin as f32)
    }

    /// Returns a head at a position, rounded to the dtype, with its bits: rotated if it is to be.
    fn row(&self, place: [usize; 4], position: i64, is_rotated: bool) -> Vec<(u16, f64)> {
        let [kind, batch, head, at] = place;
        let plain: Vec<(u16, f64)> = (0..self.dimension)
            .map(|element| rounded(self.dtype, number([kind, batch, head, at, element])))
            .collect();
        let Some(half) = self.half.filter(|_| is_rotated && position >= 0) else { return plain };
        let turned = |element: usize| {
            let pair = element % half;
            let (cos, sin) = self.angle(position as usize, pair);
            let (partner, sin) = if element < half { (element + half, -sin) } else { (element - half, sin) };
            // As the kernel: two products and a sum in f32.
            let sum = plain[element].1 as f32 * cos + plain[partner].1 as f32 * sin;
            rounded(self.dtype, f64::from(sum))
        };
        (0..self.dimension)
            .map(|element| if element < 2 * half { turned(element) } else { plain[element] })
            .collect()
    }

    fn keys_of(&self, length: usize, query: usize) -> std::ops::Range<usize> {
        let position = (query + length) as i64 - self.queries as i64;
        let limit = |limit: Option<usize>| limit.map_or(1i64 << 40, |limit| limit as i64);
        let first = (position - limit(self.band.before)).max(0);
        let end = (position + limit(self.band.after) + 1).min(length as i64);
        first as usize..end.max(first) as usize
    }

    fn prepare(&self) -> selvedge::Result<Prepared> {
        let Self { heads: [heads, key_heads], queries, capacity, dimension, .. } = *self;
        let group = heads / key_heads;
        let scale = 1.0 / (dimension as f64).sqrt();
        let of_queries = self.layout(heads, queries, 2 * key_heads * dimension)?;
        let of_new = self.layout(key_heads, queries, (heads + key_heads) * dimension)?;
        let of_cache = self.layout(key_heads, capacity, 0)?;
        let memory = |layout: &Layout| vec![POISON; layout.end()];
        let mut query_memory = memory(&of_queries);
        let mut caches = [memory(&of_cache), memory(&of_cache)];
        let mut filled = caches.clone();
        let mut new = [memory(&of_new), memory(&of_new)];
        let mut results = Vec::new();
        let write = |memory: &mut [u16], layout: &Layout, place: [usize; 3], row: &[(u16, f64)]| {
            let offset = offset_of(place, layout);
            for (to, (bits, _)) in memory[offset..].iter_mut().zip(row) {
                *to = *bits;
            }
        };
        for (batch, &length) in self.lengths.iter().enumerate() {
            let first_new = if self.has_new { length.saturating_sub(queries) } else { length };
            let missing = queries.saturating_sub(length);
            // Of each key head its keys and values.
            let mut rows = Vec::new();
            for head in 0..key_heads {
                let mut of_head = [Vec::new(), Vec::new()];
                for position in 0..length {
                    for (kind, of_kind) in of_head.iter_mut().enumerate() {
                        let place = [KEY + kind, batch, head, position];
                        let is_new = position >= first_new;
                        // The cache's keys are what they are.
                        let row = self.row(place, position as i64, kind == 0 && is_new);
                        write(&mut filled[kind], &of_cache, [batch, head, position], &row);
                        match is_new {
                            true => {
                                let plain = self.row(place, position as i64, false);
                                let at = position - first_new + missing;
                                write(&mut new[kind], &of_new, [batch, head, at], &plain);
                            }
                            false => write(&mut caches[kind], &of_cache, [batch, head, position], &row),
                        }
                        of_kind.push(row);
                    }
                }
                rows.push(of_head);
            }
            for head in 0..heads {
                let [keys, values] = &rows[head / group];
                for query in 0..queries {
                    let position = (query + length) as i64 - queries as i64;
                    let place = [QUERY, batch, head, query];
                    write(&mut query_memory, &of_queries, [batch, head, query], &self.row(place, 0, false));
                    let row = self.row(place, position, true);
                    let range = self.keys_of(length, query);
                    let dot = |key: &[(u16, f64)]| row.iter().zip(key).map(|(a, b)| a.1 * b.1).sum::<f64>();
                    let cap = |score: f64| self.soft_cap.map_or(score, |cap| cap * (score / cap).tanh());
                    let scores: Vec<f64> =
                        keys[range.clone()].iter().map(|key| cap(scale * dot(key))).collect();
                    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let sum: f64 = scores.iter().map(|score| (score - most).exp()).sum();
                    for element in 0..dimension {
                        let (mut value, mut magnitude) = (0.0, 0.0);
                        for (score, row) in scores.iter().zip(&values[range.clone()]) {
                            let term = (score - most).exp() / sum * row[element].1;
                            (value, magnitude) = (value + term, magnitude + term.abs());
                        }
                        results.push((value, magnitude));
                    }
                }
            }
        }
        let angles = self.half.map(|half| {
            let (mut cosines, mut sines) = (Vec::new(), Vec::new());
            for position in 0..capacity {
                let of_position: Vec<(f32, f32)> = (0..half).map(|pair| self.angle(position, pair)).collect();
                cosines.extend(of_position.iter().map(|(cos, _)| cos));
                sines.extend(of_position.iter().map(|(_, sin)| -sin));
                sines.extend(of_position.iter().map(|(_, sin)| sin));
            }
            [cosines, sines]
        });
        let [keys, values] = caches;
        let [new_keys, new_values] = new;
        Ok(Prepared {
            queries: (query_memory, of_queries),
            caches: [(keys, of_cache), (values, of_cache)],
            new: self.has_new.then_some([(new_keys, of_new), (new_values, of_new)]),
            angles,
            results,
            filled,
        })
    }

    /// Runs the case and compares results and caches. Returns the results' bits, of (batch, head, query, element).
    fn run(&self, stream: &Stream) -> Result<Vec<u16>, Box<dyn std::error::Error>> {
        let prepared = self.prepare()?;
        let upload = |elements: &[u16]| stream.upload(bytemuck::cast_slice::<u16, u8>(elements));
        let of_result = self.layout(self.heads[0], self.queries, 0)?;
        let problem = Problem {
            band: self.band,
            soft_cap: self.soft_cap,
            ..Problem::new(self.dtype, prepared.queries.1, prepared.caches[0].1, prepared.caches[1].1)
        };
        let queries = upload(&prepared.queries.0)?;
        let mut caches = [upload(&prepared.caches[0].0)?, upload(&prepared.caches[1].0)?];
        let new = match &prepared.new {
            Some([keys, values]) => Some([(upload(&keys.0)?, keys.1), (upload(&values.0)?, values.1)]),
            None => None,
        };
        let angles = match &prepared.angles {
            Some([cosines, sines]) => Some([stream.upload(cosines)?, stream.upload(sines)?]),
            None => None,
        };
        let lengths: Vec<i32> = self.lengths.iter().map(|length| *length as i32).collect();
        let lengths = stream.upload(&lengths)?;
        let mut result = upload(&vec![POISON; of_result.end()])?;
        let mut workspace = DecodeWorkspace::new(stream, &problem)?;
        let [keys, values] = &mut caches;
        let operands = DecodeOperands {
            queries: DeviceSlice::from(&queries),
            keys: keys.slice_mut(..)?,
            values: values.slice_mut(..)?,
            lengths: Some(DeviceSlice::from(&lengths)),
            new: new.as_ref().map(|[keys, values]| NewPositions {
                keys: (DeviceSlice::from(&keys.0), &keys.1),
                values: (DeviceSlice::from(&values.0), &values.1),
            }),
            angles: angles.as_ref().map(|[cosines, sines]| RotaryAngles {
                cosines: DeviceSlice::from(cosines),
                sines: DeviceSlice::from(sines),
                half: self.half.unwrap_or(0),
            }),
        };
        decode(stream, &problem, operands, (result.slice_mut(..)?, &of_result), &mut workspace)?;
        // Again with the same workspace: the caches have the new positions.
        let [keys, values] = &mut caches;
        let read_again = DecodeOperands {
            queries: DeviceSlice::from(&queries),
            keys: keys.slice_mut(..)?,
            values: values.slice_mut(..)?,
            lengths: Some(DeviceSlice::from(&lengths)),
            new: None,
            angles: None,
        };
        let is_plain = self.half.is_none();
        if is_plain {
            result = upload(&vec![POISON; of_result.end()])?;
            decode(stream, &problem, read_again, (result.slice_mut(..)?, &of_result), &mut workspace)?;
        }
        let found: Vec<u16> = bytemuck::cast_slice::<u8, u16>(&stream.download(&result)?).to_vec();
        let (unit, smallest) = match self.dtype {
            DType::BF16 => (1.0 / 256.0, 1e-30),
            _ => (1.0 / 2048.0, 1.0 / 16384.0),
        };
        // The hyperbolic tangent is an approximation.
        let of_cap = self.soft_cap.map_or(0.0, |cap| 2e-3 * cap);
        let mut bits = Vec::new();
        let mut wanted = prepared.results.iter();
        for (batch, length) in self.lengths.iter().enumerate() {
            for head in 0..self.heads[0] {
                for query in 0..self.queries {
                    let offset = offset_of([batch, head, query], &of_result);
                    for (element, found) in found[offset..][..self.dimension].iter().enumerate() {
                        let Some(&(exact, magnitude)) = wanted.next() else {
                            return Err("too few results".into());
                        };
                        let allowed = (1.25 * unit + of_cap) * (magnitude + exact.abs())
                            + smallest * f64::from(u8::from(magnitude > 0.0));
                        let of = value(self.dtype, *found);
                        if (of - exact).abs() > allowed || of.is_nan() {
                            let place = [batch, head, query, element];
                            return Err(format!(
                                "{of} at {place:?} of {length} keys in place of {exact} within {allowed}"
                            )
                            .into());
                        }
                        bits.push(*found);
                    }
                }
            }
        }
        for (name, (memory, filled)) in ["keys", "values"].iter().zip(caches.iter().zip(&prepared.filled)) {
            let found = stream.download(memory)?;
            let found: &[u16] = bytemuck::cast_slice(&found);
            if let Some(at) = found.iter().zip(filled).position(|(a, b)| a != b) {
                return Err(
                    format!("{name}: element {at} is {:#x} and not {:#x}", found[at], filled[at]).into()
                );
            }
        }
        Ok(bits)
    }

    /// Compares the case with its definition, and the bits of its first sequence with those in a batch of its own, in a larger
    /// cache, and beside many others, where splits are groups.
    pub fn check(&self, stream: &Stream) -> Outcome {
        let bits = self.run(stream).map_err(|error| format!("{self:?}: {error}"))?;
        let of_first = bits.len() / self.lengths.len();
        let first = self.lengths[..1].to_vec();
        let alone = DecodeCase { lengths: first.clone(), ..self.clone() };
        let larger = DecodeCase { capacity: self.capacity + 3000, ..alone.clone() };
        let many = [&self.lengths[..], &[1; 9]].concat();
        let beside = DecodeCase { lengths: many, ..self.clone() };
        for other in [alone, larger, beside] {
            let found = other.run(stream).map_err(|error| format!("{other:?}: {error}"))?;
            if found[..of_first] != bits[..of_first] {
                return Err(format!("{self:?} has other bits as {other:?}").into());
            }
        }
        Ok(())
    }
}
