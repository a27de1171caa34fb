//! Attention with every option beside the composed form in f64: tests/nn/attention_options.rs runs the table on the CPU,
//! tests/gpu/attention.rs on a device.

use selvedge::attention::Band;
use selvedge::nn::{AttentionOptions, Variable, scaled_dot_product_attention};
use selvedge::tensor::{Generator, SequenceLengths};
use selvedge::{DType, Device, Result, Tensor};

/// Batch, query heads, key heads, queries, keys, head dimension, and head dimension of the values.
pub type Sizes = [usize; 7];

/// Lengths of 0 and 1, odd ones, those beside multiples of a tile, more queries than keys, one key, and grouped heads.
const SIZES: &[Sizes] = &[
    [2, 2, 1, 130, 130, 64, 64],
    [1, 4, 2, 1, 333, 64, 64],
    [3, 2, 2, 129, 70, 8, 8],
    [3, 2, 1, 70, 150, 40, 40],
    [1, 2, 2, 193, 193, 96, 96],
    [1, 2, 1, 65, 1, 128, 128],
    [2, 1, 1, 31, 600, 64, 64],
    [1, 1, 1, 140, 77, 256, 256],
    [1, 3, 1, 33, 48, 192, 192],
    [2, 2, 2, 17, 19, 24, 40],
    [3, 4, 1, 16, 16, 128, 128],
    [1, 1, 1, 1, 1, 8, 8],
    [3, 2, 2, 5, 0, 8, 8],
    [3, 2, 2, 0, 5, 8, 8],
    [0, 2, 2, 5, 5, 8, 8],
];

const WINDOWS: &[Band] = &[
    Band { before: None, after: None },
    Band { before: Some(3), after: None },
    Band { before: Some(20), after: Some(5) },
    Band { before: None, after: Some(2) },
    Band { before: Some(0), after: Some(0) },
];

/// How many positions the sequences of a case have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lengths {
    /// All of the arrays'.
    Whole,
    /// Offsets' sequences: without queries, without keys, and the rest but for some queries at the end.
    Packed,
    /// Each batch's own, 0 among them.
    Padded,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub sizes: Sizes,
    pub dtype: DType,
    pub is_causal: bool,
    pub window: Band,
    pub soft_cap: Option<f64>,
    pub dropout: f64,
    pub lengths: Lengths,
}

/// Returns a sample of all combinations of sizes, dtypes and options: each pair of values of two options is in it.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for index in 0..16 * SIZES.len() {
        let mut state = (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut pick = |count: usize| {
            state = (state ^ (state >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            (state >> 33) as usize % count
        };
        let sizes = SIZES[index % SIZES.len()];
        let lengths = match (pick(3), sizes[0]) {
            (0, _) => Lengths::Whole,
            (1, 1) => Lengths::Packed,
            _ => Lengths::Padded,
        };
        cases.push(Case {
            sizes,
            dtype: [DType::F32, DType::F16, DType::BF16, DType::F64][index / SIZES.len() % 4],
            is_causal: pick(2) == 0,
            window: WINDOWS[pick(WINDOWS.len())],
            soft_cap: [None, Some(0.7), Some(4.0)][pick(3)],
            dropout: [0.0, 0.3][pick(2)],
            lengths,
        });
    }
    cases
}

/// A sequence's batch, its first query and their number, and its first key and their number.
type SequencePlace = (usize, [usize; 2], [usize; 2]);

impl Case {
    /// Returns a case in f64 without options.
    pub fn plain(sizes: Sizes) -> Case {
        let (window, lengths) = (Band::default(), Lengths::Whole);
        Case { sizes, dtype: DType::F64, is_causal: false, window, soft_cap: None, dropout: 0.0, lengths }
    }

    fn sequences(&self) -> Vec<SequencePlace> {
        let [batch, _, _, queries, keys, ..] = self.sizes;
        match self.lengths {
            Lengths::Whole => (0..batch).map(|batch| (batch, [0, queries], [0, keys])).collect(),
            Lengths::Packed => {
                let (query, key) = (queries / 3, keys / 5);
                let end = queries - queries / 4;
                vec![
                    (0, [0, 0], [0, key]),
                    (0, [0, query], [key, 0]),
                    (0, [query, end - query], [key, keys - key]),
                ]
            }
            Lengths::Padded => {
                let of_batch = |batch: usize| {
                    let query = [queries, queries / 2, 0][batch % 3];
                    (batch, [0, query], [0, [keys - keys / 3, keys, keys.min(1)][batch % 3]])
                };
                (0..batch).map(of_batch).collect()
            }
        }
    }

    /// Returns the options on a device. Each call draws the same random bits.
    pub fn options(&self, device: &Device) -> Result<AttentionOptions> {
        let sequences = self.sequences();
        let lengths = match self.lengths {
            Lengths::Whole => None,
            Lengths::Packed => {
                let offsets = |of: fn(&SequencePlace) -> [usize; 2]| {
                    let places = sequences.iter().map(of);
                    [0].into_iter().chain(places.map(|[first, count]| first + count)).collect()
                };
                let (query_offsets, key_offsets) = (offsets(|place| place.1), offsets(|place| place.2));
                Some(SequenceLengths::Packed { query_offsets, key_offsets })
            }
            Lengths::Padded => {
                let counts = |of: fn(&SequencePlace) -> usize| {
                    let counts: Vec<i64> = sequences.iter().map(|place| of(place) as i64).collect();
                    Tensor::from_slice(&counts, &[counts.len()], device)
                };
                let (queries, keys) = (counts(|place| place.1[1])?, counts(|place| place.2[1])?);
                Some(SequenceLengths::Padded { queries: Some(queries), keys: Some(keys) })
            }
        };
        Ok(AttentionOptions {
            is_causal: self.is_causal,
            window: self.window,
            soft_cap: self.soft_cap,
            dropout: self.dropout,
            generator: Some(Generator::new(31)),
            lengths,
            ..AttentionOptions::default()
        })
    }

    /// Returns the options with a mask that masks nothing, with which attention is composed of products and a softmax.
    pub fn composed_options(&self, device: &Device) -> Result<AttentionOptions> {
        let mask = Some(Variable::new(Tensor::ones(&[1], DType::Bool, device)?));
        Ok(AttentionOptions { mask, ..self.options(device)? })
    }

    /// Returns queries, keys, values and the result's gradient in f64, rounded to the case's dtype, on the CPU.
    pub fn samples(&self) -> Result<[Tensor; 4]> {
        let [batch, heads, key_heads, queries, keys, width, value_width] = self.sizes;
        let draw = |seed, heads, length, width| {
            let sizes = [batch, heads, length, width];
            Generator::new(seed).randn(&sizes, DType::F64, &Device::cpu())?.cast(self.dtype)?.cast(DType::F64)
        };
        Ok([
            draw(1, heads, queries, width)?,
            draw(2, key_heads, keys, width)?,
            draw(3, key_heads, keys, value_width)?,
            draw(4, heads, queries, value_width)?,
        ])
    }

    /// Returns the result by the definition, without dropout.
    pub fn definition(&self, [q, k, v, _]: &[Tensor; 4]) -> Result<Vec<f64>> {
        let [batch, heads, key_heads, queries, keys, width, value_width] = self.sizes;
        let [q, k, v] = [q.to_vec::<f64>()?, k.to_vec::<f64>()?, v.to_vec::<f64>()?];
        let mut result = vec![0.0; batch * heads * queries * value_width];
        let after = if self.is_causal { Some(0) } else { self.window.after };
        for (batch, [first_query, query_count], [first_key, key_count]) in self.sequences() {
            for (head, query) in (0..heads * query_count).map(|at| (at / query_count, at % query_count)) {
                let row = (batch * heads + head) * queries + first_query + query;
                let of_key = (batch * key_heads + head / (heads / key_heads)) * keys + first_key;
                let position = query as i64 + key_count as i64 - query_count as i64;
                let is_read = |key: &usize| {
                    let distance = *key as i64 - position;
                    self.window.before.is_none_or(|before| distance >= -(before as i64))
                        && after.is_none_or(|after| distance <= after as i64)
                };
                let read: Vec<usize> = (0..key_count).filter(is_read).collect();
                let score = |key: &usize| {
                    let (q, k) = (&q[row * width..][..width], &k[(of_key + key) * width..][..width]);
                    let score = q.iter().zip(k).map(|(q, k)| q * k).sum::<f64>() / (width as f64).sqrt();
                    self.soft_cap.map_or(score, |limit| limit * (score / limit).tanh())
                };
                let powers: Vec<f64> = read.iter().map(|key| score(key).exp()).collect();
                let total: f64 = powers.iter().sum();
                for (key, power) in read.iter().zip(&powers) {
                    let values = &v[(of_key + key) * value_width..][..value_width];
                    for (result, value) in result[row * value_width..][..value_width].iter_mut().zip(values) {
                        *result += power / total * value;
                    }
                }
            }
        }
        Ok(result)
    }

    /// Asserts that result and gradients on a device are close to those of the composed form in f64 on the CPU.
    pub fn check(&self, device: &Device) -> Result<()> {
        let cpu = Device::cpu();
        let exact = self.samples()?;
        let wanted = with_gradients(&exact, &self.composed_options(&cpu)?)?;
        let there = exact.each_ref().map(|x| x.cast(self.dtype)?.to(device));
        let [queries, keys, values, gradient] = there;
        let found = with_gradients(&[queries?, keys?, values?, gradient?], &self.options(device)?)?;
        let tolerance = match self.dtype {
            DType::F64 => 1e-12,
            DType::F32 => 2e-6,
            DType::F16 => 1.5e-3,
            _ => 1e-2,
        };
        // A query that reads one key has a gradient of 0, whose errors are those of its rounded result.
        let least = 0.25 * norm(&exact[3])?.max(8.0);
        let names = [("result", 0.0), ("of queries", least), ("of keys", least), ("of values", 0.0)];
        for ((name, least), (found, wanted)) in names.iter().zip(found.iter().zip(&wanted)) {
            assert_eq!((found.device(), found.dtype()), (*device, self.dtype));
            assert_close(&format!("{name}, {self:?}"), found, wanted, tolerance, *least)?;
        }
        Ok(())
    }
}

/// Returns the result and the gradients of queries, keys and values, of these and the result's gradient.
pub fn with_gradients(x: &[Tensor; 4], options: &AttentionOptions) -> Result<[Tensor; 4]> {
    let [queries, keys, values, gradient] = x;
    let inputs = [queries, keys, values].map(|x| Variable::with_grad(x.clone()));
    let [queries, keys, values] = inputs;
    let inputs = [queries?, keys?, values?];
    let result = scaled_dot_product_attention(&inputs[0], &inputs[1], &inputs[2], options)?;
    result.backward_with(gradient)?;
    let [queries, keys, values] = inputs.map(|input| input.grad().expect("a gradient of each operand"));
    Ok([result.tensor(), queries, keys, values])
}

/// Asserts that a tensor is within `tolerance` of f64 elements, relative to their norm or to `least`.
pub fn assert_close(name: &str, found: &Tensor, wanted: &Tensor, tolerance: f64, least: f64) -> Result<()> {
    assert_eq!(found.shape(), wanted.shape(), "{name}");
    let wanted_norm = norm(wanted)?;
    let error = norm(&(&found.to(&Device::cpu())?.cast(DType::F64)? - wanted)?)?;
    assert!(
        error <= tolerance * wanted_norm.max(least),
        "{name}: an error of {error:e} beside a norm of {wanted_norm:e}"
    );
    Ok(())
}

/// Returns the square root of the sum of squares.
fn norm(x: &Tensor) -> Result<f64> {
    Ok(x.to_vec::<f64>()?.iter().map(|x| x * x).sum::<f64>().sqrt())
}
