//! The arguments of a kernel that this library wrote itself: addresses in memory, then a block of bytes.
//!
//! As a list of [`Argument`](super::Argument)s, but borrowed, so that a launch makes nothing of its own for each. A kernel
//! that is launched again and again is held against its arguments once.

use std::ffi::c_void;

use super::argument::{KernelArguments, LaunchTarget, Signature};
use super::argument_view::ArgumentView;
use super::function::Function;
use super::image::{ArgumentKind, ArgumentType};
use super::launch::LaunchConfig;
use super::memory::View;
use super::stream::Stream;
use crate::error::Result;

/// One address.
#[derive(Clone, Copy)]
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

/// As many pointers as need no allocation.
const FEW_POINTERS: usize = 9;

/// The list that a launch is given.
pub(crate) struct Pointers {
    few: [*mut c_void; FEW_POINTERS],
    /// All of them, where they are more.
    many: Vec<*mut c_void>,
    count: usize,
}

impl AsMut<[*mut c_void]> for Pointers {
    #[inline]
    fn as_mut(&mut self) -> &mut [*mut c_void] {
        if self.many.is_empty() { &mut self.few[..self.count] } else { &mut self.many }
    }
}

/// What each of `count` operands and a block of so many bytes is to a kernel.
fn types_of(count: usize, block: usize) -> impl ExactSizeIterator<Item = ArgumentType> {
    (0..count + 1).map(move |index| match index < count {
        true => ArgumentType::new(ArgumentKind::Address, 8, None),
        false => ArgumentType::new(ArgumentKind::Bytes, block, None),
    })
}

impl Function {
    /// Whether the kernel takes as many operands and a block of so many bytes.
    ///
    /// # Errors
    ///
    /// [`Error::ArgumentCount`](crate::Error::ArgumentCount) or
    /// [`Error::ArgumentMismatch`](crate::Error::ArgumentMismatch).
    pub(crate) fn accepts_operands(&self, count: usize, block: usize) -> Result<()> {
        self.0.check_types(types_of(count, block))
    }

    /// As [`launch`](Self::launch), for as many operands and as large a block as the kernel was found to accept.
    ///
    /// # Errors
    ///
    /// As [`launch`](Self::launch).
    ///
    /// # Safety
    ///
    /// As [`launch`](Self::launch); and [`accepts_operands`](Self::accepts_operands) has said so.
    #[inline]
    pub(crate) unsafe fn launch_operands(
        &self,
        stream: &Stream,
        config: LaunchConfig,
        operands: &Operands<'_>,
    ) -> Result<()> {
        // SAFETY: the arguments fit the parameters and are entered before the launch; the rest is the caller's word.
        unsafe {
            self.issue(stream.state(), &config, |target| operands.enter(target), operands.pointers().as_mut())
        }
    }
}

// SAFETY: the addresses and the block are borrowed, and memory is entered as what the kernel does with it.
unsafe impl KernelArguments for &Operands<'_> {
    const SIGNATURE: Option<Signature> = None;
    type Pointers = Pointers;

    fn types(&self) -> impl ExactSizeIterator<Item = ArgumentType> {
        types_of(self.memory.len(), self.block.len())
    }

    #[inline]
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

    #[inline]
    fn pointers(&self) -> Pointers {
        let count = self.memory.len() + 1;
        let addresses = self.memory.iter().map(|operand| {
            let address: *const u64 = &operand.address;
            address.cast_mut().cast::<c_void>()
        });
        let all = addresses.chain([self.block.as_ptr().cast_mut().cast()]);
        let mut pointers = Pointers { few: [std::ptr::null_mut(); FEW_POINTERS], many: Vec::new(), count };
        if count > FEW_POINTERS {
            pointers.many.extend(all);
        } else {
            for (place, pointer) in pointers.few.iter_mut().zip(all) {
                *place = pointer;
            }
        }
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
