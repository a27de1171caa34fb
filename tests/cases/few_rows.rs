//! Products of a few rows (`selvedge::gemm::multiply_rows`) against their definition in f64, and the bits of a row beside others. Shared by
//! the emulated kernels and the device suite.

use half::{bf16, f16};
use selvedge::driver::{DeviceBuffer, DeviceSlice, Stream};
use selvedge::gemm::{Activation, RowsMatrix, RowsNorm, RowsProduct, multiply_rows};
use selvedge::types::DType;

pub type Outcome = Result<(), Box<dyn std::error::Error>>;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Norm {
    None,
    Rms,
    /// With an offset of 1 to the weight.
    RmsWithOffset,
    Layer,
}

/// A product.
#[derive(Clone, Debug)]
pub struct RowsCase {
    pub dtype: DType,
    pub rows: usize,
    pub inputs: usize,
    pub outputs: Vec<usize>,
    pub is_input_major: bool,
    pub norm: Norm,
    pub has_bias: bool,
    pub activation: Activation,
    pub is_gated: bool,
    pub has_residual: bool,
}

impl RowsCase {
    fn new(rows: usize, inputs: usize, outputs: &[usize]) -> RowsCase {
        RowsCase {
            dtype: DType::BF16,
            rows,
            inputs,
            outputs: outputs.to_vec(),
            is_input_major: false,
            norm: Norm::None,
            has_bias: false,
            activation: Activation::None,
            is_gated: false,
            has_residual: false,
        }
    }

    fn all_outputs(&self) -> usize {
        if self.is_gated { self.outputs[0] } else { self.outputs.iter().sum() }
    }
}

/// The cases of both dtypes and orders: rows of every code path, one to three matrices, norms, gates and epilogues.
pub fn cases() -> Vec<RowsCase> {
    let plain = [
        RowsCase::new(1, 264, &[48]),
        RowsCase { norm: Norm::Rms, ..RowsCase::new(3, 136, &[32, 16, 16]) },
        RowsCase { has_bias: true, norm: Norm::Layer, ..RowsCase::new(8, 96, &[48]) },
        RowsCase {
            is_gated: true,
            activation: Activation::Silu,
            norm: Norm::RmsWithOffset,
            ..RowsCase::new(2, 520, &[48, 48])
        },
        RowsCase { has_residual: true, has_bias: true, ..RowsCase::new(5, 800, &[16]) },
        RowsCase { activation: Activation::GeluTanh, has_bias: true, ..RowsCase::new(1, 8, &[16, 32]) },
        RowsCase {
            is_gated: true,
            has_bias: true,
            activation: Activation::Relu,
            has_residual: true,
            ..RowsCase::new(8, 64, &[80, 80])
        },
    ];
    let mut all =
        vec![RowsCase::new(1, 48, &[7]), RowsCase { is_gated: true, ..RowsCase::new(4, 48, &[9, 9]) }];
    for case in plain {
        all.push(RowsCase { is_input_major: true, ..case.clone() });
        all.push(case);
    }
    let f16: Vec<RowsCase> = all.iter().map(|case| RowsCase { dtype: DType::F16, ..case.clone() }).collect();
    all.extend(f16);
    all
}

fn rounded(dtype: DType, x: f64) -> (u16, f64) {
    match dtype {
        DType::BF16 => (bf16::from_f64(x).to_bits(), bf16::from_f64(x).to_f64()),
        _ => (f16::from_f64(x).to_bits(), f16::from_f64(x).to_f64()),
    }
}

/// Numbers in -1 to 1 that follow from their kind and places, with their bits.
fn numbers(dtype: DType, kind: u64, count: usize) -> Vec<(u16, f64)> {
    let number = |at: usize| {
        let mut state = (kind << 32 | at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        state = (state ^ state >> 29).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        rounded(dtype, 2.0 * ((state >> 11) as f64 / (1u64 << 53) as f64) - 1.0)
    };
    (0..count).map(number).collect()
}

fn bits(numbers: &[(u16, f64)]) -> Vec<u16> {
    numbers.iter().map(|number| number.0).collect()
}

fn activated(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::Relu => x.max(0.0),
        Activation::GeluTanh => {
            0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)).tanh())
        }
        Activation::Silu => x / (1.0 + (-x).exp()),
        _ => x,
    }
}

impl RowsCase {
    /// Runs the first `rows` rows, and compares them with the definition if it is to.
    fn run(
        &self,
        stream: &Stream,
        rows: usize,
        is_compared: bool,
    ) -> Result<Vec<u16>, Box<dyn std::error::Error>> {
        let RowsCase { dtype, inputs, is_input_major, .. } = *self;
        let all_outputs = self.all_outputs();
        let x = numbers(dtype, 1, rows * inputs);
        let weights: Vec<_> = self
            .outputs
            .iter()
            .enumerate()
            .map(|(index, outputs)| numbers(dtype, 10 + index as u64, outputs * inputs))
            .collect();
        let biases: Vec<_> = self
            .outputs
            .iter()
            .enumerate()
            .map(|(index, outputs)| numbers(dtype, 20 + index as u64, *outputs))
            .collect();
        let [norm_weight, norm_bias] = [2, 3].map(|kind| numbers(dtype, kind, inputs));
        let residual = numbers(dtype, 4, rows * all_outputs);

        let upload = |of: &[(u16, f64)]| stream.upload(bytemuck::cast_slice::<u16, u8>(&bits(of)));
        let memory: Vec<(DeviceBuffer<u8>, DeviceBuffer<u8>)> = weights
            .iter()
            .zip(&biases)
            .map(|(weight, bias)| Ok((upload(weight)?, upload(bias)?)))
            .collect::<selvedge::Result<_>>()?;
        let matrices: Vec<RowsMatrix<'_>> = memory
            .iter()
            .zip(&self.outputs)
            .map(|((weight, bias), outputs)| RowsMatrix {
                weight: DeviceSlice::from(weight),
                bias: self.has_bias.then_some(DeviceSlice::from(bias)),
                outputs: *outputs,
            })
            .collect();
        let (of_x, of_norm_weight, of_norm_bias) = (upload(&x)?, upload(&norm_weight)?, upload(&norm_bias)?);
        let of_residual = upload(&residual)?;
        let eps = 1e-3;
        let offset = if self.norm == Norm::RmsWithOffset { 1.0 } else { 0.0 };
        let norm = (self.norm != Norm::None).then(|| RowsNorm {
            is_layer_norm: self.norm == Norm::Layer,
            weight: Some(DeviceSlice::from(&of_norm_weight)),
            offset,
            bias: (self.norm == Norm::Layer).then_some(DeviceSlice::from(&of_norm_bias)),
            eps,
        });
        let product = RowsProduct {
            dtype,
            x: DeviceSlice::from(&of_x),
            rows,
            inputs,
            norm,
            matrices: &matrices,
            is_input_major,
            activation: self.activation,
            is_gated: self.is_gated,
            residual: self.has_residual.then_some(DeviceSlice::from(&of_residual)),
        };
        // One element behind the result stays.
        let mut y = stream.upload(&vec![0xffu8; 2 * rows * all_outputs + 2])?;
        multiply_rows(stream, &product, y.slice_mut(..)?)?;
        let found: Vec<u16> = bytemuck::cast_slice::<u8, u16>(&stream.download(&y)?).to_vec();
        if found[rows * all_outputs] != 0xffff {
            return Err("an element behind the result was written".into());
        }
        let unit = if dtype == DType::BF16 { 1.0 / 256.0 } else { 1.0 / 2048.0 };
        for row in (0..rows).filter(|_| is_compared) {
            let own = &x[row * inputs..][..inputs];
            let mean = match self.norm {
                Norm::Layer => own.iter().map(|x| x.1).sum::<f64>() / inputs as f64,
                _ => 0.0,
            };
            let variance = own.iter().map(|x| (x.1 - mean).powi(2)).sum::<f64>() / inputs as f64;
            let normalized: Vec<f64> = own
                .iter()
                .enumerate()
                .map(|(at, x)| match self.norm {
                    Norm::None => x.1,
                    norm => {
                        let factor = norm_weight[at].1 + offset;
                        let bias = if norm == Norm::Layer { norm_bias[at].1 } else { 0.0 };
                        rounded(dtype, (x.1 - mean) / (variance + eps).sqrt() * factor + bias).1
                    }
                })
                .collect();
            // A sum of the terms, and of their magnitudes; a normalised input may be off by a rounding.
            let sum = |matrix: usize, output: usize| {
                let width = self.outputs[matrix];
                let (mut value, mut magnitude) = (0.0, 0.0);
                for (at, x) in normalized.iter().enumerate() {
                    let place = if is_input_major { at * width + output } else { output * inputs + at };
                    let term = x * weights[matrix][place].1;
                    (value, magnitude) = (value + term, magnitude + term.abs());
                }
                let bias = if self.has_bias { biases[matrix][output].1 } else { 0.0 };
                (value + bias, magnitude + bias.abs())
            };
            for output in 0..all_outputs {
                let (mut matrix, mut column) = (0, output);
                while !self.is_gated && column >= self.outputs[matrix] {
                    column -= self.outputs[matrix];
                    matrix += 1;
                }
                let (value, magnitude) = sum(matrix, column);
                let (mut value, mut magnitude) = (activated(self.activation, value), magnitude);
                if self.is_gated {
                    let (factor, of_factor) = sum(1, column);
                    magnitude = magnitude * factor.abs() + of_factor * value.abs();
                    value *= factor;
                }
                if self.has_residual {
                    value += residual[row * all_outputs + output].1;
                }
                let of_norm = if self.norm == Norm::None { 1e-4 } else { unit };
                let allowed = 1.05 * unit * value.abs() + of_norm * magnitude + 1e-6;
                let bits = found[row * all_outputs + output];
                let is = match dtype {
                    DType::BF16 => bf16::from_bits(bits).to_f64(),
                    _ => f16::from_bits(bits).to_f64(),
                };
                if (is - value).abs() > allowed || is.is_nan() {
                    return Err(
                        format!("{is} at {row}, {output} in place of {value} within {allowed}").into()
                    );
                }
            }
        }
        Ok(found[..rows * all_outputs].to_vec())
    }

    /// Compares the case with its definition, and the bits of its first row with those of that row alone.
    pub fn check(&self, stream: &Stream) -> Outcome {
        let bits = self.run(stream, self.rows, true).map_err(|error| format!("{self:?}: {error}"))?;
        let alone = self.run(stream, 1, false)?;
        if bits[..alone.len()] != alone {
            return Err(format!("{self:?}: a row has other bits beside others").into());
        }
        Ok(())
    }
}
