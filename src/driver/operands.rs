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

impl Pointers {
    /// Of so many operands and a block.
    #[inline]
    fn new(count: usize) -> Pointers {
        Pointers { few: [std::ptr::null_mut(); FEW_POINTERS], many: Vec::new(), count: count + 1 }
    }

    /// Points at the operands, as many as were counted, and at the block.
    #[inline]
    fn fill<'a>(&mut self, memory: impl Iterator<Item = &'a Operand<'a>>, block: &[u8]) {
        let block = block.as_ptr().cast_mut().cast();
        let address = |operand: &Operand<'_>| std::ptr::from_ref(&operand.address).cast_mut().cast();
        if self.count > FEW_POINTERS {
            self.many.extend(memory.map(address).chain([block]));
            return;
        }
        let (list, last) = self.few.split_at_mut(self.count - 1);
        for (at, operand) in memory.take(list.len()).enumerate() {
            list[at] = address(operand);
        }
        last[0] = block;
    }
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
    /// Whether the kernel takes as many operands and a block of so many bytes, and may be launched like this.
    ///
    /// # Errors
    ///
    /// [`Error::ArgumentCount`](crate::Error::ArgumentCount), [`Error::ArgumentMismatch`](crate::Error::ArgumentMismatch)
    /// or [`Error::LaunchLimit`](crate::Error::LaunchLimit).
    pub(crate) fn accepts_operands(&self, config: &LaunchConfig, count: usize, block: usize) -> Result<()> {
        self.check_config(config)?;
        self.0.check_types(types_of(count, block))
    }

    /// As [`launch`](Self::launch), for what the kernel was found to accept.
    ///
    /// # Errors
    ///
    /// As [`launch`](Self::launch).
    ///
    /// # Safety
    ///
    /// As [`launch`](Self::launch); and [`accepts_operands`](Self::accepts_operands) has said so.
    #[inline]
    pub(crate) unsafe fn launch_operands<'a>(
        &self,
        stream: &Stream,
        config: LaunchConfig,
        memory: impl ExactSizeIterator<Item = &'a Operand<'a>> + Clone,
        block: &[u8],
    ) -> Result<()> {
        let mut pointers = Pointers::new(memory.len());
        pointers.fill(memory.clone(), block);
        // SAFETY: the arguments fit the parameters and are entered before the launch; the rest is the caller's word.
        unsafe {
            self.issue(stream.state(), &config, |target| enter(memory.clone(), target), pointers.as_mut())
        }
    }
}

/// Enters memory as what the kernel does with it.
#[inline]
fn enter<'a>(memory: impl Iterator<Item = &'a Operand<'a>>, target: LaunchTarget<'_>) -> Result<()> {
    for Operand { view, access, .. } in memory {
        let access = match access {
            OperandAccess::Read => view.allocation.read_access(view.whole),
            OperandAccess::Write => view.allocation.write_access(view.whole),
            OperandAccess::Shared => continue,
        };
        target.enter(view.allocation, access)?;
    }
    Ok(())
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
        enter(self.memory.iter(), target)
    }

    #[inline]
    fn pointers(&self) -> Pointers {
        let mut pointers = Pointers::new(self.memory.len());
        pointers.fill(self.memory.iter(), self.block);
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
