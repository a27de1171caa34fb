//! `selvedge run`: a kernel from a file, launched on arrays from files.
//!
//! The command refuses every mistake that it can see before the launch: first the plan, without a device, then the image, the
//! kernel's name, the number and sizes of its arguments, and its limits. CUDA C++ is compiled for the device, or for a named
//! target before a device is looked for. If the kernel leaves its arguments' memory, the device reports a fault and the
//! process ends with that error.

use selvedge::Result;
use selvedge::driver::{self, Device, DeviceBuffer, Function, LaunchConfig, Stream, driver_isa};
use selvedge::io::{HostArray, npy};
use selvedge::nvrtc::Target;
use selvedge::types::DType;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::options::RunOptions;
use crate::output::{self, Progress, Report, Style, Table};
use crate::plan::{self, Argument, Source};
use crate::preview;
use crate::scalar::Scalar;
use crate::source::{self, Kernel};

mod kernel;
mod lower;
mod time;

pub use kernel::Compilation;
use kernel::Prepared;
use time::{Occupancy, Times};

/// Bytes copied between two steps of a progress bar.
const CHUNK: usize = 64 << 20;
/// Elements of a result that are shown.
const SHOWN: usize = 6;

/// An argument on the device.
enum Uploaded {
    Buffer { buffer: DeviceBuffer<u8>, written: bool },
    Scalar(Scalar),
}

/// The result in an argument that the kernel wrote.
struct Saved {
    argument: usize,
    first: Vec<String>,
}

/// Runs the command.
pub fn run(options: &RunOptions) -> Result<Report, Failure> {
    let mut arguments = plan::plan(&options.arguments, &options.outputs)?;
    let kernel = Kernel::read(&options.kernel, &options.compile, &options.target)?;
    let source = |source, target| Prepared::from_source(source, target, options, &arguments);
    // All that needs no device comes before one is looked for.
    let (mut prepared, device) = match (kernel, options.target.target) {
        (Kernel::Image(image), _) => {
            (Prepared::from_image(image, &options.entry, &arguments)?, Device::new(options.device)?)
        }
        (Kernel::Source(text), Some(target)) => (source(&text, target)?, Device::new(options.device)?),
        (Kernel::Source(text), None) => {
            let device = Device::new(options.device)?;
            let target = Target::for_device(device.compute_capability(), driver_isa()?);
            (source(&text, target.map_err(source::explained)?)?, device)
        }
    };
    let function = prepared.load(device, options.lower_ptx_version)?;
    let config =
        LaunchConfig::new(dimensions(options.grid), dimensions(options.block)).shared(options.shared);
    let stream = device.stream()?;

    let mut uploaded = Vec::new();
    for argument in &mut arguments {
        uploaded.push(upload(&stream, argument)?);
    }
    launch(&function, &stream, config, &mut uploaded)?;
    // A fault of the kernel is seen here, and named.
    stream.synchronize()?;

    let mut saved = Vec::new();
    for (number, (argument, uploaded)) in arguments.iter().zip(&uploaded).enumerate() {
        if let Uploaded::Buffer { buffer, written: true } = uploaded {
            let array = download(&stream, argument, buffer)?;
            if let Some(path) = &argument.saved_to {
                npy::write(path, &array).map_err(Failure::failed)?;
            }
            saved.push(Saved { argument: number, first: preview::first(&array, SHOWN)? });
        }
    }
    let times = match options.time {
        Some(samples) => {
            let times = time::time(&function, &stream, config, &mut uploaded, samples)?;
            let threads = options.block.iter().map(|length| u64::from(*length)).product();
            Some((times, Occupancy::of(&function, device, threads, options.shared)?))
        }
        None => None,
    };
    report(options, &prepared, &function, &arguments, &saved, times.as_ref())
}

fn dimensions([x, y, z]: [u32; 3]) -> (u32, u32, u32) {
    (x, y, z)
}

fn upload(stream: &Stream, argument: &mut Argument) -> Result<Uploaded> {
    let written = argument.written;
    let buffer = match &mut argument.source {
        Source::Scalar { value, .. } => return Ok(Uploaded::Scalar(*value)),
        Source::Zeros => {
            // `plan` has checked that the bytes fit.
            let bytes = usize::try_from(argument.bytes()).unwrap_or(usize::MAX);
            stream.zeros::<u8>(bytes)?
        }
        Source::File(file) => {
            let array = {
                let progress =
                    Progress::of_bytes(&format!("reading {}", argument.label), argument_bytes(file));
                file.read_with(&mut |done, _| progress.set(done))?
            };
            let bytes = array.as_bytes();
            let mut buffer = stream.uninitialized::<u8>(bytes.len())?;
            let progress = Progress::of_bytes(&format!("uploading {}", argument.label), bytes.len() as u64);
            for (number, chunk) in bytes.chunks(CHUNK).enumerate() {
                let start = number * CHUNK;
                stream.copy_from_host(chunk, &mut buffer.slice_mut(start..start + chunk.len())?)?;
                progress.set((start + chunk.len()) as u64);
            }
            buffer
        }
    };
    Ok(Uploaded::Buffer { buffer, written })
}

fn argument_bytes(file: &npy::NpyFile) -> u64 {
    (file.len() * file.dtype().map_or(1, DType::size)) as u64
}

fn download(stream: &Stream, argument: &Argument, buffer: &DeviceBuffer<u8>) -> Result<HostArray> {
    let mut array = HostArray::zeros(argument.dtype, &argument.shape)?;
    let bytes = array.as_bytes_mut();
    let progress = Progress::of_bytes(&format!("downloading {}", argument.label), bytes.len() as u64);
    for (number, chunk) in bytes.chunks_mut(CHUNK).enumerate() {
        let start = number * CHUNK;
        stream.copy_to_host(&buffer.slice(start..start + chunk.len())?, chunk)?;
        progress.set((start + chunk.len()) as u64);
    }
    drop(progress);
    Ok(array)
}

fn launch_arguments(uploaded: &mut [Uploaded]) -> Vec<driver::Argument<'_>> {
    let arguments = uploaded.iter_mut().map(|argument| match argument {
        Uploaded::Buffer { buffer, written: true } => driver::Argument::write::<u8>(buffer),
        Uploaded::Buffer { buffer, written: false } => driver::Argument::read::<u8>(&*buffer),
        Uploaded::Scalar(value) => match *value {
            Scalar::Bool(value) => driver::Argument::integer(value),
            Scalar::U8(value) => driver::Argument::integer(value),
            Scalar::I8(value) => driver::Argument::integer(value),
            Scalar::U16(value) => driver::Argument::integer(value),
            Scalar::I16(value) => driver::Argument::integer(value),
            Scalar::U32(value) => driver::Argument::integer(value),
            Scalar::I32(value) => driver::Argument::integer(value),
            Scalar::U64(value) => driver::Argument::integer(value),
            Scalar::I64(value) => driver::Argument::integer(value),
            Scalar::F16(value) => driver::Argument::float(value),
            Scalar::BF16(value) => driver::Argument::float(value),
            Scalar::F32(value) => driver::Argument::float(value),
            Scalar::F64(value) => driver::Argument::float(value),
            Scalar::C64(value) => driver::Argument::by_value(value),
            Scalar::C128(value) => driver::Argument::by_value(value),
        },
    });
    arguments.collect()
}

fn launch(
    function: &Function,
    stream: &Stream,
    config: LaunchConfig,
    uploaded: &mut [Uploaded],
) -> Result<()> {
    let arguments = launch_arguments(uploaded);
    // SAFETY: the arguments are checked against the kernel's parameters where those can be known. That the kernel stays within
    // its buffers is the word of who wrote this command line; the device memory of this process holds nothing else.
    unsafe { function.launch(stream, config, &arguments) }
}

fn report(
    options: &RunOptions,
    prepared: &Prepared,
    function: &Function,
    arguments: &[Argument],
    saved: &[Saved],
    times: Option<&(Times, Occupancy)>,
) -> Result<Report, Failure> {
    let device = function.module().device();
    let style = Style::of_stdout();
    let attributes = function.attributes()?;
    let dimensions = |[x, y, z]: [u32; 3]| format!("{x},{y},{z}");
    let mut text = format!("{}\n", style.bold(&format!("{} of {}", options.entry, options.kernel.display())));
    let mut table = Table::new("<<");
    table.row(["device".to_owned(), format!("{} ({})", device.name(), device.ordinal())]);
    for row in prepared.rows(&options.entry) {
        table.row(row);
    }
    table.row(["grid".to_owned(), dimensions(options.grid)]);
    table.row(["block".to_owned(), dimensions(options.block)]);
    let shared = output::bytes(u64::from(attributes.shared_bytes) + u64::from(options.shared));
    table.row(["shared".to_owned(), format!("{shared} a block")]);
    table.row(["registers".to_owned(), format!("{} a thread", attributes.registers)]);
    text += &table.render(style);

    let mut rows = Vec::new();
    let mut table = Table::with_head("><<<><", ["#", "argument", "dtype", "shape", "bytes", ""]);
    for (number, argument) in arguments.iter().enumerate() {
        let scalar = matches!(argument.source, Source::Scalar { .. });
        table.row([
            number.to_string(),
            argument.label.clone(),
            argument.dtype.to_string(),
            if scalar { String::new() } else { format!("{:?}", argument.shape) },
            if scalar { String::new() } else { output::bytes(argument.bytes()) },
            origin_and_end(argument),
        ]);
        rows.push(argument_json(argument));
    }
    if !arguments.is_empty() {
        text += &format!("\n{}", table.render(style));
    }

    let mut results = Vec::new();
    if !saved.is_empty() {
        let mut table = Table::with_head("<<", ["result", "first elements"]);
        for result in saved {
            let argument = &arguments[result.argument];
            let length: usize = argument.shape.iter().product();
            let rest = if length > result.first.len() { ", ..." } else { "" };
            table.row([argument.label.clone(), format!("{}{rest}", result.first.join(", "))]);
            results.push(json!({
                "name": argument.label,
                "dtype": argument.dtype.name(),
                "shape": argument.shape,
                "path": argument.saved_to.as_ref().map(|path| path.display().to_string()),
                "first": result.first,
            }));
        }
        text += &format!("\n{}", table.render(style));
    }

    let bytes: u64 = arguments.iter().map(Argument::bytes).sum();
    if let Some((times, occupancy)) = times {
        text += &format!("\n{}", times.text(bytes, occupancy, style));
    }

    let json = json!({
        "kernel": options.kernel.display().to_string(),
        "entry": options.entry,
        "image": prepared.json(),
        "device": { "ordinal": device.ordinal(), "name": device.name(), "uuid": device.uuid() },
        "grid": options.grid,
        "block": options.block,
        "dynamic_shared_bytes": options.shared,
        "static_shared_bytes": attributes.shared_bytes,
        "registers": attributes.registers,
        "arguments": rows,
        "results": results,
        "time": times.map(|(times, occupancy)| times.json(bytes, occupancy)),
    });
    Ok(Report { text, json })
}

/// Returns the file an argument came from and the file it went to.
fn origin_and_end(argument: &Argument) -> String {
    let from = match &argument.source {
        Source::File(file) if file.path().display().to_string() != argument.label => {
            format!("from {}", file.path().display())
        }
        _ => String::new(),
    };
    let to = argument.saved_to.as_ref().map(|path| format!("to {}", path.display())).unwrap_or_default();
    [from, to].iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(" ")
}

fn argument_json(argument: &Argument) -> Value {
    match &argument.source {
        Source::Scalar { text, .. } => {
            json!({ "kind": "scalar", "dtype": argument.dtype.name(), "value": text })
        }
        source => {
            let path = match source {
                Source::File(file) => Some(file.path().display().to_string()),
                _ => None,
            };
            json!({
                "kind": "array",
                "name": argument.label,
                "dtype": argument.dtype.name(),
                "shape": argument.shape,
                "bytes": argument.bytes(),
                "from": path,
                "written": argument.written,
            })
        }
    }
}
