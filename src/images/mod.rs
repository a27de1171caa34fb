//! The crate's own kernels: compiled beforehand from `csrc/kernels`, embedded compressed, chosen by device and driver.
//!
//! A *family* is the kernels of one source file that are loaded together, such as `gather_32`; it has an image for each
//! target that it was compiled for. Why PTX, and old PTX: its ISA decides from which driver on it loads (8.0: CUDA 12.0,
//! Linux driver 525), and one text serves every later card. Kernels that take the driver long to assemble have machine code
//! (cubin) too. Kernels for `sm_90a` are machine code only: their PTX would run on no other architecture, and devices of
//! that architecture always got the cubin.
//!
//! [`load`] returns the module of a family on a device, loaded once; other modules of this crate look kernels up by family
//! and entry in caches which a reset of the device empties. [`select`] chooses the image before it is loaded and returns the
//! reason where none fits, so the driver is never asked for an image that it would refuse with a bare number.
//!
//! Two variables of the environment override the choice:
//!
//! - `SELVEDGE_ARCH=sm_80` chooses as if the device were no newer than that: the PTX that an sm_80 would get.
//! - `SELVEDGE_IMAGE` is `ptx` (no machine code; products on a 9.0 then use the kernels of older architectures), `cubin`
//!   (nothing but), or `auto`.
//!
//! An image like another one is compressed with that one as its dictionary (`ptx/references`), which halves the bytes of all. A
//! process that loads it unpacks the dictionary first: products of f16 on a 9.0 then take some 16 ms instead of 6, once.
//!
//! Invariants: `ptx/manifest` and the files it lists fit `csrc/kernels` (tests/images.rs), and choosing is a
//! function of its arguments and these two variables alone.

#[cfg(test)]
pub(crate) mod entries;
mod frame;
mod load;
mod properties;
mod select;
mod target;
mod tensor_maps;

use std::fmt;

use crate::driver::image::{ImageKind, TargetArchitecture};
use crate::error::{Error, Result};

pub(crate) use load::{Entry, kernel, missing_image};
pub use load::{load, preload};
pub use properties::DeviceProperties;
pub use select::{Overrides, select, select_with};
pub(crate) use tensor_maps::{MAP_ALIGNMENT, MAP_STRIDE, MatrixLayout, tensor_element};

/// One embedded image: a family compiled for a target.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Image {
    family: &'static str,
    target_name: &'static str,
    isa: (i32, i32),
    kind: ImageKind,
    /// The index in [`IMAGES`] of the image that is the dictionary of this one.
    reference: Option<usize>,
    packed: &'static [u8],
}

static IMAGES: &[Image] = include!(concat!(env!("OUT_DIR"), "/images.rs"));

impl Image {
    /// The family's name.
    pub fn family(&self) -> &'static str {
        self.family
    }

    /// The architecture that it was compiled for.
    ///
    /// # Errors
    ///
    /// [`Error::DamagedImage`] where the embedded name is none of an architecture.
    pub fn target(&self) -> Result<TargetArchitecture> {
        target::parse(self.target_name).ok_or_else(|| {
            self.damaged(format!("a target named '{}' in image '{}'", self.target_name, self.family))
        })
    }

    /// The PTX ISA that a driver must take at least to load it; of machine code, the one of the CUDA version from which
    /// drivers load it.
    pub fn isa(&self) -> (i32, i32) {
        self.isa
    }

    /// [`ImageKind::Ptx`] or [`ImageKind::Cubin`].
    pub fn kind(&self) -> ImageKind {
        self.kind
    }

    /// Its bytes in the executable.
    pub fn packed_length(&self) -> usize {
        self.packed.len()
    }

    /// Unpacks and returns the image.
    ///
    /// # Errors
    ///
    /// [`Error::DamagedImage`] where the embedded bytes do not unpack to what was packed.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        let unpacked = match self.reference.and_then(|index| IMAGES.get(index)) {
            None => frame::unpack(self.packed),
            Some(reference) => frame::unpack_with(&reference.bytes()?, self.packed),
        };
        unpacked
            .map_err(|reason| self.damaged(format!("embedded image '{self}' that does not unpack: {reason}")))
    }

    fn damaged(&self, found: String) -> Error {
        let kind = if self.kind == ImageKind::Ptx { "PTX" } else { "cubin" };
        Error::DamagedImage { kind, found }
    }
}

impl fmt::Display for Image {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} for {} ({})", self.family, self.target_name, self.kind)
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Image")
            .field("family", &self.family)
            .field("target", &self.target_name)
            .field("isa", &self.isa)
            .field("kind", &self.kind)
            .field("packed_length", &self.packed_length())
            .finish_non_exhaustive()
    }
}

/// Every embedded image, ordered by name.
pub fn all() -> &'static [Image] {
    IMAGES
}

/// The names of all families, each once, in order.
pub fn families() -> Vec<&'static str> {
    let mut families: Vec<_> = IMAGES.iter().map(Image::family).collect();
    families.sort_unstable();
    families.dedup();
    families
}

#[cfg(test)]
mod tests;
