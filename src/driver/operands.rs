//! The arguments of the crate's own kernels: addresses in memory, then a block of bytes.
//!
//! They are like a list of [`Argument`](super::Argument)s but borrowed, so a launch allocates nothing for them. A
//! kernel that is launched repeatedly is checked against its arguments once.

use std::ffi::c_void;

use super::argument::{KernelArguments, LaunchTarget, Signature};
use super::argument_view::ArgumentView;
use super::function::Function;
use super::image::{ArgumentKind, ArgumentType};
use super::launch::LaunchConfig;
use super::memory::View;
use super::stream::Stream;
use crate::error::Result;

/// One address argument.
#[derive(Clone, Copy)]
pub(crate) struct Operand<'a> {
    /// All of the operand's memory, in bytes.
    pub(crate) view: View<'a>,
    /// The address that the kernel gets, inside that memory.
    pub(crate) address: u64,
    pub(crate) access: OperandAccess,
}

/// The kernel's access to an operand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperandAccess {
    Read,
    /// The memory is borrowed mutably.
    Write,
    /// Another operand of the list writes the memory.
    Shared,
}

/// The operands and the block of bytes.
pub(crate) struct Operands<'a> {
    pub(crate) memory: &'a [Operand<'a>],
    pub(crate) block: &'a [u8],
}

/// The largest number of pointers that needs no allocation.
const FEW_POINTERS: usize = 9;

/// The list of pointers of a launch, of which `FEW` need no allocation.
pub struct Pointers<const FEW: usize> {
    few: [*mut c_void; FEW],
    /// All pointers, if they exceed the inline array.
    many: Vec<*mut c_void>,
    count: usize,
}

impl<const FEW: usize> Pointers<FEW> {
    /// Returns the list of these pointers.
    pub(super) fn of(list: impl ExactSizeIterator<Item = *mut c_void>) -> Pointers<FEW> {
        let count = list.len();
        let mut pointers = Pointers { few: [std::ptr::null_mut(); FEW], many: Vec::new(), count };
        match pointers.few.get_mut(..count) {
            Some(few) => few.iter_mut().zip(list).for_each(|(at, pointer)| *at = pointer),
            None => pointers.many = list.collect(),
        }
        pointers
    }
}

impl Pointers<FEW_POINTERS> {
    /// A list for `operands` operands and a block.
    #[inline]
    fn new(count: usize) -> Pointers<FEW_POINTERS> {
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

impl<const FEW: usize> AsMut<[*mut c_void]> for Pointers<FEW> {
    #[inline]
    fn as_mut(&mut self) -> &mut [*mut c_void] {
        if self.many.is_empty() { &mut self.few[..self.count] } else { &mut self.many }
    }
}

/// The argument types of `count` operands and a block of `block` bytes.
fn types_of(count: usize, block: usize) -> impl ExactSizeIterator<Item = ArgumentType> {
    (0..count + 1).map(move |index| match index < count {
        true => ArgumentType::new(ArgumentKind::Address, 8, None),
        false => ArgumentType::new(ArgumentKind::Bytes, block, None),
    })
}

impl Function {
    /// Checks that the kernel takes `count` operands and a block of `block` bytes, and allows the launch's shape.
    ///
    /// # Errors
    ///
    /// [`Error::ArgumentCount`](crate::Error::ArgumentCount), [`Error::ArgumentMismatch`](crate::Error::ArgumentMismatch)
    /// or [`Error::LaunchLimit`](crate::Error::LaunchLimit).
    pub(crate) fn accepts_operands(&self, config: &LaunchConfig, count: usize, block: usize) -> Result<()> {
        self.check_config(config)?;
        self.0.check_types(types_of(count, block))
    }

    /// As [`launch`](Self::launch), without the checks of [`accepts_operands`](Self::accepts_operands).
    ///
    /// # Errors
    ///
    /// As [`launch`](Self::launch).
    ///
    /// # Safety
    ///
    /// As [`launch`](Self::launch), and [`accepts_operands`](Self::accepts_operands) returned no error.
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
        // SAFETY: the arguments fit the parameters and are registered before the launch; the caller vouches for the
        // rest.
        unsafe {
            self.issue(stream.state(), &config, |target| enter(memory.clone(), target), pointers.as_mut())
        }
    }
}

/// Registers the stream as a user of the memory, with the kernel's access.
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

// SAFETY: the addresses and the block are borrowed, and memory is registered with the kernel's access.
unsafe impl KernelArguments for &Operands<'_> {
    const SIGNATURE: Option<Signature> = None;
    type Pointers = Pointers<FEW_POINTERS>;

    fn types(&self) -> impl ExactSizeIterator<Item = ArgumentType> {
        types_of(self.memory.len(), self.block.len())
    }

    #[inline]
    fn enter(&self, target: LaunchTarget<'_>) -> Result<()> {
        enter(self.memory.iter(), target)
    }

    #[inline]
    fn pointers(&self) -> Pointers<FEW_POINTERS> {
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
