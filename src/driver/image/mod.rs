//! Inspection of kernel images.
//!
//! A load parses an image here before the driver sees it, for two reasons. First, `cuModuleLoadData` takes a pointer
//! and no length: a truncated cubin or fatbin would make the driver read past the end, so every extent in an image is
//! checked against its bytes. Second, the driver's own errors (`CUDA_ERROR_INVALID_PTX`,
//! `CUDA_ERROR_NO_BINARY_FOR_GPU`) name neither the image's properties nor the requirements; [`check`] names both.
//! Launches are checked against the kernels' parameters, which are also parsed here.
//!
//! Invariants: no function of this module calls the driver; none panics or loops for long on any bytes; none refuses an
//! image that a driver newer than this crate may accept. PTX must end in a NUL before it goes to the driver;
//! [`ImageInfo::parse`] accepts it with and without.

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

/// The container format of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ImageKind {
    /// PTX text, which the driver assembles for its device.
    Ptx,
    /// Machine code for one architecture: a CUDA ELF file.
    Cubin,
    /// A fatbin: several PTX texts and cubins in one file.
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

/// The set of devices that may run an architecture's code: the letter behind `sm_90`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArchitectureSuffix {
    /// No letter: PTX runs on this and every later architecture, machine code on later minors of the same major.
    None,
    /// `a`: this architecture alone.
    Architecture,
    /// `f`: this architecture and later ones of its family.
    Family,
}

/// The architecture that code was compiled for, such as `sm_90a`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TargetArchitecture {
    /// The compute capability, such as `(9, 0)`.
    pub capability: (i32, i32),
    /// The letter behind it. Machine code for a family does not record it and has [`ArchitectureSuffix::None`].
    pub suffix: ArchitectureSuffix,
}

impl TargetArchitecture {
    /// Returns the target of an architecture number, such as 90 for `sm_90`; `None` if it is not valid.
    fn from_number(number: u32, suffix: ArchitectureSuffix) -> Option<TargetArchitecture> {
        let number = i32::try_from(number).ok().filter(|number| (10..10_000).contains(number))?;
        Some(TargetArchitecture { capability: (number / 10, number % 10), suffix })
    }
}

impl fmt::Display for TargetArchitecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.suffix {
            ArchitectureSuffix::None => "",
            ArchitectureSuffix::Architecture => "a",
            ArchitectureSuffix::Family => "f",
        };
        write!(f, "sm_{}{}{suffix}", self.capability.0, self.capability.1)
    }
}

/// A runnable part of an image: the whole of a PTX file or cubin, or one entry of a fatbin.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageEntry {
    /// [`ImageKind::Ptx`] or [`ImageKind::Cubin`].
    pub kind: ImageKind,
    /// The architecture.
    pub target: TargetArchitecture,
    /// The ISA version of PTX, such as `(8, 7)`.
    pub isa: Option<(i32, i32)>,
    /// The CUDA version of the tools that made machine code, such as `(12, 9)`, if recorded.
    pub toolkit: Option<(i32, i32)>,
}

/// A kernel of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelInfo {
    /// The name, mangled as in the image.
    pub name: String,
    /// The parameters in order; `None` if the image does not describe them.
    pub parameters: Option<Vec<Parameter>>,
    /// The largest number of threads per block that the kernel was compiled for (`.maxntid`, `__launch_bounds__`).
    pub max_threads: Option<u64>,
    /// The block shape that every launch must have (`.reqntid`).
    pub required_block: Option<[u32; 3]>,
    /// The cluster shape, in blocks, that every launch must have (`.reqnctapercluster`).
    pub required_cluster: Option<[u32; 3]>,
}

impl KernelInfo {
    fn new(name: String) -> KernelInfo {
        KernelInfo { name, parameters: None, max_threads: None, required_block: None, required_cluster: None }
    }
}

/// The contents of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageInfo {
    /// The container.
    pub kind: ImageKind,
    /// The ISA version of PTX; for a fatbin the newest of its PTX entries. Machine code has none.
    pub isa: Option<(i32, i32)>,
    /// The architectures of its code, each once, in the image's order.
    pub targets: Vec<TargetArchitecture>,
    /// The runnable parts: any number in a fatbin, otherwise one.
    pub entries: Vec<ImageEntry>,
    /// The kernels, each once, in the image's order.
    pub kernels: Vec<KernelInfo>,
    /// The names of the global and constant variables that the image defines.
    pub globals: Vec<String>,
    /// True if `kernels` and `globals` are complete. Compressed fatbin entries are not parsed.
    pub complete: bool,
    /// True if it is an object that must be linked before it can be loaded (`nvcc -rdc=true -cubin`).
    pub relocatable: bool,
}

impl ImageInfo {
    /// Parses PTX text, a cubin or a fatbin.
    ///
    /// # Errors
    /// [`Error::NotAnImage`] with a guess at the format of other bytes; [`Error::DamagedImage`] for a truncated or
    /// inconsistent image.
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

    /// Returns an image of this kind in the form that the driver takes, which gets no length: PTX ends in a NUL. A
    /// byte-order mark before PTX is removed, and non-ASCII bytes of its comments become blanks, because assemblers
    /// refuse both.
    pub(crate) fn for_driver(image: &[u8], kind: ImageKind) -> Cow<'_, [u8]> {
        if kind == ImageKind::Ptx { ascii::for_driver(image) } else { image.into() }
    }

    /// Adds the parameter kinds from the PTX that this machine code was assembled from. Kernels with other parameter
    /// offsets are unchanged.
    pub fn merge_parameters(&mut self, ptx: &ImageInfo) {
        for kernel in &mut self.kernels {
            let (Some(known), Some(described)) = (
                &mut kernel.parameters,
                ptx.kernel(&kernel.name).and_then(|kernel| kernel.parameters.as_ref()),
            ) else {
                continue;
            };
            let offsets = |of: &[Parameter]| of.iter().map(|one| (one.offset, one.size)).collect::<Vec<_>>();
            if offsets(known) == offsets(described) {
                known.clone_from(described);
            }
        }
    }

    /// The kernel of this name.
    pub fn kernel(&self, name: &str) -> Option<&KernelInfo> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    fn single(entry: ImageEntry) -> ImageInfo {
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

    /// Removes repeated kernels and globals: a fatbin has them once per entry.
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
