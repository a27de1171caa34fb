//! What a kernel image holds, read from its bytes alone.
//!
//! A load checks an image here before the driver sees it, for two reasons. `cuModuleLoadData` takes a pointer and no
//! length: a truncated cubin or fatbin would make the driver read past the end, so every extent that an image states is
//! held against the bytes that there are. And the driver's own answers (`CUDA_ERROR_INVALID_PTX`,
//! `CUDA_ERROR_NO_BINARY_FOR_GPU`) name neither what was found nor what would have worked; [`check`] names both. The
//! kernels' parameters, found here too, are what launches are checked against.
//!
//! What must stay true: no function of this module calls the driver, none panics or loops for long on any bytes, and
//! none refuses an image that a newer driver than this crate knows may take. PTX must end in a NUL before it goes to the
//! driver; [`ImageInfo::parse`] accepts it with and without.

mod ascii;
mod cubin;
mod declaration;
mod fatbin;
mod isa;
mod mangled;
mod parameter;
mod ptx;
mod sniff;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use crate::error::{Error, Result};

pub use declaration::{ArgumentType, Declaration, ValueType};
pub use isa::{check, cuda_of_isa, isa_of_driver};
pub use parameter::{ArgumentKind, Parameter, ParameterKind};

/// The container that an image is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ImageKind {
    /// PTX text, which the driver assembles for its device.
    Ptx,
    /// Machine code for one architecture: a CUDA ELF file.
    Cubin,
    /// Several of both in one file.
    Fatbin,
}

impl fmt::Display for ImageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ImageKind::Ptx => "PTX",
            ImageKind::Cubin => "cubin",
            ImageKind::Fatbin => "fatbin",
        })
    }
}

/// Which devices beside its own an architecture's code may use: the letter behind `sm_90`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Suffix {
    /// No letter: PTX runs on this and every later architecture, machine code on later minors of the same major.
    None,
    /// `a`: this architecture alone.
    Architecture,
    /// `f`: this architecture and later ones of its family.
    Family,
}

/// The architecture that code was made for, such as `sm_90a`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    /// The compute capability, such as `(9, 0)`.
    pub capability: (i32, i32),
    /// The letter behind it. Machine code made for a family does not say so and shows as [`Suffix::None`].
    pub suffix: Suffix,
}

impl Target {
    /// The target of an architecture number, such as 90 for `sm_90`; `None` where it is no such number.
    fn from_number(number: u32, suffix: Suffix) -> Option<Target> {
        let number = i32::try_from(number).ok().filter(|number| (10..10_000).contains(number))?;
        Some(Target { capability: (number / 10, number % 10), suffix })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.suffix {
            Suffix::None => "",
            Suffix::Architecture => "a",
            Suffix::Family => "f",
        };
        write!(f, "sm_{}{}{suffix}", self.capability.0, self.capability.1)
    }
}

/// One thing of an image that a device may run: the whole of a PTX file or cubin, or one entry of a fatbin.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// [`ImageKind::Ptx`] or [`ImageKind::Cubin`].
    pub kind: ImageKind,
    /// The architecture.
    pub target: Target,
    /// The ISA version of PTX, such as `(8, 7)`.
    pub isa: Option<(i32, i32)>,
    /// The CUDA version of the tools that made machine code, such as `(12, 9)`, where it says so.
    pub toolkit: Option<(i32, i32)>,
}

/// A kernel of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelInfo {
    /// The name, mangled as it is in the image.
    pub name: String,
    /// The parameters in order; `None` where the image does not say.
    pub parameters: Option<Vec<Parameter>>,
    /// The most threads of a block that the kernel was compiled for (`.maxntid`, `__launch_bounds__`).
    pub max_threads: Option<u64>,
    /// The block that every launch must have (`.reqntid`).
    pub required_block: Option<[u32; 3]>,
    /// The cluster, in blocks, that every launch must have (`.reqnctapercluster`).
    pub required_cluster: Option<[u32; 3]>,
}

impl KernelInfo {
    fn new(name: String) -> KernelInfo {
        KernelInfo { name, parameters: None, max_threads: None, required_block: None, required_cluster: None }
    }
}

/// What an image holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageInfo {
    /// The container.
    pub kind: ImageKind,
    /// The ISA version of PTX; for a fatbin the newest of its PTX entries. Machine code has none.
    pub isa: Option<(i32, i32)>,
    /// The architectures that it has code for, each once, in the image's order.
    pub targets: Vec<Target>,
    /// What a device may run; a fatbin may have many, the others have one.
    pub entries: Vec<Entry>,
    /// The kernels, each once, in the image's order.
    pub kernels: Vec<KernelInfo>,
    /// The names of the global and constant variables that the image defines.
    pub globals: Vec<String>,
    /// Whether `kernels` and `globals` are all that there are: a compressed fatbin entry is not looked into.
    pub complete: bool,
    /// Whether it is an object that must be linked before it can be loaded (`nvcc -rdc=true -cubin`).
    pub relocatable: bool,
}

impl ImageInfo {
    /// Reads what `bytes` hold: PTX text, a cubin or a fatbin.
    ///
    /// # Errors
    /// [`Error::NotAnImage`] where they are none of these, with what they look like; [`Error::DamagedImage`] where they
    /// begin as one and end too early or contradict themselves.
    pub fn parse(bytes: &[u8]) -> Result<ImageInfo> {
        if fatbin::is_fatbin(bytes) {
            fatbin::parse(bytes)
        } else if cubin::is_cubin(bytes) {
            cubin::parse(bytes)
        } else if ptx::is_ptx(bytes) {
            ptx::parse(bytes)
        } else {
            Err(Error::NotAnImage { found: sniff::describe(bytes) })
        }
    }

    /// Returns an image of this kind as the driver reads it, which knows no length: PTX ends in a NUL. A byte-order mark
    /// before PTX goes, and bytes of its comments that are not ASCII become blanks, because assemblers refuse both.
    pub(crate) fn for_driver(image: &[u8], kind: ImageKind) -> Cow<'_, [u8]> {
        if kind == ImageKind::Ptx { ascii::for_driver(image) } else { image.into() }
    }

    /// Takes over what PTX tells of the kernels and machine code made of it does not: the kinds of parameters. Kernels whose
    /// parameters lie otherwise are left alone.
    pub fn learn(&mut self, ptx: &ImageInfo) {
        for kernel in &mut self.kernels {
            let (Some(known), Some(told)) = (
                &mut kernel.parameters,
                ptx.kernel(&kernel.name).and_then(|kernel| kernel.parameters.as_ref()),
            ) else {
                continue;
            };
            let places = |of: &[Parameter]| of.iter().map(|one| (one.offset, one.size)).collect::<Vec<_>>();
            if places(known) == places(told) {
                known.clone_from(told);
            }
        }
    }

    /// The kernel of this name.
    pub fn kernel(&self, name: &str) -> Option<&KernelInfo> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    fn single(entry: Entry) -> ImageInfo {
        ImageInfo {
            kind: entry.kind,
            isa: entry.isa,
            targets: vec![entry.target],
            entries: vec![entry],
            kernels: Vec::new(),
            globals: Vec::new(),
            complete: true,
            relocatable: false,
        }
    }

    /// Keeps the first of each kernel and global: a fatbin has them once an entry.
    fn keep_first_names(&mut self) {
        let mut seen = HashSet::new();
        self.kernels.retain(|kernel| seen.insert(kernel.name.clone()));
        seen.clear();
        self.globals.retain(|name| seen.insert(name.clone()));
    }
}

fn damaged<T>(kind: &'static str, found: impl Into<String>) -> Result<T> {
    Err(Error::DamagedImage { kind, found: found.into() })
}
