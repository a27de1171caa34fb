//! The options of attention's kernels: soft cap, dropout, and sequences, of which each is held against the definition by itself:
//! results, LSE and gradients.
//!
//! Memory behind the end of a sequence is NaN, and so are the operands of a whole sequence in some cases: no result of another one
//! may depend on them.

use std::collections::HashSet;

use selvedge::attention::{Dropout, Sequences};

use super::*;

/// Attentions of several lengths, each a sequence or, if there are no [`Sequences`], a batch of the same length as the others.
#[derive(Clone, Debug)]
struct OptionsCase {
    heads: usize,
    key_heads: usize,
    dimension: usize,
    /// Queries and keys of each.
    lengths: Vec<(usize, usize)>,
    lie: Lie,
    band: Band,
    soft_cap: Option<f64>,
    dropout: Option<Dropout>,
    /// Seed and first block are in memory.
    has_generator: bool,
    /// The sequence whose operands are NaN.
    damaged: Option<usize>,
}

/// How the attentions lie in their arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// Each is a whole batch.
    Batches,
    /// Each begins a batch that is so much longer than the longest one.
    Padded(usize),
    /// One after the other in a batch of 1, so far from each other.
    Packed(usize),
    /// As `Packed(0)`, where the last one's lengths in memory reach beyond the arrays.
    Exceeding,
}

/// Philox 4x32-10 from its definition: the four words of a counter whose upper half is 0.
fn philox(seed: u64, block: u64) -> [u32; 4] {
    let mut counter = [block as u32, (block >> 32) as u32, 0, 0];
    let mut key = [seed as u32, (seed >> 32) as u32];
    for _ in 0..10 {
        let product = |factor: u64, word: u32| {
            let product = factor * u64::from(word);
            ((product >> 32) as u32, product as u32)
        };
        let (high_0, low_0) = product(0xD251_1F53, counter[0]);
        let (high_1, low_1) = product(0xCD9E_8D57, counter[2]);
        counter = [high_1 ^ counter[1] ^ key[0], low_1, high_0 ^ counter[3] ^ key[1], low_0];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    counter
}

impl OptionsCase {
    fn sequences(&self) -> Option<Sequences> {
        let [max_queries, max_keys] = self.longest();
        let is_packed = matches!(self.lie, Lie::Packed(_) | Lie::Exceeding);
        let count = self.lengths.len();
        (self.lie != Lie::Batches).then_some(Sequences { count, is_packed, max_queries, max_keys })
    }

    /// Returns the most queries and keys of a sequence.
    fn longest(&self) -> [usize; 2] {
        let most = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
        [most(&mut self.lengths.iter().map(|of| of.0)), most(&mut self.lengths.iter().map(|of| of.1))]
    }

    /// Returns the batch, first query and first key of each sequence, and batch, queries and keys of the arrays.
    fn places(&self) -> (Vec<[usize; 3]>, [usize; 3]) {
        let [queries, keys] = self.longest();
        let gap = match self.lie {
            Lie::Batches | Lie::Padded(_) => {
                let more = if let Lie::Padded(more) = self.lie { more } else { 0 };
                let count = self.lengths.len();
                let places = (0..count).map(|batch| [batch, 0, 0]).collect();
                return (places, [count, queries + more, keys + more]);
            }
            Lie::Packed(gap) => gap,
            Lie::Exceeding => 0,
        };
        let (mut places, mut next) = (Vec::new(), [gap, gap]);
        for (queries, keys) in &self.lengths {
            places.push([0, next[0], next[1]]);
            next = [next[0] + queries + gap, next[1] + keys + gap];
        }
        (places, [1, next[0].max(1), next[1].max(1)])
    }

    /// Returns the bits that decide whether a probability is replaced. `head` is that of all sequences.
    fn bits(&self, dropout: Dropout, head: usize, query: usize, key: usize) -> u32 {
        let [queries, keys] = self.longest();
        let row = head * queries.div_ceil(16) + query / 16;
        let block = (row * keys.div_ceil(16) + key / 16) * 32 + query % 8 * 4 + key % 8 / 2;
        let words = philox(dropout.seed, dropout.offset + block as u64);
        words[query % 16 / 8 + key % 16 / 8 * 2] >> (16 * (key % 2)) & 0xffff
    }

    /// Adds the results and gradients of a sequence and sets its LSE.
    fn add_sequence<T: Element>(
        &self,
        number: usize,
        [batch, first_query, first_key]: [usize; 3],
        [q, k, v, d_o]: &[Array; 4],
        wanted: &mut Reference,
    ) {
        let (queries, keys) = self.lengths[number];
        let Self { heads, key_heads, dimension, band, .. } = *self;
        let of_band = Case { batch: 1, heads, key_heads, queries, keys, dimension, band, is_packed: false };
        let absolute = |row: &[f64]| row.iter().map(|number| number.abs()).collect::<Vec<f64>>();
        let Reference { result, lse, gradients: [d_q, d_k, d_v] } = wanted;
        for head in 0..heads {
            let key_head = head / (heads / key_heads);
            for query in 0..queries {
                let range = of_band.keys_of(query);
                let at = [batch, head, first_query + query];
                let row = q.row(batch, head, first_query + query);
                let scores: Vec<Score> = range
                    .clone()
                    .map(|key| {
                        let score = of_band.scale() * dot(row, k.row(batch, key_head, first_key + key));
                        let tangent = self.soft_cap.map(|cap| (score / cap).tanh());
                        let factor = self.dropout.map_or(1.0, |dropout| {
                            let bits = self.bits(dropout, number * heads + head, query, key);
                            if bits < dropout.threshold { 0.0 } else { dropout.scale() }
                        });
                        Score {
                            value: self.soft_cap.zip(tangent).map_or(score, |(cap, tangent)| cap * tangent),
                            slope: tangent.map_or(1.0, |tangent| 1.0 - tangent * tangent),
                            factor,
                        }
                    })
                    .collect();
                let maximum = scores.iter().map(|score| score.value).fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = scores.iter().map(|score| (score.value - maximum).exp()).sum();
                let own_lse = if scores.is_empty() { f64::NEG_INFINITY } else { maximum + sum.ln() };
                lse[result.value.start(batch, head, first_query + query) / dimension] = own_lse;
                for (key, score) in range.clone().zip(&scores) {
                    let p = (score.value - own_lse).exp();
                    let values = v.row(batch, key_head, first_key + key);
                    result.value.add(at, p * score.factor, values);
                    result.magnitude.add(at, (p + T::MIN_POSITIVE) * score.factor, &absolute(values));
                }
                let of_result = d_o.row(batch, head, first_query + query);
                let (abs_q, abs_of_result) = (absolute(row), absolute(of_result));
                let delta = dot(result.value.row(batch, head, first_query + query), of_result);
                let abs_delta = dot(result.magnitude.row(batch, head, first_query + query), &abs_of_result);
                for (key, Score { value, slope, factor }) in range.zip(scores) {
                    let at_key = [batch, key_head, first_key + key];
                    let (keys, values) =
                        (k.row(batch, key_head, at_key[2]), v.row(batch, key_head, at_key[2]));
                    let p = (value - own_lse).exp();
                    let change = factor * dot(of_result, values) - delta;
                    let d_s = of_band.scale() * p * slope * change;
                    // As in `reference`; the slope is 1 minus a rounded square.
                    let abs_slope = if self.soft_cap.is_some() { slope + 1e-3 } else { 1.0 };
                    let abs_p = p * abs_slope + T::MIN_POSITIVE;
                    let abs_ds =
                        of_band.scale() * (abs_p * (2.0 * change.abs() + 2.0 * abs_delta) + T::MIN_POSITIVE);
                    d_q.value.add(at, d_s, keys);
                    d_q.magnitude.add(at, abs_ds, &absolute(keys));
                    d_k.value.add(at_key, d_s, row);
                    d_k.magnitude.add(at_key, abs_ds, &abs_q);
                    d_v.value.add(at_key, p * factor, of_result);
                    d_v.magnitude.add(at_key, (p + T::MIN_POSITIVE) * factor, &abs_of_result);
                }
            }
        }
    }

    /// Returns the layouts of queries, keys and values.
    fn layouts(&self, [batch, queries, keys]: [usize; 3]) -> selvedge::Result<[Layout; 3]> {
        let layout = |heads: usize, length: usize| {
            if batch == 1 {
                return Layout::contiguous(&[batch, length, heads, self.dimension])?.transpose(1, 2);
            }
            Layout::contiguous(&[batch, heads, length, self.dimension])
        };
        Ok([layout(self.heads, queries)?, layout(self.key_heads, keys)?, layout(self.key_heads, keys)?])
    }

    /// Returns queries, keys, values and the result's gradient, which are NaN outside of the sequences and in a damaged one.
    fn arrays<T: Element>(&self, places: &[[usize; 3]], layouts: &[Layout; 3]) -> [Array; 4] {
        let [queries, keys, values] = *layouts;
        let mut numbers = Numbers(1 + queries.shape()[2] as u64);
        let mut arrays = [queries, keys, values, queries].map(|layout| {
            let mut array = Array::zeros(&layout);
            array.numbers.fill(f64::NAN);
            array
        });
        for (number, (place, lengths)) in places.iter().zip(&self.lengths).enumerate() {
            for (index, array) in arrays.iter_mut().enumerate() {
                let (first, length) =
                    if [1, 2].contains(&index) { (place[2], lengths.1) } else { (place[1], lengths.0) };
                for head in 0..array.sizes[1] {
                    let start = array.start(place[0], head, first);
                    for value in &mut array.numbers[start..start + length * self.dimension] {
                        let random = 1.5 * (f64::from(numbers.next()) / 2f64.powi(31) - 1.0);
                        *value =
                            if self.damaged == Some(number) { f64::NAN } else { T::nearest(random).value() };
                    }
                }
            }
        }
        arrays
    }

    /// Returns what becomes of the positions of all batches, of queries or of keys.
    fn positions(
        &self,
        places: &[[usize; 3]],
        [batch, queries, keys]: [usize; 3],
        is_key: bool,
    ) -> Vec<Position> {
        let is_packed = self.sequences().is_some_and(|sequences| sequences.is_packed);
        let length = if is_key { keys } else { queries };
        let mut state = vec![if is_packed { Position::Untouched } else { Position::Wanted }; batch * length];
        for (number, (place, lengths)) in places.iter().zip(&self.lengths).enumerate() {
            let (first, length_of_sequence) =
                if is_key { (place[2], lengths.1) } else { (place[1], lengths.0) };
            let first = place[0] * length + first;
            state[first..first + length_of_sequence].fill(if self.damaged == Some(number) {
                Position::Any
            } else {
                Position::Wanted
            });
        }
        state
    }

    /// Runs the forward, and the backward twice where it has the head dimension, and compares them with the definition. The passes report
    /// numbers in memory that do not fit.
    fn check<T: Element>(&self, stream: &Stream) -> Outcome {
        let (places, sizes) = self.places();
        let layouts = self.layouts(sizes)?;
        let arrays = self.arrays::<T>(&places, &layouts);
        let [batch, queries, _] = sizes;
        let mut wanted = Reference {
            result: Wanted::zeros(&layouts[0]),
            lse: vec![f64::NEG_INFINITY; batch * self.heads * queries],
            gradients: layouts.each_ref().map(Wanted::zeros),
        };
        for (number, place) in places.iter().enumerate() {
            if self.damaged != Some(number) {
                self.add_sequence::<T>(number, *place, &arrays, &mut wanted);
            }
        }

        let mut problem = Problem::new(T::DTYPE, layouts[0], layouts[1], layouts[2]);
        (problem.band, problem.soft_cap, problem.dropout) = (self.band, self.soft_cap, self.dropout);
        problem.sequences = self.sequences();
        let upload = |array: &Array, layout: &Layout| {
            let mut memory = vec![T::nearest(0.0); layout.end()];
            for (offset, number) in offsets(layout).into_iter().zip(&array.numbers) {
                memory[offset] = T::nearest(*number);
            }
            stream.upload(bytemuck::cast_slice::<T, u8>(&memory))
        };
        let [q, k, v] = [0, 1, 2].map(|index| upload(&arrays[index], &layouts[index]));
        let (q, k, v, gradient) = (q?, k?, v?, upload(&arrays[3], &layouts[0])?);
        let mut memory = Operands::new(DeviceSlice::from(&q), DeviceSlice::from(&k), DeviceSlice::from(&v));
        let mut descriptions: Vec<i32> = places
            .iter()
            .zip(&self.lengths)
            .flat_map(|(place, lengths)| {
                [place[1], lengths.0, place[2], lengths.1].map(|number| number as i32)
            })
            .collect();
        if self.lie == Lie::Exceeding {
            let last = descriptions.len() - 4;
            descriptions[last + 1] += 1000;
            descriptions[last + 3] += 1000;
        }
        let descriptions = stream.upload(&descriptions)?;
        if problem.sequences.is_some() {
            memory.sequences = Some(DeviceSlice::from(&descriptions));
        }
        // In memory are the seed and a part of the offset.
        let generator = self.dropout.map_or([0; 2], |dropout| [dropout.seed, dropout.offset / 2]);
        let generator = stream.upload(&generator)?;
        if let (true, Some(dropout)) = (self.has_generator, &mut problem.dropout) {
            dropout.seed = 0;
            dropout.offset -= dropout.offset / 2;
            memory.generator = Some(DeviceSlice::from(&generator));
        }
        let is_reported = |operation: &str| match stream.synchronize() {
            Ok(()) if self.lie == Lie::Exceeding => Err(format!("{operation} reports no sequence")),
            Err(error) if self.lie != Lie::Exceeding || !error.to_string().starts_with(operation) => {
                Err(format!("{operation} reports '{error}'"))
            }
            _ => Ok(()),
        };
        let mut result = poisoned::<T>(stream, layouts[0].end())?;
        let mut lse = stream.upload(&vec![f32::NAN; wanted.lse.len()])?;
        forward(stream, &problem, memory, (result.slice_mut(..)?, &layouts[0]), lse.slice_mut(..)?)?;
        is_reported("attention::forward")?;
        let of_queries = self.positions(&places, sizes, false);
        compare_lse(&of_queries, &stream.download(&lse)?, &wanted.lse, [self.heads, queries])?;
        let found = elements::<T>(stream, &result)?;
        compare_positions("the result", &found, &layouts[0], &of_queries, &wanted.result)?;

        if self.dimension > BACKWARD_DIMENSION {
            return Ok(());
        }
        // The gradients of keys and values have equal layouts, and all three lie one after the other.
        let mut written = layouts;
        let mut end = 0;
        for layout in &mut written {
            let (strides, start) = (*layout, end);
            *layout = Layout::strided(strides.shape(), strides.strides(), start)?;
            end = layout.end();
        }
        let of_keys = self.positions(&places, sizes, true);
        let mut first: Option<Vec<T>> = None;
        for _ in 0..2 {
            let mut gradients = poisoned::<T>(stream, end)?;
            backward(
                stream,
                &problem,
                memory,
                (DeviceSlice::from(&result), &layouts[0]),
                DeviceSlice::from(&lse),
                (DeviceSlice::from(&gradient), &layouts[0]),
                Gradients { memory: gradients.slice_mut(..)?, layouts: written },
            )?;
            is_reported("attention::backward")?;
            let found = elements::<T>(stream, &gradients)?;
            for (index, name) in ["dQ", "dK", "dV"].into_iter().enumerate() {
                let positions = if index == 0 { &of_queries } else { &of_keys };
                compare_positions(name, &found, &written[index], positions, &wanted.gradients[index])?;
            }
            let is_same = |first: &Vec<T>| first.iter().zip(&found).all(|(a, b)| a.bits() == b.bits());
            if !first.as_ref().is_none_or(is_same) {
                return Err("the gradients of another schedule have other bits".into());
            }
            first = Some(found);
        }
        Ok(())
    }
}

/// A score, the factor of its gradient by a soft cap, and that of its probability by a dropout.
struct Score {
    value: f64,
    slope: f64,
    factor: f64,
}

fn compare_lse(
    state: &[Position],
    found: &[f32],
    wanted: &[f64],
    [heads, queries]: [usize; 2],
) -> Result<(), String> {
    for (row, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        let found = f64::from(*found);
        let is_right = match state[row / queries / heads * queries + row % queries] {
            Position::Any => true,
            Position::Untouched => found.is_nan(),
            Position::Wanted => (found - wanted).abs() < 1e-5 || found == *wanted,
        };
        if !is_right {
            return Err(format!("the LSE of row {row} is {found} in place of {wanted}"));
        }
    }
    Ok(())
}

/// Compares the elements of an array, of which those at positions of no sequence are as before.
fn compare_positions<T: Element>(
    name: &str,
    memory: &[T],
    layout: &Layout,
    state: &[Position],
    wanted: &Wanted,
) -> Result<(), String> {
    let [_, heads, length, dimension] = wanted.value.sizes;
    for (place, offset) in offsets(layout).into_iter().enumerate() {
        let row = place / dimension;
        let at = [row / length / heads, row / length % heads, row % length, place % dimension];
        let element = memory[offset];
        match state[at[0] * length + at[2]] {
            Position::Any => {}
            Position::Untouched if element.bits() == POISON => {}
            Position::Untouched => return Err(format!("{name} at {at:?}, in no sequence, was written")),
            Position::Wanted => {
                let (value, magnitude) = (wanted.value.numbers[place], wanted.magnitude.numbers[place]);
                compare_element(element, value, magnitude)
                    .map_err(|error| format!("{name} at {at:?}: {error}"))?;
            }
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Untouched,
    Any,
    Wanted,
}

/// Each option by itself and all together, in both head dimensions; sequences without queries, without keys, of one, and of lengths
/// around those of tiles. Then each choice of every option beside each choice of every other one.
fn cases() -> Vec<OptionsCase> {
    let dropout = |threshold, offset| Some(Dropout { seed: 0x1234_5678_9abc_def0, offset, threshold });
    let plain = OptionsCase {
        heads: 2,
        key_heads: 1,
        dimension: 64,
        lengths: vec![(130, 130)],
        lie: Lie::Batches,
        band: Band::default(),
        soft_cap: None,
        dropout: None,
        has_generator: false,
        damaged: None,
    };
    let window = Band { before: Some(100), after: Some(30) };
    let several = vec![(1, 1), (0, 5), (63, 63), (193, 257), (5, 0), (64, 130), (129, 65)];
    let mut cases = Vec::new();
    for (dimension, other) in [(64, 40), (128, 96), (192, 136), (256, 200)] {
        let plain = OptionsCase { dimension, ..plain.clone() };
        let packed = OptionsCase { lengths: several.clone(), lie: Lie::Packed(0), ..plain.clone() };
        let all = OptionsCase { soft_cap: Some(0.75), dropout: dropout(9000, 77), ..plain.clone() };
        cases.extend([
            OptionsCase {
                soft_cap: Some(0.5),
                lengths: vec![(257, 200)],
                band: Band::causal(),
                ..plain.clone()
            },
            OptionsCase { dropout: dropout(20_000, 5), lengths: vec![(150, 300); 2], ..plain.clone() },
            OptionsCase {
                dropout: dropout(40_000, (1 << 33) + 3),
                has_generator: true,
                band: window,
                dimension: other,
                ..plain.clone()
            },
            OptionsCase { dropout: dropout(1 << 16, 0), ..plain.clone() },
            OptionsCase { band: Band::causal(), damaged: Some(3), ..packed.clone() },
            OptionsCase { damaged: Some(5), lie: Lie::Packed(3), dimension: other, ..packed.clone() },
            OptionsCase { lie: Lie::Exceeding, band: window, ..packed.clone() },
            OptionsCase { lie: Lie::Padded(0), damaged: Some(2), ..packed.clone() },
            OptionsCase { lie: Lie::Padded(70), band: Band::causal(), dimension: other, ..packed.clone() },
            OptionsCase { lengths: several.clone(), lie: Lie::Padded(7), band: window, ..all.clone() },
            OptionsCase {
                lengths: several.clone(),
                lie: Lie::Packed(2),
                dimension: other,
                heads: 3,
                ..all.clone()
            },
            OptionsCase { lengths: vec![(0, 9), (0, 0)], lie: Lie::Packed(1), ..all.clone() },
            OptionsCase { lengths: vec![(9, 0), (0, 0)], lie: Lie::Packed(1), ..all.clone() },
            OptionsCase { lengths: vec![(0, 9), (0, 0)], lie: Lie::Padded(3), ..all },
        ]);
    }
    cases.extend(pairwise().into_iter().map(|[lie, band, soft_cap, drops, heads, dimension]| {
        let lie = [Lie::Batches, Lie::Padded(0), Lie::Padded(9), Lie::Packed(0), Lie::Packed(5)][lie];
        let several = vec![(70, 130), (0, 3), (129, 65), (65, 0), (1, 127)];
        OptionsCase {
            heads: [1, 2, 4, 3][heads],
            key_heads: [1, 1, 2, 3][heads],
            dimension: [8, 64, 72, 128][dimension],
            lengths: if lie == Lie::Batches { vec![(129, 66); 2] } else { several },
            lie,
            band: [Band::default(), Band::causal(), window, Band { before: Some(0), after: None }][band],
            soft_cap: [None, Some(1.25)][soft_cap],
            dropout: [None, dropout(12_345, 1), dropout(50_000, 9)][drops],
            has_generator: drops == 2,
            damaged: None,
        }
    }));
    cases
}

/// Choices of each option, so that each choice meets each choice of every other option in some case.
fn pairwise() -> Vec<[usize; 6]> {
    const COUNTS: [usize; 6] = [5, 4, 2, 3, 4, 4];
    let all = (0..COUNTS.iter().product()).map(|number: usize| {
        let mut rest = number;
        COUNTS.map(|count| {
            let choice = rest % count;
            rest /= count;
            choice
        })
    });
    let all: Vec<[usize; 6]> = all.collect();
    let pairs = |case: &[usize; 6]| {
        let case = *case;
        (0..6).flat_map(move |b| (0..b).map(move |a| (a, case[a], b, case[b]))).collect::<HashSet<_>>()
    };
    let mut left: HashSet<_> = all.iter().flat_map(pairs).collect();
    let mut chosen = Vec::new();
    while !left.is_empty() {
        // The first of those that have the most pairs.
        let best = all.iter().rev().max_by_key(|case| pairs(case).intersection(&left).count());
        let Some(best) = best else { break };
        left = left.difference(&pairs(best)).copied().collect();
        chosen.push(*best);
    }
    chosen
}

/// Child: every case, and operands that do not fit the options.
pub(super) fn in_every_case<T: Element>(fake: &Fake, families: &[Family]) -> Outcome {
    // The first of the known answers of the paper's own implementation.
    if philox(0, 0) != [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8] {
        return Err("the test's own Philox is wrong".into());
    }
    fake.set_multiprocessors(MULTIPROCESSORS);
    emulate(fake, families)?;
    with_seeds(2, |stream| {
        refuses_operands::<T>(stream)?;
        for case in every(3, "options of attention", cases()) {
            case.check::<T>(stream).map_err(|error| format!("{case:?}: {error}"))?;
        }
        Ok(())
    })
}

/// Cases for the injected faults: partial blocks before those of a damaged sequence, and all options of sequences in batches.
pub(super) fn faulty(stream: &Stream, dimension: usize) -> Outcome {
    let cases: Vec<OptionsCase> = cases().into_iter().filter(|case| case.dimension == dimension).collect();
    let damaged = cases.iter().find(|case| case.damaged.is_some());
    let padded = cases.iter().find(|case| matches!(case.lie, Lie::Padded(_)) && case.dropout.is_some());
    damaged.into_iter().chain(padded).try_for_each(|case| case.check::<f16>(stream))
}

fn refuses_operands<T: Element>(stream: &Stream) -> Outcome {
    let layout = Layout::contiguous(&[1, 1, 8, 64])?;
    let memory = stream.upload(&vec![0u8; 1024])?;
    let plain =
        Operands::new(DeviceSlice::from(&memory), DeviceSlice::from(&memory), DeviceSlice::from(&memory));
    let numbers = stream.upload(&[0i32; 9])?;
    let words = stream.upload(&[0u64; 3])?;
    let sequences = Sequences { count: 2, is_packed: true, max_queries: 4, max_keys: 4 };
    let problem = Problem::new(T::DTYPE, layout, layout, layout);
    let varied = Problem { sequences: Some(sequences), ..problem };
    let slice = |range: std::ops::Range<usize>| DeviceSlice::from(&numbers).slice(range).map(Some);
    for (problem, operands, wanted) in [
        (varied, plain, "no memory of sequences"),
        (varied, Operands { sequences: slice(0..7)?, ..plain }, "7 numbers of sequences"),
        (varied, Operands { sequences: slice(1..9)?, ..plain }, "a multiple of 16 bytes"),
        (problem, Operands { sequences: slice(0..8)?, ..plain }, "none without sequences"),
        (
            problem,
            Operands { generator: Some(DeviceSlice::from(&words)), ..plain },
            "a generator of 3 numbers",
        ),
    ] {
        let mut result = poisoned::<T>(stream, 512)?;
        let mut lse = stream.upload(&[f32::NAN; 8])?;
        let found = forward(stream, &problem, operands, (result.slice_mut(..)?, &layout), lse.slice_mut(..)?);
        let found = found.err().map_or("no error".to_owned(), |error| error.to_string());
        if !found.contains(wanted) {
            return Err(format!("'{found}' in place of '{wanted}'").into());
        }
    }
    Ok(())
}
