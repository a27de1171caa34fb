//! The options of the command line.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};

use crate::plan::{OutputSpec, Spec};

const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  the command ran, but failed
  2  wrong usage, or input that cannot work; nothing was launched
  3  no device or no driver to run on

With --json the result, or the error, is one JSON object on stdout.";

/// Run CUDA kernels with nothing but the NVIDIA driver.
#[derive(Debug, Parser)]
#[command(name = "selvedge", version, after_help = EXIT_CODES, arg_required_else_help = true, max_term_width = 100)]
pub struct Options {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show devices, the driver and optional libraries, and where they were looked for
    Info(InfoOptions),
    /// Run a kernel on .npy files
    Run(RunOptions),
    /// Show a snapshot of a device's memory, or replay a trace of its requests
    Memory(MemoryOptions),
    /// Add vectors and divide complex numbers, verified and timed; on the CPU where there is no device
    Demo(DemoOptions),
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct InfoOptions {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct DemoOptions {
    /// Elements of each array [default: 16777216 on a device, 4194304 on the CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub elements: Option<u64>,
    /// The device's ordinal [default: 0, or the CPU where there is none]
    #[arg(long, value_name = "I")]
    pub device: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const ARGUMENTS: &str = "\
Arguments, in the kernel's order:
  --arg in.npy               a file's elements; the kernel only reads them
  --arg in.npy:f32           the same, and an error unless they are f32
  --arg x=in.npy             a file that --out x=... can name, for kernels that write to their input
  --arg out:f32[1024]        an output of zeros, with the name out; out:f32[32,32] has two dimensions
  --arg 3:i32                a scalar; also -1.5:f64, 0xff:u8, true:bool, 1-2i:c64

Types: bool u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64 c64 c128 f8e4m3 f8e5m2, or NumPy's names.

Example:
  selvedge run saxpy.ptx --entry saxpy --grid 4 --block 256 \\
      --arg x.npy --arg y.npy --arg out:f32[1024] --arg 2.5:f32 --arg 1024:u32 --out out=result.npy
";

#[derive(Debug, Args)]
#[command(after_help = format!("{ARGUMENTS}\n{EXIT_CODES}"))]
pub struct RunOptions {
    /// The image: PTX, a cubin or a fatbin
    #[arg(value_name = "KERNEL")]
    pub kernel: PathBuf,
    /// The kernel's name in the image
    #[arg(long, value_name = "NAME")]
    pub entry: String,
    /// Blocks of the grid: X, X,Y or X,Y,Z
    #[arg(long, value_name = "X,Y,Z", value_parser = parse_dimensions)]
    pub grid: [u32; 3],
    /// Threads of a block: X, X,Y or X,Y,Z
    #[arg(long, value_name = "X,Y,Z", value_parser = parse_dimensions)]
    pub block: [u32; 3],
    /// Dynamic shared memory of a block
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub shared: u32,
    /// An argument; see below
    #[arg(long = "arg", value_name = "ARGUMENT", value_parser = Spec::parse, allow_hyphen_values = true)]
    pub arguments: Vec<Spec>,
    /// Save an argument after the launch
    #[arg(long = "out", value_name = "NAME=FILE.npy", value_parser = OutputSpec::parse)]
    pub outputs: Vec<OutputSpec>,
    /// Launch N more times and time them; results are those of the first launch
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub time: Option<u32>,
    /// The device's ordinal
    #[arg(long, value_name = "I", default_value_t = 0)]
    pub device: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = EXIT_CODES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    arg_required_else_help = true
)]
pub struct MemoryOptions {
    /// The snapshot, as `MemorySnapshot::to_json` writes it
    #[arg(value_name = "SNAPSHOT.json", required = true)]
    pub file: Option<PathBuf>,
    /// Draw a map of the memory
    #[arg(short, long, value_name = "MAP.svg")]
    pub output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Option<MemoryCommand>,
}

impl MemoryOptions {
    /// Whether JSON is wanted, of whichever command it is.
    pub fn json(&self) -> bool {
        match &self.command {
            Some(MemoryCommand::Replay(options)) => options.json,
            None => self.json,
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum MemoryCommand {
    /// Replay a trace of requests in the pool on the CPU
    Replay(ReplayOptions),
}

const REPLAY: &str = "\
BYTES is a number, perhaps with K, M, G or T behind it, in powers of 1024: 2M, 80G.

Examples:
  selvedge memory replay trace.json --cap 80G -o replay.svg
  selvedge memory replay --generate training --requests 1000000 --save trace.json
";

#[derive(Debug, Args)]
#[command(
    after_help = format!("{REPLAY}\n{EXIT_CODES}"),
    arg_required_else_help = true,
    group = ArgGroup::new("source").required(true).args(["file", "generate"])
)]
pub struct ReplayOptions {
    /// The trace, as `MemoryTrace::to_json` writes it
    #[arg(value_name = "TRACE.json")]
    pub file: Option<PathBuf>,
    /// Replay a made-up trace instead
    #[arg(long, value_name = "KIND")]
    pub generate: Option<Generator>,
    /// Requests of the made-up trace
    #[arg(long, value_name = "N", default_value_t = 100_000, conflicts_with = "file")]
    pub requests: u32,
    /// Another made-up trace for each number
    #[arg(long, value_name = "S", default_value_t = 1, conflicts_with = "file")]
    pub seed: u64,
    /// Write the made-up trace to a file
    #[arg(long, value_name = "TRACE.json", conflicts_with = "file")]
    pub save: Option<PathBuf>,
    /// How the pool gets its memory
    #[arg(long, value_enum, default_value_t = PoolKind::Paged)]
    pub pool: PoolKind,
    /// The most memory there is
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub cap: Option<u64>,
    /// The smallest page: a power of two from 4K to 1G
    #[arg(long, value_name = "BYTES", default_value = "2M", value_parser = parse_bytes)]
    pub page: u64,
    /// After how many further requests the device is done with a buffer
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub lag: u64,
    /// Draw the memory over time
    #[arg(short, long, value_name = "PLOT.svg")]
    pub output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What a trace can be made up of.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Generator {
    /// Models trained one after another: heavy-tailed sizes, lengths that vary, several streams
    Training,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PoolKind {
    /// Pages that can move to other addresses
    Paged,
    /// Segments that stay where they are
    Plain,
}

/// A number from 1, in powers of 1024 where a letter follows, as in `SELVEDGE_MEMORY_LIMIT`.
fn parse_bytes(text: &str) -> Result<u64, String> {
    let refused = || format!("found '{text}'; wanted a number of bytes from 1, such as 4096, 2M or 80G");
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 0,
        "K" | "KIB" => 10,
        "M" | "MIB" => 20,
        "G" | "GIB" => 30,
        "T" | "TIB" => 40,
        _ => return Err(refused()),
    };
    let number: u64 = match digits.parse() {
        Ok(number) if number > 0 && digits.bytes().all(|byte| byte.is_ascii_digit()) => number,
        _ => return Err(refused()),
    };
    number.checked_mul(1 << shift).ok_or_else(refused)
}

fn parse_dimensions(text: &str) -> Result<[u32; 3], String> {
    let refused = || format!("found '{text}'; wanted one to three positive numbers, such as 256 or 32,8");
    let mut dimensions = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > dimensions.len() {
        return Err(refused());
    }
    for (dimension, part) in dimensions.iter_mut().zip(parts) {
        *dimension = part.trim().parse().ok().filter(|value| *value > 0).ok_or_else(refused)?;
    }
    Ok(dimensions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_consistent() {
        use clap::CommandFactory;
        Options::command().debug_assert();
    }

    #[test]
    fn dimensions_are_one_to_three() {
        assert_eq!(parse_dimensions("256"), Ok([256, 1, 1]));
        assert_eq!(parse_dimensions("32,8"), Ok([32, 8, 1]));
        assert_eq!(parse_dimensions("1, 2, 3"), Ok([1, 2, 3]));
        for text in ["", "0", "1,", "1,2,3,4", "-1", "1x2", "4294967296"] {
            assert!(parse_dimensions(text).is_err_and(|message| message.contains(text)), "{text}");
        }
    }

    #[test]
    fn sizes_are_numbers_with_a_letter() {
        for (text, bytes) in
            [("1", 1), ("512K", 512 << 10), ("3m", 3 << 20), ("80GiB", 80 << 30), ("1T", 1 << 40)]
        {
            assert_eq!(parse_bytes(text), Ok(bytes));
        }
        for text in ["", "0", "-1", "+1", "1.5G", "G", "1X", "1 G", "99999999999999999999", "16777216T", "é"]
        {
            assert!(parse_bytes(text).is_err_and(|message| message.contains(text)), "{text}");
        }
    }
}
