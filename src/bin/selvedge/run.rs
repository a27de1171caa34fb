//! `selvedge run`: a kernel from a file, launched on arrays from files.
//!
//! Everything that can be refused is refused before the launch: the plan without a device, the image, the kernel's name, the
//! number and sizes of its arguments and its limits by the driver floor. What a kernel does within its arguments is its
//! own affair: where it leaves them, the device reports a fault, and this process ends with that error.

use selvedge::driver::image::{ArgumentKind, ImageInfo};
use selvedge::driver::{self, Device, DeviceBuffer, Function, LaunchConfig, Stream};
use selvedge::io::{HostArray, npy};
use selvedge::types::DType;
use selvedge::{Error, Result};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::files;
use crate::options::RunOptions;
use crate::output::{self, Progress, Report, Style, Table};
use crate::plan::{self, Argument, Source};
use crate::preview;
use crate::scalar::Scalar;

/// Bytes copied between two steps of a progress bar.
const CHUNK: usize = 64 << 20;
/// Launches before the timed ones.
const WARM_UP: u32 = 3;
/// Timed launches that are queued at once: enough to keep the device busy, few enough events.
const QUEUED: usize = 64;
/// Elements of a result that are shown.
const SHOWN: usize = 6;

/// An argument on the device.
enum Uploaded {
    Buffer { buffer: DeviceBuffer<u8>, written: bool },
    Scalar(Scalar),
}

/// What came out of an argument that the kernel wrote.
struct Saved {
    argument: usize,
    first: Vec<String>,
}

/// Times of the launches, in seconds.
struct Times {
    median: f64,
    least: f64,
    greatest: f64,
    launches: u32,
}

/// Runs the command.
pub fn run(options: &RunOptions) -> Result<Report, Failure> {
    let mut arguments = plan::plan(&options.arguments, &options.outputs)?;
    let image = files::read(&options.kernel, "a PTX, cubin or fatbin file")?;
    check_image(&image, &options.entry, &arguments)?;
    let device = Device::new(options.device)?;
    let function = load(device, &image, &options.entry)?;
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
        Some(launches) => Some(time(&function, &stream, config, &mut uploaded, launches)?),
        None => None,
    };
    report(options, device, &function, &arguments, &saved, times.as_ref())
}

/// What the image itself tells: whether it is one, has the kernel, and takes these arguments. A launch checks the last again.
fn check_image(image: &[u8], entry: &str, arguments: &[Argument]) -> Result<()> {
    let info = ImageInfo::parse(image)?;
    let Some(kernel) = info.kernel(entry) else {
        if !info.complete {
            // Only the driver can look into a compressed entry.
            return Ok(());
        }
        let found = info.kernels.iter().map(|kernel| kernel.name.clone()).collect();
        return Err(Error::UnknownName { kind: "kernel", wanted: entry.to_owned(), found });
    };
    let Some(parameters) = &kernel.parameters else {
        return Ok(());
    };
    if parameters.len() != arguments.len() {
        let (wanted, found) = (parameters.len(), arguments.len());
        return Err(Error::ArgumentCount { kernel: entry.to_owned(), wanted, found });
    }
    for (index, (parameter, argument)) in parameters.iter().zip(arguments).enumerate() {
        let (kind, size) = match &argument.source {
            Source::Scalar { value, .. } => (value.kind(), argument.dtype.size()),
            _ => (ArgumentKind::Address, size_of::<u64>()),
        };
        parameter.check(entry, index, kind, size)?;
    }
    Ok(())
}

fn dimensions([x, y, z]: [u32; 3]) -> (u32, u32, u32) {
    (x, y, z)
}

/// Loading assembles PTX, which can take seconds.
fn load(device: Device, image: &[u8], entry: &str) -> Result<Function> {
    let _progress = Progress::spinner("loading the image");
    device.load(image)?.function(entry)
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
    unsafe { function.launch_dynamic(stream, config, &arguments) }
}

/// Times each launch between two events. The queue is kept full, so that a kernel of more than some microseconds is timed
/// without the host's part.
fn time(
    function: &Function,
    stream: &Stream,
    config: LaunchConfig,
    uploaded: &mut [Uploaded],
    launches: u32,
) -> Result<Times> {
    let progress = Progress::of_steps("timing", u64::from(launches));
    for _ in 0..WARM_UP {
        launch(function, stream, config, uploaded)?;
    }
    let device = stream.device();
    let mut events = Vec::new();
    for _ in 0..QUEUED.min(launches as usize) {
        events.push((device.timing_event()?, device.timing_event()?));
    }
    let mut times = Vec::with_capacity(launches as usize);
    while times.len() < launches as usize {
        let queued = events.len().min(launches as usize - times.len());
        for (start, end) in &mut events[..queued] {
            start.record(stream)?;
            launch(function, stream, config, uploaded)?;
            end.record(stream)?;
        }
        stream.synchronize()?;
        for (start, end) in &events[..queued] {
            times.push(f64::from(start.elapsed_ms(end)?) / 1e3);
        }
        progress.set(times.len() as u64);
    }
    times.sort_by(f64::total_cmp);
    let at = |index: usize| times.get(index).copied().unwrap_or_default();
    Ok(Times {
        median: at(times.len() / 2),
        least: at(0),
        greatest: at(times.len().saturating_sub(1)),
        launches,
    })
}

fn report(
    options: &RunOptions,
    device: Device,
    function: &Function,
    arguments: &[Argument],
    saved: &[Saved],
    times: Option<&Times>,
) -> Result<Report, Failure> {
    let style = Style::of_stdout();
    let attributes = function.attributes()?;
    let dimensions = |[x, y, z]: [u32; 3]| format!("{x},{y},{z}");
    let mut text = format!("{}\n", style.bold(&format!("{} of {}", options.entry, options.kernel.display())));
    let mut table = Table::new("<<");
    table.row(["device".to_owned(), format!("{} ({})", device.name(), device.ordinal())]);
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
    if let Some(times) = times {
        let mut table = Table::with_head(">>>>>>", ["launches", "median", "min", "max", "rate", "over"]);
        table.row([
            times.launches.to_string(),
            output::seconds(times.median),
            output::seconds(times.least),
            output::seconds(times.greatest),
            output::rate(bytes, times.median),
            output::bytes(bytes),
        ]);
        text += &format!("\n{}", table.render(style));
    }

    let json = json!({
        "kernel": options.kernel.display().to_string(),
        "entry": options.entry,
        "device": { "ordinal": device.ordinal(), "name": device.name(), "uuid": device.uuid() },
        "grid": options.grid,
        "block": options.block,
        "dynamic_shared_bytes": options.shared,
        "static_shared_bytes": attributes.shared_bytes,
        "registers": attributes.registers,
        "arguments": rows,
        "results": results,
        "time": times.map(|times| json!({
            "launches": times.launches,
            "median_seconds": times.median,
            "min_seconds": times.least,
            "max_seconds": times.greatest,
            "argument_bytes": bytes,
            "gigabytes_per_second": output::gigabytes_per_second(bytes, times.median),
        })),
    });
    Ok(Report { text, json })
}

/// Where an argument came from and where it went.
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
