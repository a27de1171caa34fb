//! The arguments of a kernel that this library wrote itself: addresses in memory, then a block of bytes.
//!
//! As a list of [`Argument`](super::Argument)s, but borrowed, so that a launch makes nothing of its own for each.

use std::ffi::c_void;

use super::argument::{KernelArguments, LaunchTarget, Signature};
use super::argument_view::ArgumentView;
use super::image::{ArgumentKind, ArgumentType};
use super::memory::View;
use crate::error::Result;

/// One address.
pub(crate) struct Operand<'a> {
    /// All of the memory, in bytes.
    pub(crate) view: View<'a>,
    /// Where in it the kernel's address leads.
    pub(crate) address: u64,
    pub(crate) access: OperandAccess,
}

/// What the kernel does with an operand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperandAccess {
    Read,
    /// The memory is borrowed mutably.
    Write,
    /// Memory that another operand of the list writes.
    Shared,
}

/// The operands and the block.
pub(crate) struct Operands<'a> {
    pub(crate) memory: &'a [Operand<'a>],
    pub(crate) block: &'a [u8],
}

// SAFETY: the addresses and the block are borrowed, and memory is entered as what the kernel does with it.
unsafe impl KernelArguments for &Operands<'_> {
    const SIGNATURE: Option<Signature> = None;
    type Pointers = Vec<*mut c_void>;

    fn types(&self) -> impl ExactSizeIterator<Item = ArgumentType> {
        let count = self.memory.len();
        (0..count + 1).map(move |index| match index < count {
            true => ArgumentType::new(ArgumentKind::Address, 8, None),
            false => ArgumentType::new(ArgumentKind::Bytes, self.block.len(), None),
        })
    }

    fn enter(&self, target: LaunchTarget<'_>) -> Result<()> {
        for Operand { view, access, .. } in self.memory {
            match access {
                OperandAccess::Read => {
                    target.enter(view.allocation, view.allocation.read_access(view.whole))?
                }
                OperandAccess::Write => {
                    target.enter(view.allocation, view.allocation.write_access(view.whole))?
                }
                OperandAccess::Shared => {}
            }
        }
        Ok(())
    }

    fn pointers(&self) -> Vec<*mut c_void> {
        let mut pointers: Vec<*mut c_void> = Vec::with_capacity(self.memory.len() + 1);
        pointers.extend(self.memory.iter().map(|operand| {
            let address: *const u64 = &operand.address;
            address.cast_mut().cast::<c_void>()
        }));
        pointers.push(self.block.as_ptr().cast_mut().cast());
        pointers
    }

    fn describe(&self) -> Vec<ArgumentView<'_>> {
        let memory = self.memory.iter().map(|operand| match operand.access {
            OperandAccess::Shared => ArgumentView::value(
                ArgumentType::new(ArgumentKind::Address, 8, None),
                bytemuck::bytes_of(&operand.address),
            ),
            access => ArgumentView::memory_of(None, operand.view, access == OperandAccess::Write),
        });
        let block = ArgumentType::new(ArgumentKind::Bytes, self.block.len(), None);
        memory.chain([ArgumentView::value(block, self.block)]).collect()
    }
}
