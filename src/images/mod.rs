//! The crate's own kernels: compiled beforehand from `csrc/kernels`, embedded compressed, chosen by device and driver.
//!
//! A *family* is the kernels of one source file that are loaded together, such as `arithmetic`; it has an image for each
//! target that it was compiled for. Why PTX, and old PTX: its ISA decides from which driver on it loads (8.0: CUDA 12.0,
//! Linux driver 525), and one text serves every later card. Where assembling takes the driver long, machine code
//! (cubin) lies beside it.
//!
//! [`select`] chooses before anything is loaded and knows the reason where nothing fits, so the driver is never asked to
//! load what it would refuse with a bare number.
//!
//! Two variables of the environment override the choice:
//!
//! - `SELVEDGE_ARCH=sm_80` chooses as if the device were no newer than that: the PTX that an sm_80 would get.
//! - `SELVEDGE_IMAGE` is `ptx` (no machine code), `cubin` (nothing but), or `auto`.
//!
//! What must stay true: `ptx/manifest` and the files it lists fit `csrc/kernels` (tests/images.rs), and choosing is a
//! function of its arguments and these two variables alone.

mod isa;
mod strided;
mod target;

use std::env;
use std::fmt;

use crate::error::{Error, Result};

pub use isa::{cuda_of_isa, isa_of_cuda};
pub use strided::StridedLayout;
pub use target::Target;

/// What an image is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Text that the driver assembles for its device.
    Ptx,
    /// Machine code for one architecture.
    Cubin,
}

impl Kind {
    /// `PTX` or `cubin`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Ptx => "PTX",
            Kind::Cubin => "cubin",
        }
    }
}

/// One embedded image: a family compiled for a target.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Image {
    family: &'static str,
    target_name: &'static str,
    isa: (i32, i32),
    kind: Kind,
    length: usize,
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
    pub fn target(&self) -> Result<Target> {
        Target::parse(self.target_name).ok_or_else(|| {
            self.damaged(format!("a target named '{}' in image '{}'", self.target_name, self.family))
        })
    }

    /// The PTX ISA that a driver must take at least to load it; of machine code, the one of the CUDA version from which
    /// drivers load it.
    pub fn isa(&self) -> (i32, i32) {
        self.isa
    }

    /// Whether it is PTX or machine code.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Bytes that it takes in the executable.
    pub fn packed_length(&self) -> usize {
        self.packed.len()
    }

    /// The image itself, unpacked anew by each call.
    ///
    /// # Errors
    ///
    /// [`Error::DamagedImage`] where the embedded bytes do not unpack to what was packed.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        let bytes = miniz_oxide::inflate::decompress_to_vec_with_limit(self.packed, self.length).map_err(
            |error| self.damaged(format!("embedded image '{self}' that does not unpack: {error}")),
        )?;
        if bytes.len() == self.length {
            Ok(bytes)
        } else {
            let found =
                format!("embedded image '{self}' of {} bytes instead of {}", bytes.len(), self.length);
            Err(self.damaged(found))
        }
    }

    fn damaged(&self, found: String) -> Error {
        Error::DamagedImage { kind: self.kind.name(), found }
    }
}

impl fmt::Display for Image {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} for {} ({})", self.family, self.target_name, self.kind.name())
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
            .field("length", &self.length)
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

/// What may override the choice; [`Overrides::default`] overrides nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overrides {
    /// Choose as if the device were no newer than this.
    pub architecture: Option<Target>,
    /// Choose images of this kind alone.
    pub kind: Option<Kind>,
}

impl Overrides {
    /// Reads the values of `SELVEDGE_ARCH` and `SELVEDGE_IMAGE`; `None` and an empty one override nothing.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] names the variable, its value and what it may be.
    pub fn parse(architecture: Option<&str>, image: Option<&str>) -> Result<Overrides> {
        let architecture = match architecture.unwrap_or_default() {
            "" => None,
            name => Some(Target::parse(name).ok_or_else(|| {
                Error::invalid(
                    "SELVEDGE_ARCH",
                    format!("'{name}'"),
                    "an architecture such as sm_80 or sm_90a",
                )
            })?),
        };
        let kind = match image.unwrap_or_default() {
            "" | "auto" => None,
            "ptx" => Some(Kind::Ptx),
            "cubin" => Some(Kind::Cubin),
            name => return Err(Error::invalid("SELVEDGE_IMAGE", format!("'{name}'"), "ptx, cubin or auto")),
        };
        Ok(Overrides { architecture, kind })
    }

    /// Reads the environment, anew by each call.
    ///
    /// # Errors
    ///
    /// As [`Overrides::parse`]; a value that is no Unicode is invalid.
    pub fn from_environment() -> Result<Overrides> {
        // A lossy reading of what is no Unicode is no valid value either, and can be shown.
        let read = |name| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        Overrides::parse(read("SELVEDGE_ARCH").as_deref(), read("SELVEDGE_IMAGE").as_deref())
    }
}

/// The image of a family for a device of this compute capability under a driver that assembles PTX up to `driver_isa`,
/// with the overrides of the environment.
///
/// ```
/// let image = selvedge::images::select("arithmetic", (9, 0), (8, 0))?;
/// assert!(image.bytes()?.starts_with(b".version 8.0"));
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`] for a family that is not there, an invalid override, or an override that asks for a newer
/// architecture than the device has; [`Error::UnsupportedImage`] where no image fits the device, or those that do need
/// a newer driver.
pub fn select(family: &str, capability: (i32, i32), driver_isa: (i32, i32)) -> Result<Image> {
    select_among(IMAGES, family, capability, driver_isa, Overrides::from_environment()?)
}

/// [`select`] with the overrides given.
///
/// # Errors
///
/// As [`select`].
pub fn select_with(
    family: &str,
    capability: (i32, i32),
    driver_isa: (i32, i32),
    overrides: Overrides,
) -> Result<Image> {
    select_among(IMAGES, family, capability, driver_isa, overrides)
}

/// The choice itself: of the images that the device can run and the driver can load, the one with the greatest target,
/// and of two for one target the machine code.
fn select_among(
    images: &[Image],
    family: &str,
    capability: (i32, i32),
    driver_isa: (i32, i32),
    overrides: Overrides,
) -> Result<Image> {
    let own: Vec<Image> = images.iter().filter(|image| image.family == family).copied().collect();
    if own.is_empty() {
        let mut families: Vec<_> = images.iter().map(Image::family).collect();
        families.dedup();
        let wanted = format!("one of {}", families.join(", "));
        return Err(Error::invalid("choosing an image", format!("family '{family}'"), wanted));
    }
    let device = Target { capability, specific: true };
    if let Some(architecture) = overrides.architecture {
        if !architecture.assembles_for(capability) {
            let plain = Target { specific: false, ..device };
            let wanted = format!("an architecture that this device, an {plain}, runs");
            return Err(Error::invalid("SELVEDGE_ARCH", architecture, wanted));
        }
    }
    let ceiling = overrides.architecture.unwrap_or(device);

    // (target, image) of all that the device runs, then of those the ones that the driver loads.
    let mut fitting = Vec::new();
    for image in &own {
        let target = image.target()?;
        let runs = match image.kind {
            Kind::Ptx => target.assembles_for(capability),
            Kind::Cubin => target.runs_on(capability),
        };
        // An `a` below the ceiling is not of this device, and so does not run anyway.
        if runs && target <= ceiling && overrides.kind.is_none_or(|kind| kind == image.kind) {
            fitting.push((target, *image));
        }
    }
    if fitting.is_empty() {
        return Err(nothing_fits(family, &own, capability, overrides));
    }
    let best = fitting
        .iter()
        .filter(|(_, image)| image.isa <= driver_isa)
        .max_by_key(|(target, image)| (*target, image.kind));
    match best {
        Some((_, image)) => Ok(*image),
        None => {
            // The least demanding one says from which driver on anything works.
            let least = fitting.iter().map(|(_, image)| image).min_by_key(|image| image.isa);
            Err(driver_too_old(least.unwrap_or(&own[0]), driver_isa))
        }
    }
}

fn nothing_fits(family: &str, own: &[Image], capability: (i32, i32), overrides: Overrides) -> Error {
    let there: Vec<String> =
        own.iter().map(|image| format!("{} for {}", image.kind.name(), image.target_name)).collect();
    let mut wanted = format!("a device of compute capability {}.{} needs ", capability.0, capability.1);
    wanted += match overrides.kind {
        None => "PTX for its architecture or an older one, or a cubin for its own",
        Some(Kind::Ptx) => "PTX for its architecture or an older one (SELVEDGE_IMAGE=ptx excludes cubins)",
        Some(Kind::Cubin) => "a cubin for its own architecture (SELVEDGE_IMAGE=cubin excludes PTX)",
    };
    if let Some(architecture) = overrides.architecture {
        wanted += &format!(", no newer than SELVEDGE_ARCH={architecture}");
    }
    Error::UnsupportedImage { found: format!("image family '{family}' has {}", there.join(", ")), wanted }
}

fn driver_too_old(image: &Image, driver_isa: (i32, i32)) -> Error {
    let of_cuda = |isa| match cuda_of_isa(isa) {
        Some((major, minor)) => format!(" (CUDA {major}.{minor})"),
        None => String::new(),
    };
    let (major, minor) = image.isa;
    let found = match image.kind {
        Kind::Ptx => format!("image '{}' is PTX {major}.{minor}{}", image.family, of_cuda(image.isa)),
        Kind::Cubin => {
            format!(
                "image '{}' is a cubin for drivers from PTX {major}.{minor}{} on",
                image.family,
                of_cuda(image.isa)
            )
        }
    };
    let (major, minor) = driver_isa;
    let wanted =
        format!("the driver takes PTX up to {major}.{minor}{}: install a newer driver", of_cuda(driver_isa));
    Error::UnsupportedImage { found, wanted }
}

/// Elements that one thread of the elementwise kernels takes, by the size of the result's element in bytes.
///
/// The best grid for `n` elements is `n` over this over 256, rounded up, of 256 threads; any other is right too.
pub fn items_per_thread(result_bytes: usize) -> usize {
    // As `items_per_thread` of csrc/kernels/elementwise.cuh.
    match result_bytes {
        0..=2 => 8,
        3..=15 => 16 / result_bytes,
        _ => 1,
    }
}

#[cfg(test)]
mod tests;
