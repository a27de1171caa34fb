//! The pass of rows in one launch on CUDA devices, by `csrc/kernels/classifier.cu`.
//!
//! The kernels take networks of three hidden layers of 64, 32 and 16, up to 128 features (a multiple of 4) and 8 classes.
//! [`FusedPass::of`] returns `None` for others, which [`forward`](super::forward) classifies by products and row programs.
//!
//! The host gets its part of a result through page-locked memory that the kernel writes, so that a call is one launch and one
//! wait. Invariant: that memory goes back to its pool only when the stream has ended its work.

use std::mem::ManuallyDrop;
use std::sync::Once;

use bytemuck::{Pod, Zeroable};

use super::forward::ClassificationBatch;
use super::generative::GenerativeModel;
use super::history::HISTORY_LENGTH;
use super::model::Classification;
use super::network::Network;
use crate::driver::{ByValue, Function, LaunchConfig, PinnedBuffer, RawAddress, Stream};
use crate::error::Result;
use crate::images::{DeviceProperties, Entry, kernel, missing_image};
use crate::tensor::{Device, Tensor};

const FAMILY: &str = "classifier";
const HIDDEN: [usize; 3] = [64, 32, 16];
const MAX_CLASSES: usize = 8;
const MAX_FEATURES: usize = 128;

/// Rows and threads of a block of `classifier_rows`.
const ROWS_OF_A_BLOCK: usize = 128;
/// Threads of `classifier_row`.
const THREADS_OF_A_ROW: u32 = 512;

const ROWS: &str = "classifier_rows";
const ROW: &str = "classifier_row";

const IS_FUSED: u32 = 1;
const IS_FULL: u32 = 2;

/// `Problem` of the kernels.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Problem {
    rows: u32,
    features: u32,
    classes: u32,
    flags: u32,
    scale: f32,
    offset: f32,
}

/// `Exchange` of the kernels.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Exchange {
    is_bad: u32,
    class: u32,
    energy: f32,
    confidence: f32,
    posterior: [f32; MAX_CLASSES],
    beliefs: [f32; MAX_CLASSES],
    /// The first [`HISTORY_LENGTH`] are used.
    energies: [f32; 128],
    features: [f32; MAX_FEATURES],
}

/// The operands of a pass that the kernels compute.
pub(super) struct FusedPass {
    /// `network` of the kernels.
    network: Tensor,
    problem: Problem,
}

/// Returns the shared memory of a block: `SharedStorage` of the kernels.
fn shared_bytes(features: u32) -> u32 {
    let [first, second, third] = HIDDEN.map(|width| width as u32);
    let classes = MAX_CLASSES as u32;
    let network = features * first + first * second + second * third + third * classes;
    let biases = first + second + third + classes;
    let own = classes + features * classes + classes + first + MAX_FEATURES as u32;
    (network + biases + own) * size_of::<f32>() as u32
}

/// Returns whether the kernels take a network of these widths.
fn fits(widths: &[usize]) -> bool {
    match widths {
        [features, hidden @ .., classes] => {
            hidden == HIDDEN && *features <= MAX_FEATURES && features % 4 == 0 && *classes <= MAX_CLASSES
        }
        _ => false,
    }
}

impl FusedPass {
    /// Returns the pass of a network, and `None` on the CPU, for a network of other widths, and, with a line in the log, on a
    /// device without an image of the kernels.
    pub fn of(
        network: &Network,
        prior: &Tensor,
        is_fused: bool,
        model: Option<&GenerativeModel>,
    ) -> Result<Option<FusedPass>> {
        static MISSING: Once = Once::new();
        let (device, widths) = (prior.device(), network.widths());
        let Some(driver_device) = device.as_cuda().filter(|_| fits(&widths)) else { return Ok(None) };
        if let Some(reason) = missing_image(DeviceProperties::from_device(driver_device)?, FAMILY) {
            MISSING.call_once(|| log::warn!("classifiers run by several kernels, not by one: {reason}"));
            return Ok(None);
        }
        let Some(network) = packed(network, prior, model)? else { return Ok(None) };
        let [scale, offset] = model.map_or([0.0; 2], GenerativeModel::scale_and_offset);
        let flags = if is_fused { IS_FUSED } else { 0 } | if model.is_some() { IS_FULL } else { 0 };
        Ok(Some(FusedPass {
            network,
            problem: Problem {
                rows: 0,
                features: widths.first().copied().unwrap_or(0) as u32,
                classes: prior.count() as u32,
                flags,
                scale: scale as f32,
                offset: offset as f32,
            },
        }))
    }

    /// Classifies at least one row of a matrix of the right shape. Returns the results with the free energies of the last rows,
    /// and `None` if a feature is not finite, and for more than 2³¹ rows.
    pub fn rows(&self, features: &Tensor) -> Result<Option<(ClassificationBatch, Vec<f64>)>> {
        let (rows, classes) = (features.shape().first().copied().unwrap_or(0), self.problem.classes as usize);
        if i32::try_from(rows).is_err() {
            return Ok(None);
        }
        let (stream, features) = (self.network.device().stream()?, features.contiguous()?);
        let function = function(&stream, ROWS)?;
        let problem = Problem { rows: rows as u32, ..self.problem };
        let kinds = if problem.flags & IS_FUSED != 0 { 2 } else { 1 };
        let mut probabilities = stream.uninitialized::<f32>(kinds * rows * classes)?;
        let mut measures = stream.uninitialized::<f32>(2 * rows)?;
        let mut found = stream.uninitialized::<i64>(rows)?;
        let exchange = run(&stream, Exchange::zeroed(), |exchange| {
            let arguments = (
                features.device_slice::<f32>()?,
                self.network.device_slice::<f32>()?,
                &mut probabilities,
                &mut measures,
                &mut found,
                exchange,
                ByValue(problem),
            );
            let blocks = rows.div_ceil(ROWS_OF_A_BLOCK) as u32;
            let config =
                LaunchConfig::new(blocks, ROWS_OF_A_BLOCK as u32).shared(shared_bytes(self.problem.features));
            // SAFETY: the shapes of the operands are those of `problem`, and the kernel stays in them.
            unsafe { function.launch(&stream, config, arguments) }
        })?;
        if exchange.is_bad != 0 {
            return Ok(None);
        }
        let probabilities = Tensor::from_buffer(probabilities, &[kinds, rows, classes])?;
        let measures = Tensor::from_buffer(measures, &[2, rows])?;
        let batch = ClassificationBatch {
            classes: Tensor::from_buffer(found, &[rows])?,
            posterior: probabilities.select(0, 0)?,
            beliefs: probabilities.select(0, -1)?,
            free_energy: measures.select(0, 0)?,
            confidence: measures.select(0, 1)?,
        };
        let last = exchange.energies.iter().take(rows.min(HISTORY_LENGTH));
        Ok(Some((batch, last.map(|&energy| energy.into()).collect())))
    }

    /// Classifies one row of as many features as the network has. Returns `None` for another number of features, and if one is
    /// not finite.
    pub fn row(&self, features: &[f32]) -> Result<Option<Classification>> {
        let mut exchange = Exchange::zeroed();
        match exchange.features.get_mut(..features.len()) {
            Some(target) if features.len() == self.problem.features as usize => {
                target.copy_from_slice(features)
            }
            _ => return Ok(None),
        }
        let stream = self.network.device().stream()?;
        let function = function(&stream, ROW)?;
        let exchange = run(&stream, exchange, |exchange| {
            let arguments =
                (self.network.device_slice::<f32>()?, exchange, ByValue(Problem { rows: 1, ..self.problem }));
            let config = LaunchConfig::new(1, THREADS_OF_A_ROW).shared(shared_bytes(self.problem.features));
            // SAFETY: as in `rows`.
            unsafe { function.launch(&stream, config, arguments) }
        })?;
        if exchange.is_bad != 0 {
            return Ok(None);
        }
        let classes = self.problem.classes as usize;
        let values = |all: [f32; MAX_CLASSES]| all.iter().take(classes).map(|&x| x.into()).collect();
        Ok(Some(Classification {
            class: exchange.class as usize,
            posterior: values(exchange.posterior),
            beliefs: values(exchange.beliefs),
            free_energy: exchange.energy.into(),
            confidence: exchange.confidence.into(),
        }))
    }
}

/// Returns the operand `network` of the kernels. `None` for a layer without a bias.
fn packed(network: &Network, prior: &Tensor, model: Option<&GenerativeModel>) -> Result<Option<Tensor>> {
    let classes = prior.count();
    let mut packed = Vec::new();
    let mut push = |x: &Tensor, is_by_class: bool| -> Result<()> {
        let elements = x.to_vec::<f32>()?;
        if !is_by_class {
            packed.extend(elements);
            return Ok(());
        }
        for row in elements.chunks(classes) {
            packed.extend(row);
            packed.extend(std::iter::repeat_n(0.0, MAX_CLASSES - classes));
        }
        Ok(())
    };
    for (at, (weight, bias)) in network.layers().enumerate() {
        let Some(bias) = bias else { return Ok(None) };
        push(&weight, at == HIDDEN.len())?;
        push(&bias, at == HIDDEN.len())?;
    }
    push(prior, true)?;
    if let Some(model) = model {
        push(&model.centres().to(&Device::cpu())?.transpose(0, 1)?, true)?;
    }
    let count = packed.len();
    Tensor::from_vec(packed, &[count], &prior.device()).map(Some)
}

fn function(stream: &Stream, name: &'static str) -> Result<Function> {
    kernel(&stream.device(), FAMILY, Entry::Name(name))
}

/// Launches with the address of an exchange, and returns the exchange when the stream's work has ended.
fn run(
    stream: &Stream,
    content: Exchange,
    launch: impl FnOnce(RawAddress) -> Result<()>,
) -> Result<Exchange> {
    // After an error the kernel may still run, so the memory is not given back then.
    let mut memory = ManuallyDrop::new(stream.device().pinned::<Exchange>(1)?);
    let address = RawAddress(memory.as_ptr().expose_provenance() as u64);
    memory.fill(content);
    launch(address)?;
    stream.synchronize()?;
    let memory: PinnedBuffer<Exchange> = ManuallyDrop::into_inner(memory);
    Ok(memory.first().copied().unwrap_or(content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::entries;

    #[test]
    fn kernels_are_those_that_the_list_of_images_declares() {
        assert_eq!(entries::declared(FAMILY, "sm_60"), [ROW, ROWS]);
    }

    #[test]
    fn the_largest_network_fits_the_shared_memory_of_every_device() {
        for (widths, wanted) in [
            (&[100, 64, 32, 16, 5][..], true),
            (&[128, 64, 32, 16, 8], true),
            (&[4, 64, 32, 16, 1], true),
            (&[132, 64, 32, 16, 5], false),
            (&[102, 64, 32, 16, 5], false),
            (&[100, 64, 32, 16, 9], false),
            (&[100, 64, 32, 5], false),
            (&[100, 64, 16, 32, 5], false),
            (&[5], false),
        ] {
            assert_eq!(fits(widths), wanted, "{widths:?}");
        }
        // Without the opt-in to more.
        assert!(shared_bytes(MAX_FEATURES as u32) <= 48 << 10);
    }
}
