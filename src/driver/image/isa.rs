//! Compatibility of images: PTX ISA versions, driver versions, architectures.
//!
//! PTX needs a driver of at least the CUDA version that introduced its ISA; minor-version compatibility does not cover
//! it. Machine code needs its own major architecture at the same or a later minor, and a driver of its toolkit's major
//! version. A driver newer than this table decides itself about PTX newer than the table.

use super::{ArchitectureSuffix, ImageEntry, ImageInfo, ImageKind, TargetArchitecture};
use crate::error::{Error, Result};

/// The PTX ISA of each CUDA version, oldest first, with the first CUDA version (in the driver's notation) that has it.
/// 12.6 kept the ISA of 12.5; 12.7 was a driver only.
const ISA_OF_CUDA: [(i32, (i32, i32)); 27] = [
    (10_000, (6, 3)),
    (10_010, (6, 4)),
    (10_020, (6, 5)),
    (11_000, (7, 0)),
    (11_010, (7, 1)),
    (11_020, (7, 2)),
    (11_030, (7, 3)),
    (11_040, (7, 4)),
    (11_050, (7, 5)),
    (11_060, (7, 6)),
    (11_070, (7, 7)),
    (11_080, (7, 8)),
    (12_000, (8, 0)),
    (12_010, (8, 1)),
    (12_020, (8, 2)),
    (12_030, (8, 3)),
    (12_040, (8, 4)),
    (12_050, (8, 5)),
    (12_070, (8, 6)),
    (12_080, (8, 7)),
    (12_090, (8, 8)),
    (13_000, (9, 0)),
    (13_010, (9, 1)),
    (13_020, (9, 2)),
    (13_030, (9, 3)),
    (13_040, (9, 4)),
    (13_050, (9, 5)),
];

/// Returns the newest PTX ISA that a driver is known to accept, for its CUDA version from `cuDriverGetVersion`: 12040
/// is 12.4.
///
/// For a driver newer than the table it is the newest ISA of the table, and for one older than CUDA 10 it is 6.0.
pub fn isa_of_driver(cuda_version: i32) -> (i32, i32) {
    ISA_OF_CUDA.iter().rev().find(|(cuda, _)| *cuda <= cuda_version).map_or((6, 0), |(_, isa)| *isa)
}

/// Returns the CUDA version that introduced a PTX ISA, such as `12.8` for `(8, 7)`; `None` if it is not known.
pub fn cuda_of_isa(isa: (i32, i32)) -> Option<String> {
    ISA_OF_CUDA.iter().find(|(_, known)| *known == isa).map(|(cuda, _)| cuda_text(*cuda))
}

/// Checks that a device of this compute capability can run the image under a driver of this CUDA version (12040 is
/// 12.4). A fatbin needs one usable entry.
///
/// # Errors
/// [`Error::UnsupportedImage`] with a description of the image and of its requirements.
pub fn check(image: &ImageInfo, capability: (i32, i32), driver_version: i32) -> Result<()> {
    let mut refusals = Vec::new();
    for entry in &image.entries {
        match refusal(entry, capability, driver_version) {
            None => return Ok(()),
            Some(refusal) => refusals.push(refusal),
        }
    }
    if image.kind != ImageKind::Fatbin
        && let Some(Refusal { found, wanted, .. }) = refusals.pop()
    {
        return Err(Error::UnsupportedImage { found, wanted });
    }
    let held: Vec<String> = image.entries.iter().map(entry_text).collect();
    let held = if held.is_empty() { "neither PTX nor machine code".to_owned() } else { held.join(", ") };
    let mut wanted = format!(
        "no entry runs on a device of sm_{}{} under a driver of CUDA {}",
        capability.0,
        capability.1,
        cuda_text(driver_version)
    );
    if let Some(refusal) = refusals.iter().find(|refusal| refusal.for_the_driver) {
        wanted = format!("{wanted} ({})", refusal.wanted);
    }
    Err(Error::UnsupportedImage { found: format!("the fatbin holds {held}"), wanted })
}

/// The reason why an entry does not run.
struct Refusal {
    found: String,
    wanted: String,
    /// True if the driver is the cause and not the device. A driver can be updated.
    for_the_driver: bool,
}

/// Returns the reason why an entry does not run; `None` if it does or may.
fn refusal(entry: &ImageEntry, capability: (i32, i32), driver: i32) -> Option<Refusal> {
    let device = format!("the device is sm_{}{}", capability.0, capability.1);
    let TargetArchitecture { capability: made_for, suffix } = entry.target;
    let found = format!("the image is {}", entry_text(entry));
    let runs = match suffix {
        ArchitectureSuffix::Architecture => made_for == capability,
        ArchitectureSuffix::Family => same_family(made_for, capability),
        ArchitectureSuffix::None if entry.kind == ImageKind::Ptx => made_for <= capability,
        ArchitectureSuffix::None => made_for.0 == capability.0 && made_for.1 <= capability.1,
    };
    if !runs {
        let rule = match (suffix, entry.kind) {
            (ArchitectureSuffix::Architecture, _) => "code for an 'a' target runs on that architecture alone",
            (ArchitectureSuffix::Family, _) => {
                "code for an 'f' target runs on later architectures of its family alone"
            }
            (ArchitectureSuffix::None, ImageKind::Ptx) => "PTX runs on its architecture and later ones",
            (ArchitectureSuffix::None, _) => {
                "machine code runs on its architecture and later minors of the same major"
            }
        };
        return Some(Refusal { found, wanted: format!("{device}, and {rule}"), for_the_driver: false });
    }
    if let Some(isa) = entry.isa {
        let newest = isa_of_driver(driver);
        if isa > newest && !newer_than_table(driver) {
            return Some(Refusal {
                found: format!("the image is PTX {}", isa_text(isa)),
                wanted: format!(
                    "the driver is CUDA {} and takes PTX up to {}",
                    cuda_text(driver),
                    version_text(newest)
                ),
                for_the_driver: true,
            });
        }
    }
    match entry.toolkit {
        Some(toolkit) if toolkit.0 > driver / 1000 => Some(Refusal {
            found: format!("{found} made by CUDA {}", version_text(toolkit)),
            wanted: format!(
                "the driver is CUDA {} and takes machine code of CUDA {} or older",
                cuda_text(driver),
                driver / 1000
            ),
            for_the_driver: true,
        }),
        _ => None,
    }
}

/// Returns whether family code for one architecture runs on another. 10.1 (Thor's first number, 11.0 since) is not in
/// the family of 10.0.
fn same_family(made_for: (i32, i32), capability: (i32, i32)) -> bool {
    made_for.0 == capability.0
        && made_for.1 <= capability.1
        && (made_for == (10, 1)) == (capability == (10, 1))
}

fn newer_than_table(driver: i32) -> bool {
    ISA_OF_CUDA.last().is_some_and(|(cuda, _)| driver >= cuda + 10)
}

fn entry_text(entry: &ImageEntry) -> String {
    match (entry.kind, entry.isa) {
        (ImageKind::Ptx, Some(isa)) => format!("PTX {} for {}", isa_text(isa), entry.target),
        (ImageKind::Ptx, None) => format!("PTX for {}", entry.target),
        _ => format!("machine code for {}", entry.target),
    }
}

fn isa_text(isa: (i32, i32)) -> String {
    match cuda_of_isa(isa) {
        Some(cuda) => format!("{} (CUDA {cuda})", version_text(isa)),
        None => version_text(isa),
    }
}

fn cuda_text(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

fn version_text((major, minor): (i32, i32)) -> String {
    format!("{major}.{minor}")
}
