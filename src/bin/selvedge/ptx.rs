//! `selvedge ptx`: what an image holds, which driver it needs, and whether it runs on this machine.
//!
//! All of it is read from the file; nothing is loaded. A machine without a driver is no failure: it is one more answer.

use selvedge::driver::image::{self, ImageEntry, ImageInfo, ImageKind, KernelInfo};
use selvedge::driver::{Device, driver_isa, driver_version};
use selvedge::nvrtc::{self, Target};
use selvedge::{Error, Result};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::options::PtxOptions;
use crate::output::{self, Report, Style, Table};
use crate::run::Compilation;
use crate::source::{self, Kernel, Source};

/// The oldest architecture that no NVRTC from 11.8 to 13 calls deprecated.
const LONG_KNOWN: u32 = 75;

/// The first Linux driver of each CUDA version, oldest first.
const DRIVERS: [(&str, u32); 22] = [
    ("10.0", 410),
    ("10.1", 418),
    ("10.2", 440),
    ("11.0", 450),
    ("11.1", 455),
    ("11.2", 460),
    ("11.3", 465),
    ("11.4", 470),
    ("11.5", 495),
    ("11.6", 510),
    ("11.7", 515),
    ("11.8", 520),
    ("12.0", 525),
    ("12.1", 530),
    ("12.2", 535),
    ("12.3", 545),
    ("12.4", 550),
    ("12.5", 555),
    ("12.7", 565),
    ("12.8", 570),
    ("12.9", 575),
    ("13.0", 580),
];

/// Reads the file, or compiles it, and says what there is.
pub fn ptx(options: &PtxOptions) -> Result<Report, Failure> {
    let kernel = Kernel::read(&options.file, &options.compile, &options.target)?;
    let (image, compiled) = match kernel {
        Kernel::Image(image) => (image, None),
        Kernel::Source(source) => compile(&source, options)?,
    };
    let info = ImageInfo::parse(&image)?;
    let style = Style::of_stdout();
    let name = options.file.display().to_string();
    let mut text =
        format!("{}\n", style.bold(&format!("{name}: {}, {}", info.kind, output::bytes(image.len() as u64))));
    if let Some(compiled) = &compiled {
        let whence = if compiled.from_cache { "from the cache" } else { "compiled now" };
        text += &format!("  compiled for {}, {whence}\n", compiled.target);
    }
    text += &entries(&info, style);
    text += &kernels(&info, style);
    if !info.globals.is_empty() {
        text += &format!("\n{}\n", style.dim("globals"));
        text += &info.globals.iter().map(|name| format!("  {name}\n")).collect::<String>();
    }
    let here = here(&info);
    text += &format!("\n{}\n{}", style.dim("this machine"), here.text);
    let json = json!({
        "file": name,
        "bytes": image.len(),
        "kind": info.kind.to_string(),
        "compiled": compiled.as_ref().map(Compilation::json),
        "entries": info.entries.iter().map(entry_json).collect::<Vec<_>>(),
        "kernels": info.kernels.iter().map(kernel_json).collect::<Vec<_>>(),
        "globals": info.globals,
        "complete": info.complete,
        "relocatable": info.relocatable,
        "machine": here.json,
    });
    Ok(Report { text, json })
}

/// PTX, which tells most of its parameters: for the first device where there is one, else of [`LONG_KNOWN`].
fn compile(source: &Source, options: &PtxOptions) -> Result<(Vec<u8>, Option<Compilation>), Failure> {
    let target = match options.target.target {
        Some(target) => target,
        None => target().map_err(source::explained)?,
    };
    let compiled = source.compile(target, &source::cache(options.target.no_cache), None)?;
    source::show_warnings(&compiled);
    Ok((compiled.image().to_vec(), Some(Compilation::of(&compiled))))
}

/// Compiles for the first device. The driver may still refuse the result, which the report then says.
fn target() -> Result<Target> {
    if let Ok(device) = Device::new(0) {
        return Target::ptx_for_device(device.compute_capability(), (i32::MAX, 0));
    }
    let architectures = nvrtc::architectures()?;
    let chosen = architectures.iter().find(|architecture| **architecture >= LONG_KNOWN);
    format!("compute_{}", chosen.or(architectures.last()).copied().unwrap_or_default()).parse()
}

fn number((major, minor): (i32, i32)) -> String {
    format!("{major}.{minor}")
}

/// The CUDA version that a driver must have for this, where the image tells: of PTX that of its ISA, of machine code the
/// first of its toolkit's major.
fn needs(entry: &ImageEntry) -> Option<String> {
    match entry.kind {
        ImageKind::Ptx => entry.isa.and_then(image::cuda_of_isa),
        _ => entry.toolkit.map(|(major, _)| number((major, 0))),
    }
}

/// The first Linux driver with it.
fn driver_of(cuda: &str) -> Option<u32> {
    DRIVERS.iter().find(|(known, _)| *known == cuda).map(|(_, driver)| *driver)
}

fn entries(info: &ImageInfo, style: Style) -> String {
    let mut table = Table::with_head("<<<<", ["code", "target", "made by", "needs"]);
    for entry in &info.entries {
        let made_by = match (entry.isa, entry.toolkit) {
            (Some(isa), _) => format!("ISA {}", number(isa)),
            (None, Some(toolkit)) => format!("CUDA {}", number(toolkit)),
            (None, None) => String::new(),
        };
        let needs = needs(entry).map(|cuda| match driver_of(&cuda) {
            Some(driver) => format!("a driver of CUDA {cuda} or newer ({driver} on Linux)"),
            None => format!("a driver of CUDA {cuda} or newer"),
        });
        table.row([
            entry.kind.to_string(),
            entry.target.to_string(),
            made_by,
            needs.unwrap_or_else(|| "it does not say".to_owned()),
        ]);
    }
    let mut text = table.render(style);
    if info.relocatable {
        text += "  It is an object: it must be linked before it can be loaded.\n";
    }
    text
}

fn kernels(info: &ImageInfo, style: Style) -> String {
    let mut text = format!("\n{}\n", style.dim("kernels"));
    if info.kernels.is_empty() && info.complete {
        text += "  none\n";
    }
    for kernel in &info.kernels {
        text += &format!("  {}{}\n", style.bold(&kernel.name), limits(kernel));
        let Some(parameters) = &kernel.parameters else {
            text += "    its parameters are not in the image\n";
            continue;
        };
        for (index, parameter) in parameters.iter().enumerate() {
            text += &format!("    {index}: {parameter}, at {}\n", parameter.offset);
        }
    }
    if !info.complete {
        text += "  A compressed entry is not looked into: there may be more.\n";
    }
    text
}

/// Returns the limits of a launch of the kernel.
fn limits(kernel: &KernelInfo) -> String {
    let three = |[x, y, z]: [u32; 3]| format!("{x},{y},{z}");
    let limits = [
        kernel.max_threads.map(|threads| format!("at most {threads} threads a block")),
        kernel.required_block.map(|block| format!("blocks of {}", three(block))),
        kernel.required_cluster.map(|cluster| format!("clusters of {}", three(cluster))),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    if limits.is_empty() { String::new() } else { format!(" ({})", limits.join(", ")) }
}

/// Reports if the driver and each device accept the image.
fn here(info: &ImageInfo) -> Report {
    let (version, count) = match driver_version().and_then(|version| Ok((version, Device::count()?))) {
        Ok(found) => found,
        Err(error) => {
            let text = match &error {
                Error::LibraryUnavailable { library, .. } => {
                    format!(
                        "  {library} could not be loaded (selvedge info says what was tried, and what to do)\n"
                    )
                }
                error => output::indented(&error.to_string(), 2),
            };
            return Report { text, json: json!({ "error": error.to_string() }) };
        }
    };
    let mut table = Table::new("<<");
    let takes = driver_isa().map(|isa| format!(", PTX up to {}", number(isa))).unwrap_or_default();
    table.row(["driver".to_owned(), format!("CUDA {}{takes}", number(version))]);
    let mut devices = Vec::new();
    for ordinal in 0..count {
        let (name, verdict) = match Device::new(ordinal) {
            Ok(device) => {
                let driver = version.0 * 1000 + version.1 * 10;
                (device.name().to_owned(), verdict(info, device.compute_capability(), driver))
            }
            Err(error) => (String::new(), Err(error)),
        };
        let reason = verdict.err().map(|error| error.to_string());
        let said = match &reason {
            None => "takes it".to_owned(),
            Some(reason) => format!("does not take it: {reason}"),
        };
        table.row([format!("device {ordinal}"), format!("{name} {said}").trim().to_owned()]);
        devices.push(
            json!({ "ordinal": ordinal, "name": name, "takes_it": reason.is_none(), "reason": reason }),
        );
    }
    Report {
        text: table.render(Style::of_stdout()),
        json: json!({ "cuda": number(version), "devices": devices }),
    }
}

fn verdict(info: &ImageInfo, capability: (i32, i32), driver: i32) -> Result<()> {
    if info.relocatable {
        return Err(Error::UnsupportedImage {
            found: "the image is an object".to_owned(),
            wanted: "it must be linked before it can be loaded (Device::link)".to_owned(),
        });
    }
    image::check(info, capability, driver)
}

fn entry_json(entry: &ImageEntry) -> Value {
    let cuda = needs(entry);
    json!({
        "kind": entry.kind.to_string(),
        "target": entry.target.to_string(),
        "isa": entry.isa.map(number),
        "toolkit": entry.toolkit.map(number),
        "needs_cuda": cuda,
        "needs_linux_driver": cuda.as_deref().and_then(driver_of),
    })
}

fn kernel_json(kernel: &KernelInfo) -> Value {
    let parameters = kernel.parameters.as_ref().map(|parameters| {
        let parameter = |parameter: &image::Parameter| {
            let kind = match parameter.kind {
                image::ParameterKind::Float => "float",
                image::ParameterKind::Integer => "integer",
                image::ParameterKind::Address => "address",
                image::ParameterKind::Bytes => "bytes",
                // The image does not say, or the value is newer than this program.
                _ => "unknown",
            };
            json!({ "kind": kind, "bytes": parameter.size, "offset": parameter.offset })
        };
        parameters.iter().map(parameter).collect::<Vec<_>>()
    });
    json!({
        "name": kernel.name,
        "parameters": parameters,
        "max_threads": kernel.max_threads,
        "required_block": kernel.required_block,
        "required_cluster": kernel.required_cluster,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_ascend_with_cuda() {
        let numbers = DRIVERS.map(|(cuda, driver)| {
            let (major, minor) = cuda.split_once('.').unwrap();
            (major.parse::<u32>().unwrap(), minor.parse::<u32>().unwrap(), driver)
        });
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1] && pair[0].2 < pair[1].2));
        assert_eq!((driver_of("12.0"), driver_of("12.4"), driver_of("99.0")), (Some(525), Some(550), None));
    }
}
