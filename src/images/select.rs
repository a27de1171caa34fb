//! Which image of a family a device gets.

use std::env;

use super::{IMAGES, Image, target};
use crate::driver::image::{ArchitectureSuffix, ImageKind, TargetArchitecture, cuda_of_isa};
use crate::error::{Error, Result};

/// Overrides of the choice of an image. [`Overrides::default`] overrides nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overrides {
    /// Choose as if the device were no newer than this.
    pub architecture: Option<TargetArchitecture>,
    /// Choose images of this kind alone.
    pub kind: Option<ImageKind>,
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
            name => Some(target::parse(name).ok_or_else(|| {
                Error::invalid(
                    "SELVEDGE_ARCH",
                    format!("'{name}'"),
                    "an architecture such as sm_80 or sm_90a",
                )
            })?),
        };
        let kind = match image.unwrap_or_default() {
            "" | "auto" => None,
            "ptx" => Some(ImageKind::Ptx),
            "cubin" => Some(ImageKind::Cubin),
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
/// let image = selvedge::images::select("gather_32", (9, 0), (8, 0))?;
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

/// The images of a family.
pub(super) fn of_family(images: &[Image], family: &str) -> Result<Vec<Image>> {
    let own: Vec<Image> = images.iter().filter(|image| image.family == family).copied().collect();
    if own.is_empty() {
        let mut families: Vec<_> = images.iter().map(Image::family).collect();
        families.dedup();
        let wanted = format!("one of {}", families.join(", "));
        return Err(Error::invalid("choosing an image", format!("family '{family}'"), wanted));
    }
    Ok(own)
}

/// The choice itself: of the images that the device can run and the driver can load, the one with the greatest target,
/// and of two for one target the machine code.
pub(super) fn select_among(
    images: &[Image],
    family: &str,
    capability: (i32, i32),
    driver_isa: (i32, i32),
    overrides: Overrides,
) -> Result<Image> {
    let own = of_family(images, family)?;
    if let Some(architecture) = overrides.architecture
        && !target::assembles_for(architecture, capability)
    {
        let device = TargetArchitecture { capability, suffix: ArchitectureSuffix::None };
        let wanted = format!("an architecture that this device, an {device}, runs");
        return Err(Error::invalid("SELVEDGE_ARCH", architecture, wanted));
    }
    let device = TargetArchitecture { capability, suffix: ArchitectureSuffix::Architecture };
    let ceiling = target::order(overrides.architecture.unwrap_or(device));

    // The images that the device runs; those that the driver loads are chosen from them below.
    let mut fitting = Vec::new();
    for image in &own {
        let made_for = image.target()?;
        let runs = match image.kind {
            ImageKind::Cubin => target::runs_on(made_for, capability),
            _ => target::assembles_for(made_for, capability),
        };
        let wanted = overrides.kind.is_none_or(|kind| kind == image.kind);
        if runs && wanted && target::order(made_for) <= ceiling {
            fitting.push((target::order(made_for), image.kind == ImageKind::Cubin, *image));
        }
    }
    if fitting.is_empty() {
        return Err(nothing_fits(family, &own, capability, overrides));
    }
    let loadable = fitting.iter().filter(|(.., image)| image.isa <= driver_isa);
    match loadable.max_by_key(|(order, machine_code, _)| (*order, *machine_code)) {
        Some((.., image)) => Ok(*image),
        None => {
            // The least demanding one says from which driver on anything works.
            let least = fitting.iter().map(|(.., image)| image).min_by_key(|image| image.isa);
            Err(driver_too_old(least.unwrap_or(&own[0]), driver_isa))
        }
    }
}

fn nothing_fits(family: &str, own: &[Image], capability: (i32, i32), overrides: Overrides) -> Error {
    let there: Vec<String> =
        own.iter().map(|image| format!("{} for {}", image.kind, image.target_name)).collect();
    let mut wanted = format!("a device of compute capability {}.{} needs ", capability.0, capability.1);
    wanted += match overrides.kind {
        Some(ImageKind::Cubin) => "a cubin for its own architecture (SELVEDGE_IMAGE=cubin excludes PTX)",
        Some(_) => "PTX for its architecture or an older one (SELVEDGE_IMAGE=ptx excludes cubins)",
        None => "PTX for its architecture or an older one, or a cubin for its own",
    };
    if let Some(architecture) = overrides.architecture {
        wanted += &format!(", no newer than SELVEDGE_ARCH={architecture}");
    }
    Error::UnsupportedImage { found: format!("image family '{family}' has {}", there.join(", ")), wanted }
}

fn driver_too_old(image: &Image, driver_isa: (i32, i32)) -> Error {
    let text = |isa: (i32, i32)| match cuda_of_isa(isa) {
        Some(cuda) => format!("{}.{} (CUDA {cuda})", isa.0, isa.1),
        None => format!("{}.{}", isa.0, isa.1),
    };
    let found = match image.kind {
        ImageKind::Cubin => {
            format!("image '{}' is a cubin for drivers that take PTX {}", image.family, text(image.isa))
        }
        _ => format!("image '{}' is PTX {}", image.family, text(image.isa)),
    };
    let wanted = format!("the driver takes PTX up to {}: install a newer driver", text(driver_isa));
    Error::UnsupportedImage { found, wanted }
}
