//! The arrays of an attention of bf16 on a device, its forward and its backward, and their comparison with the CPU.

use half::bf16;
use selvedge::attention::{self, Band, Gradients, Operands, Problem};
use selvedge::driver::{DeviceSlice, Stream};
use selvedge::nn::{AttentionOptions, Variable, scaled_dot_product_attention};
use selvedge::tensor::{Device, Generator, Tensor};
use selvedge::types::{DType, Layout};

use crate::harness::report::Failure;

/// Batch x length, and heads x head dimension.
pub const POSITIONS: usize = 16384;
pub const WIDTH: usize = 2048;
/// The largest error beside the CPU in f64, as a share of the norm. Rounding to bf16 gives up to 4e-3.
const TOLERANCE: f64 = 1e-2;
/// Queries that are compared, where comparing all of them takes long.
const COMPARED: usize = 128;
/// The largest length whose queries are all compared.
const COMPARED_WHOLE: usize = 1024;

/// An attention of [`POSITIONS`] and [`WIDTH`].
#[derive(Clone, Copy)]
pub struct Case {
    pub dimension: usize,
    pub length: usize,
    pub is_causal: bool,
}

impl Case {
    /// The mask by its name in pytorch_attention.py.
    pub fn mask(self) -> &'static str {
        if self.is_causal { "causal" } else { "full" }
    }

    fn heads(self) -> usize {
        WIDTH / self.dimension
    }

    /// The order in memory: (batch, length, heads, head dimension).
    pub fn stored_sizes(self) -> [usize; 4] {
        [POSITIONS / self.length, self.length, self.heads(), self.dimension]
    }

    /// The layout of (batch, heads, length, head dimension).
    pub fn layout(self) -> selvedge::Result<Layout> {
        Layout::contiguous(&self.stored_sizes())?.transpose(1, 2)
    }

    fn problem(self) -> selvedge::Result<Problem> {
        let layout = self.layout()?;
        let band = if self.is_causal { Band::causal() } else { Band::default() };
        Ok(Problem { band, ..Problem::new(DType::BF16, layout, layout, layout) })
    }

    /// Floating-point operations of so many products of queries and keys; those of a causal mask are counted as half of them.
    pub fn operations(self, products: usize) -> f64 {
        let all = (2 * products * POSITIONS * self.length * WIDTH) as f64;
        if self.is_causal { all / 2.0 } else { all }
    }
}

/// The arrays, of [`POSITIONS`] x [`WIDTH`] elements each: 64 MiB, so that the L2 cache does not hold them from one run to the next.
pub struct Arrays {
    stream: Stream,
    /// Queries, keys, values, and the gradient of the result.
    inputs: [Tensor; 4],
    result: Tensor,
    lse: Tensor,
    /// The gradients of queries, keys and values, one after the other.
    gradients: Tensor,
}

fn bytes(tensor: &Tensor) -> selvedge::Result<DeviceSlice<'_, u8>> {
    tensor.device_slice::<bf16>()?.reinterpret()
}

impl Arrays {
    pub fn new(device: &Device) -> selvedge::Result<Arrays> {
        let normal = |seed| Generator::new(seed).randn(&[POSITIONS * WIDTH], DType::BF16, device);
        let empty = |count, dtype| Tensor::empty(&[count], dtype, device);
        Ok(Arrays {
            stream: device.stream()?,
            inputs: [normal(1)?, normal(2)?, normal(3)?, normal(4)?],
            result: empty(POSITIONS * WIDTH, DType::BF16)?,
            lse: empty(0, DType::F32)?,
            gradients: empty(3 * POSITIONS * WIDTH, DType::BF16)?,
        })
    }

    /// Makes the LSE of a case, which has an element for each head and query.
    pub fn prepare(&mut self, case: Case) -> selvedge::Result<()> {
        self.lse = Tensor::empty(&[POSITIONS * case.heads()], DType::F32, &self.lse.device())?;
        Ok(())
    }

    pub fn forward(&mut self, case: Case) -> selvedge::Result<()> {
        let [queries, keys, values, _] = &self.inputs;
        let operands = Operands::new(bytes(queries)?, bytes(keys)?, bytes(values)?);
        let result = (self.result.device_slice_mut::<bf16>()?.reinterpret()?, &case.layout()?);
        attention::forward(&self.stream, &case.problem()?, operands, result, self.lse.device_slice_mut()?)
    }

    /// The backward, after a [`forward`](Arrays::forward) of the same case.
    pub fn backward(&mut self, case: Case) -> selvedge::Result<()> {
        let [queries, keys, values, gradient] = &self.inputs;
        let operands = Operands::new(bytes(queries)?, bytes(keys)?, bytes(values)?);
        let layout = case.layout()?;
        let part =
            |index: usize| Layout::strided(layout.shape(), layout.strides(), index * POSITIONS * WIDTH);
        let gradients = Gradients {
            layouts: [part(0)?, part(1)?, part(2)?],
            memory: self.gradients.device_slice_mut::<bf16>()?.reinterpret()?,
        };
        attention::backward(
            &self.stream,
            &case.problem()?,
            operands,
            (bytes(&self.result)?, &layout),
            self.lse.device_slice()?,
            (bytes(gradient)?, &layout),
            gradients,
        )
    }

    /// The first head of the first batch of an array on the CPU, in f64.
    fn head(&self, case: Case, array: &Tensor) -> selvedge::Result<Tensor> {
        let sizes = case.stored_sizes().map(|size| size as isize);
        let head = array.reshape(&sizes)?.narrow(0, 0, 1)?.narrow(2, 0, 1)?.transpose(1, 2)?;
        head.contiguous()?.to(&Device::cpu())?.cast(DType::F64)
    }

    /// Compares the result of the forward, and the gradients after a backward, with those of the CPU in f64, for the last queries of a
    /// head. Gradients of keys and values are compared where these are all its queries. Returns the names and the errors, as shares of
    /// the norms.
    pub fn check(&self, case: Case, has_gradients: bool) -> Result<Vec<(&'static str, f64)>, Failure> {
        let count = if case.length <= COMPARED_WHOLE { case.length } else { COMPARED.min(case.length) };
        let last = |x: Tensor| x.narrow(2, case.length - count, count)?.contiguous();
        let [queries, keys, values, gradient] = &self.inputs;
        let inputs = [
            Variable::with_grad(last(self.head(case, queries)?)?)?,
            Variable::with_grad(self.head(case, keys)?)?,
            Variable::with_grad(self.head(case, values)?)?,
        ];
        let options = AttentionOptions { is_causal: case.is_causal, ..AttentionOptions::default() };
        let result = scaled_dot_product_attention(&inputs[0], &inputs[1], &inputs[2], &options)?;
        let found = last(self.head(case, &self.result)?)?;
        let mut errors = vec![close("result", case, &found, &result.tensor())?];
        if !has_gradients {
            return Ok(errors);
        }
        result.backward_with(&last(self.head(case, gradient)?)?)?;
        let names = ["gradient of queries", "gradient of keys", "gradient of values"];
        for (index, (input, name)) in inputs.iter().zip(names).enumerate() {
            let wanted = input.grad().ok_or("the CPU gave no gradient")?;
            let found = self.gradients.narrow(0, index * POSITIONS * WIDTH, POSITIONS * WIDTH)?;
            let found = self.head(case, &found)?;
            if index == 0 {
                errors.push(close(name, case, &last(found)?, &wanted)?);
            } else if count == case.length {
                errors.push(close(name, case, &found, &wanted)?);
            }
        }
        Ok(errors)
    }
}

/// Returns the norm of the difference as a share of the norm of what is wanted, if it is small.
fn close(
    name: &'static str,
    case: Case,
    found: &Tensor,
    wanted: &Tensor,
) -> Result<(&'static str, f64), Failure> {
    let (found, wanted) = (found.to_vec::<f64>()?, wanted.to_vec::<f64>()?);
    let difference: f64 = found.iter().zip(&wanted).map(|(a, b)| (a - b).powi(2)).sum();
    let norm: f64 = wanted.iter().map(|x| x.powi(2)).sum();
    let share = (difference / norm).sqrt();
    let Case { dimension, length, .. } = case;
    // Also false for NaN.
    if found.len() == wanted.len() && share <= TOLERANCE {
        return Ok((name, share));
    }
    let mask = case.mask();
    Err(format!(
        "d {dimension}, {mask}, length {length}: the {name} has an error of {share:e} beside the CPU"
    )
    .into())
}
