//! Indices of [`Expr::at_group`](crate::fuse::Expr::at_group): their checks, and the report of a wrong one.
//!
//! A program in one kernel checks the index of a row in its last stage. A program in several kernels computes the
//! indices of all groups and launches [`text`] on them. Both claim the device's report as `selvedge/report.cuh` does.

use crate::driver::{KernelError, LaunchConfig, Operand, OperandAccess, Operands, Stream, View};
use crate::error::{Error, Result};
use crate::fuse::ptx::ENTRY;
use crate::fuse::run::elementwise_device::assembled;

const THREADS: u32 = 256;

/// Registers of a kernel that reports an index.
pub(in crate::fuse) struct ReportNames {
    /// The address of the report, 0 for none, and the code of the error.
    pub(in crate::fuse) report: String,
    pub(in crate::fuse) code: String,
    /// The index and the number of valid ones, in 64 bits.
    pub(in crate::fuse) index: String,
    pub(in crate::fuse) size: String,
    /// Two registers of 32 bits and a predicate, which are written.
    pub(in crate::fuse) taken: String,
    pub(in crate::fuse) claimed: String,
    pub(in crate::fuse) differs: String,
    /// The label after the report.
    pub(in crate::fuse) label: String,
}

impl ReportNames {
    /// Returns the instructions that claim the report, fill it in and complete it.
    pub(in crate::fuse) fn lines(&self) -> Vec<String> {
        let ReportNames { report, code, index, size, taken, claimed, differs, label } = self;
        vec![
            format!("setp.eq.u64 {differs}, {report}, 0;"),
            format!("@{differs} bra {label};"),
            format!("ld.volatile.global.u32 {taken}, [{report}+128];"),
            format!("ld.volatile.global.u32 {claimed}, [{report}];"),
            // A look before the claim: an array of nothing but errors would fill the bus otherwise.
            format!("setp.ne.u32 {differs}, {claimed}, {taken};"),
            format!("@{differs} bra {label};"),
            format!("add.u32 {claimed}, {taken}, 1;"),
            format!("atom.global.cas.b32 {claimed}, [{report}], {taken}, {claimed};"),
            format!("setp.ne.u32 {differs}, {claimed}, {taken};"),
            format!("@{differs} bra {label};"),
            format!("st.volatile.global.u32 [{report}+8], {code};"),
            // No axis.
            format!("mov.u32 {claimed}, 4294967295;"),
            format!("st.volatile.global.u32 [{report}+12], {claimed};"),
            format!("st.volatile.global.u64 [{report}+16], {index};"),
            format!("st.volatile.global.u64 [{report}+24], {size};"),
            // The host sees the words above before it sees that they are complete.
            "membar.sys;".to_owned(),
            format!("add.u32 {taken}, {taken}, 1;"),
            format!("st.volatile.global.u32 [{report}+4], {taken};"),
        ]
    }
}

/// Returns the offsets of the report's address and of the error's code in a block with this many scalars before.
pub(in crate::fuse) fn report_parameters(scalars: usize) -> [usize; 2] {
    [16 * scalars, 16 * scalars + 16]
}

/// Returns the text of the kernel that checks one index of each group.
fn text() -> String {
    let name = str::to_owned;
    let names = ReportNames {
        report: name("%rd1"),
        code: name("%r1"),
        index: name("%rd2"),
        size: name("%rd3"),
        taken: name("%r2"),
        claimed: name("%r3"),
        differs: name("%p1"),
        label: name("$end"),
    };
    let report = names.lines().join("\n");
    format!(
        ".version 8.0\n.target sm_60\n.address_size 64\n.visible .entry {ENTRY}(\n.param .u64 {ENTRY}_read_0,\n\
         .param .align 8 .b8 block[32]\n)\n.maxntid {THREADS}\n{{\n.reg .pred %p<2>;\n.reg .b32 %r<6>;\n\
         .reg .b64 %rd<8>;\nmov.u32 %r4, %ctaid.x;\nmov.u32 %r5, %tid.x;\ncvt.u64.u32 %rd4, %r4;\n\
         cvt.u64.u32 %rd5, %r5;\nmad.lo.u64 %rd4, %rd4, {THREADS}, %rd5;\nld.param.u64 %rd5, [block+24];\n\
         setp.ge.u64 %p1, %rd4, %rd5;\n@%p1 bra $end;\nld.param.u64 %rd6, [{ENTRY}_read_0];\n\
         mad.lo.u64 %rd6, %rd4, 8, %rd6;\nld.global.u64 %rd2, [%rd6];\nld.param.u64 %rd3, [block+16];\n\
         setp.lt.u64 %p1, %rd2, %rd3;\n@%p1 bra $end;\nld.param.u64 %rd1, [block];\nld.param.u32 %r1, [block+8];\n\
         {report}\n$end:\nret;\n}}\n"
    )
}

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
        Ok(CheckLaunch { text: text(), blocks, threads: THREADS, block })
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
