//! [`multiply_rows`], products of one to eight rows with what surrounds them in a step of decoding: `csrc/kernels/gemm_rows.cu`.

use bytemuck::{Pod, Zeroable};

use super::activation::Activation;
use crate::driver::{DeviceSlice, DeviceSliceMut, LaunchConfig, Stream, WithMemory};
use crate::error::{Error, Result};
use crate::images::{self, DeviceProperties, Entry, missing_image};
use crate::trace;
use crate::types::DType;

const OPERATION: &str = "gemm::multiply_rows";

/// The most rows of a product.
pub const MAX_ROWS: usize = 8;
/// The most matrices whose outputs are behind each other.
pub const MAX_MATRICES: usize = 3;
const THREADS: usize = 256;
const WARPS: usize = 8;
/// Outputs of a warp, or of a block if outputs run along the stored rows.
const WARP_OUTPUTS: usize = 2;
const BLOCK_OUTPUTS: usize = 16;
/// Blocks of a multiprocessor, which has two at a time: the next ones take what the first ones leave.
const BLOCKS: usize = 4;
/// Elements in 16 bytes.
const RUN: usize = 8;
/// The most shared memory of a block: two of them are on a multiprocessor of compute capability 8.6 with 100 KB.
const MAX_SHARED: usize = 96 << 10;

/// Exactly `RowsProblem` of gemm_rows.cu.
#[repr(C, align(16))]
#[derive(Clone, Copy, Pod, Zeroable)]
struct RowsParameters {
    x: u64,
    weights: [u64; MAX_MATRICES],
    biases: [u64; MAX_MATRICES],
    norm_weight: u64,
    norm_bias: u64,
    residual: u64,
    y: u64,
    x_stride: i64,
    residual_stride: i64,
    y_stride: i64,
    ends: [i32; MAX_MATRICES],
    rows: i32,
    inputs: i32,
    outputs: i32,
    norm: i32,
    eps: f32,
    norm_offset: f32,
    activation: i32,
    is_gated: i32,
    padding: [u32; 1],
}

/// The norm of the rows before a product.
#[derive(Clone, Copy)]
pub struct RowsNorm<'a> {
    /// True for a layer norm, false for an RMS norm.
    pub is_layer_norm: bool,
    /// The factor of each input.
    pub weight: Option<DeviceSlice<'a, u8>>,
    /// The number that is added to the factors.
    pub offset: f64,
    /// The summand of each input.
    pub bias: Option<DeviceSlice<'a, u8>>,
    /// The summand of the variance, or of the mean square.
    pub eps: f64,
}

/// A matrix of a product.
#[derive(Clone, Copy)]
pub struct RowsMatrix<'a> {
    /// The elements, in bytes.
    pub weight: DeviceSlice<'a, u8>,
    /// A summand for each output.
    pub bias: Option<DeviceSlice<'a, u8>>,
    /// The number of outputs.
    pub outputs: usize,
}

/// A product y = epilogue(norm(x) Wᵀ + bias) of a few rows, of f16 or bf16. Memory is in bytes.
#[derive(Clone, Copy)]
pub struct RowsProduct<'a> {
    /// The element type of all operands.
    pub dtype: DType,
    /// The rows x, contiguous.
    pub x: DeviceSlice<'a, u8>,
    /// The number of rows, at most [`MAX_ROWS`].
    pub rows: usize,
    /// The number of inputs.
    pub inputs: usize,
    /// The norm of x.
    pub norm: Option<RowsNorm<'a>>,
    /// One to [`MAX_MATRICES`] matrices, whose outputs are behind each other in y. Of a gated product two: the gate, and its factor.
    pub matrices: &'a [RowsMatrix<'a>],
    /// True for matrices of (inputs, outputs), false for those of (outputs, inputs).
    pub is_input_major: bool,
    /// The activation, in a gated product that of the gate.
    pub activation: Activation,
    /// True for y = activation(x W₀ᵀ) · x W₁ᵀ.
    pub is_gated: bool,
    /// Rows that are added to y, contiguous as y.
    pub residual: Option<DeviceSlice<'a, u8>>,
}

impl RowsProduct<'_> {
    /// Returns the number of outputs of a row.
    pub fn outputs(&self) -> usize {
        match self.is_gated {
            true => self.matrices.first().map_or(0, |matrix| matrix.outputs),
            false => self.matrices.iter().map(|matrix| matrix.outputs).sum(),
        }
    }

    fn family(&self) -> (&'static str, &'static str) {
        match (self.dtype, self.is_input_major) {
            (DType::BF16, true) => ("gemm_rows_bf16", "gemm_rows_bf16_n"),
            (DType::BF16, false) => ("gemm_rows_bf16", "gemm_rows_bf16_k"),
            (_, true) => ("gemm_rows_f16", "gemm_rows_f16_n"),
            (_, false) => ("gemm_rows_f16", "gemm_rows_f16_k"),
        }
    }

    /// Returns the shared memory of a block, in bytes.
    fn shared_bytes(&self) -> usize {
        let parts = MAX_ROWS * (2 * WARPS + 2);
        let sums = if self.is_input_major { WARPS * MAX_ROWS * BLOCK_OUTPUTS } else { 0 };
        self.rows * self.inputs * size_of::<u16>() + (parts + sums) * size_of::<f32>()
    }

    /// Returns why no kernel computes the product on such a device, or `None` if one does.
    pub fn unsupported(&self, properties: DeviceProperties) -> Option<String> {
        let RowsProduct { dtype, rows, inputs, matrices, is_gated, is_input_major, .. } = *self;
        if !matches!(dtype, DType::F16 | DType::BF16) {
            return Some(format!("{dtype}; f16 and bf16 have kernels"));
        }
        if rows == 0 || rows > MAX_ROWS {
            return Some(format!("{rows} rows; 1 to {MAX_ROWS} have kernels"));
        }
        if inputs == 0 || !inputs.is_multiple_of(RUN) || self.shared_bytes() > MAX_SHARED {
            return Some(format!(
                "{rows} rows of {inputs} inputs; multiples of {RUN} of up to 96 KB have kernels"
            ));
        }
        let counts: Vec<usize> = matrices.iter().map(|matrix| matrix.outputs).collect();
        let multiple = if is_input_major { BLOCK_OUTPUTS } else { 1 };
        let fits = |count: &usize| *count > 0 && *count < 1 << 30 && count.is_multiple_of(multiple);
        let is_pair = counts.len() == 2 && counts.windows(2).all(|pair| pair[0] == pair[1]);
        if counts.is_empty()
            || counts.len() > MAX_MATRICES
            || !counts.iter().all(fits)
            || (is_gated && !is_pair)
        {
            let gated = if is_gated { "gated " } else { "" };
            return Some(format!(
                "{gated}matrices of {counts:?} outputs; up to three have kernels, two if gated"
            ));
        }
        missing_image(properties, self.family().0).map(|error| error.to_string())
    }
}

/// Computes a product of a few rows into y, contiguous rows of all outputs. Sums are f32, and y is rounded once.
///
/// The bits of a row do not depend on the other rows.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for a product without a kernel ([`RowsProduct::unsupported`]), and for memory that is too short or does not
/// begin at a multiple of 16 bytes; driver errors.
pub fn multiply_rows(stream: &Stream, product: &RowsProduct<'_>, y: DeviceSliceMut<'_, u8>) -> Result<()> {
    let properties = DeviceProperties::from_device(&stream.device())?;
    if let Some(reason) = product.unsupported(properties) {
        return Err(Error::invalid(OPERATION, reason, "a product that has a kernel"));
    }
    let RowsProduct { x, rows, inputs, norm, matrices, residual, .. } = *product;
    let outputs = product.outputs();
    let check = |name: &str, (address, bytes): (u64, usize), elements: usize| {
        if bytes >= elements * size_of::<u16>() && address.is_multiple_of(16) {
            return Ok(());
        }
        let found = format!("{name} of {bytes} bytes at address {address:#x}");
        Err(Error::invalid(OPERATION, found, format!("{elements} elements from a multiple of 16 bytes on")))
    };
    let memory = |slice: &DeviceSlice<'_, u8>| (slice.address(), slice.len());
    check("x", memory(&x), rows * inputs)?;
    check("y", (y.address(), y.len()), rows * outputs)?;
    for matrix in matrices {
        check("a weight", memory(&matrix.weight), matrix.outputs * inputs)?;
        matrix.bias.iter().try_for_each(|bias| check("a bias", memory(bias), matrix.outputs))?;
    }
    residual.iter().try_for_each(|residual| check("a residual", memory(residual), rows * outputs))?;
    for part in norm.iter().flat_map(|norm| [norm.weight, norm.bias]).flatten() {
        check("a part of the norm", memory(&part), inputs)?;
    }
    let _traced = traced(product, outputs);
    let none = x.slice(..0)?;
    let at = |index: usize| matrices.get(index);
    let address = |slice: Option<DeviceSlice<'_, u8>>| slice.map_or(0, |slice| slice.address());
    let mut end = 0;
    let ends = std::array::from_fn(|index| {
        end += at(index).map_or(0, |matrix| matrix.outputs);
        end as i32
    });
    let of_norm = |part: fn(&RowsNorm<'_>) -> f64| norm.as_ref().map_or(0.0, part) as f32;
    let parameters = RowsParameters {
        x: x.address(),
        weights: std::array::from_fn(|index| address(at(index).map(|matrix| matrix.weight))),
        biases: std::array::from_fn(|index| address(at(index).and_then(|matrix| matrix.bias))),
        norm_weight: address(norm.and_then(|norm| norm.weight)),
        norm_bias: address(norm.and_then(|norm| norm.bias)),
        residual: address(residual),
        y: y.address(),
        x_stride: inputs as i64,
        residual_stride: outputs as i64,
        y_stride: outputs as i64,
        ends,
        rows: rows as i32,
        inputs: inputs as i32,
        outputs: outputs as i32,
        norm: norm.map_or(0, |norm| if norm.is_layer_norm { 2 } else { 1 }),
        eps: of_norm(|norm| norm.eps),
        norm_offset: of_norm(|norm| norm.offset),
        activation: product.activation.code(false),
        is_gated: i32::from(product.is_gated),
        padding: [0],
    };
    let weights: [DeviceSlice<'_, u8>; MAX_MATRICES] =
        std::array::from_fn(|index| at(index).map_or(none, |matrix| matrix.weight));
    let biases: [DeviceSlice<'_, u8>; MAX_MATRICES] =
        std::array::from_fn(|index| at(index).and_then(|matrix| matrix.bias).unwrap_or(none));
    let [w0, w1, w2] = weights;
    let [b0, b1, b2] = biases;
    let norm_parts = [norm.and_then(|norm| norm.weight), norm.and_then(|norm| norm.bias)];
    let [norm_weight, norm_bias] = norm_parts.map(|part| part.unwrap_or(none));
    let parameters = WithMemory {
        parameters,
        reads: [x, w0, w1, w2, b0, b1, b2, norm_weight, norm_bias, residual.unwrap_or(none)],
        writes: [y],
    };
    let groups = match (product.is_input_major, product.is_gated) {
        (true, _) => outputs / BLOCK_OUTPUTS,
        (false, true) => outputs.div_ceil(WARPS),
        (false, false) => outputs.div_ceil(WARPS * WARP_OUTPUTS),
    };
    let blocks = groups.min(BLOCKS * properties.multiprocessors as usize);
    let (family, entry) = product.family();
    let function = images::kernel(&stream.device(), family, Entry::Name(entry))?;
    let config = LaunchConfig::new(blocks as u32, THREADS as u32).shared(product.shared_bytes() as u32);
    // SAFETY: the kernel takes these parameters. It reads and writes memory whose length was checked. All of it is entered.
    unsafe { function.launch(stream, config, (parameters,)) }
}

/// Returns the range of a product in a trace.
fn traced(product: &RowsProduct<'_>, outputs: usize) -> trace::Range {
    trace::span("engine", || {
        let RowsProduct { rows, inputs, matrices, .. } = *product;
        let weights: usize = matrices.iter().map(|matrix| matrix.outputs).sum();
        let arguments: trace::Arguments = vec![
            ("shapes", format!("{rows} rows of {inputs} to {outputs}").into()),
            ("dtype", product.dtype.name().into()),
            ("engine", "rows".into()),
            ("kernel", product.family().1.into()),
            ("operations", ((2 * rows * inputs * weights) as f64).into()),
            ("bytes", ((weights * inputs * size_of::<u16>()) as f64).into()),
        ];
        ("product of rows".into(), arguments)
    })
}

#[cfg(test)]
mod tests {
    use crate::images::entries;

    #[test]
    fn kernels_are_those_that_the_list_of_images_declares() {
        for element in ["f16", "bf16"] {
            let family = format!("gemm_rows_{element}");
            for target in ["sm_80", "sm_90a"] {
                let wanted = ["k", "n"].map(|order| format!("{family}_{order}"));
                assert_eq!(entries::declared(&family, target), wanted);
            }
        }
    }
}
