//! Checks of the indices of [`Expr::at_group`](crate::fuse::Expr::at_group), for a program that runs as several kernels.

use super::elementwise_device::assembled;
use crate::driver::{KernelError, LaunchConfig, Operand, OperandAccess, Operands, Stream, View};
use crate::error::{Error, Result};
use crate::fuse::ptx::rows::text_of_check;

const THREADS: u32 = 256;

/// The launch of a check of the indices of all groups.
pub(in crate::fuse) struct CheckLaunch {
    pub(in crate::fuse) text: String,
    pub(in crate::fuse) blocks: u32,
    pub(in crate::fuse) threads: u32,
    pub(in crate::fuse) block: Vec<u8>,
}

impl CheckLaunch {
    /// Creates the launch for `count` groups of `size` elements.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for more groups than a grid has threads.
    pub(in crate::fuse) fn new(
        error: &'static KernelError,
        report: u64,
        code: u32,
        count: usize,
        size: usize,
    ) -> Result<CheckLaunch> {
        let words = [report, u64::from(code), size as u64, count as u64];
        let too_many = |_| Error::invalid(error.operation(), format!("{count} groups"), "fewer than 2^39");
        let blocks = u32::try_from(count.div_ceil(THREADS as usize)).map_err(too_many)?;
        let block = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Ok(CheckLaunch { text: text_of_check(THREADS), blocks, threads: THREADS, block })
    }
}

/// Checks the indices of all groups on the host.
///
/// # Errors
///
/// [`Error::IndexOutOfRange`] for the first that is not below `size`.
pub(in crate::fuse) fn check_host(error: &'static KernelError, indices: &[i64], size: usize) -> Result<()> {
    let is_outside = |index: &&i64| usize::try_from(**index).map_or(true, |index| index >= size);
    match indices.iter().find(is_outside) {
        Some(&index) => Err(Error::IndexOutOfRange { operation: error.operation(), index, axis: None, size }),
        None => Ok(()),
    }
}

/// Launches the check of the indices of all groups. The next call that waits for the device returns the error.
///
/// # Errors
///
/// Errors of [`Device::load`](crate::driver::Device::load) and of the launch.
pub(in crate::fuse) fn check_device(
    error: &'static KernelError,
    stream: &Stream,
    indices: View<'_>,
    count: usize,
    size: usize,
) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    let device = stream.device();
    let launch = CheckLaunch::new(error, device.report_address()?.0, error.code(), count, size)?;
    let function = assembled(&device, launch.text.into())?;
    let memory = [Operand { view: indices, address: indices.address, access: OperandAccess::Read }];
    let config = LaunchConfig::new(launch.blocks, launch.threads);
    // SAFETY: the kernel reads `count` indices, which the buffer holds, and writes the device's report.
    unsafe { function.launch(stream, config, &Operands { memory: &memory, block: &launch.block }) }
}
