//! The options of `selvedge run`.

use std::path::PathBuf;

use clap::Args;

use super::{CompileOptions, EXIT_CODES, TargetOptions};
use crate::plan::{OutputSpec, Spec};

const ARGUMENTS: &str = "\
Arguments, in the kernel's order:
  --arg in.npy               a file's elements; the kernel only reads them
  --arg in.npy:f32           the same, and an error unless they are f32
  --arg x=in.npy             a file that --out x=... can name, for kernels that write to their input
  --arg out:f32[1024]        an output of zeros, with the name out; out:f32[32,32] has two dimensions
  --arg 3:i32                a scalar; also -1.5:f64, 0xff:u8, true:bool, 1-2i:c64

Types: bool u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64 c64 c128 f8e4m3 f8e5m2, or NumPy's names.

Times of --time N are N samples between two events of the device, each of one launch, or where a launch takes less than
50 us, of a graph of as many as take about that long, divided by their count. The rate counts the bytes of every array
once, whether the kernel reads or writes it.

Examples:
  selvedge run saxpy.ptx --entry saxpy --grid 4 --block 256 \\
      --arg x.npy --arg y.npy --arg out:f32[1024] --arg 2.5:f32 --arg 1024:u32 --out out=result.npy
  selvedge run scale.cu --entry 'scale<float>' --define FACTOR=2 --grid 4 --block 256 --arg x=x.npy --out x=y.npy
";

#[derive(Debug, Args)]
#[command(after_help = format!("{ARGUMENTS}\n{EXIT_CODES}"))]
pub struct RunOptions {
    /// The image (PTX, a cubin or a fatbin), or CUDA C++ in a .cu file, which NVRTC compiles
    #[arg(value_name = "KERNEL")]
    pub kernel: PathBuf,
    /// The kernel's name; of a template its instance, such as 'scale<float>'
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
    /// Time the kernel in N samples; results are those of the first launch
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub time: Option<u32>,
    /// Try PTX that is newer than the driver as the newest version that the driver takes
    #[arg(long)]
    pub lower_ptx_version: bool,
    /// The device's ordinal
    #[arg(long, value_name = "I", default_value_t = 0)]
    pub device: usize,
    #[command(flatten)]
    pub compile: CompileOptions,
    #[command(flatten)]
    pub target: TargetOptions,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
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
    fn dimensions_are_one_to_three() {
        assert_eq!(parse_dimensions("256"), Ok([256, 1, 1]));
        assert_eq!(parse_dimensions("32,8"), Ok([32, 8, 1]));
        assert_eq!(parse_dimensions("1, 2, 3"), Ok([1, 2, 3]));
        for text in ["", "0", "1,", "1,2,3,4", "-1", "1x2", "4294967296"] {
            assert!(parse_dimensions(text).is_err_and(|message| message.contains(text)), "{text}");
        }
    }
}
