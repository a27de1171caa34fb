//! The options of `selvedge build-images`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use selvedge::nvrtc::Target;

use super::compile::parse_target;
use super::{CompileOptions, EXIT_CODES};

const FILES: &str = "\
Each source gives one image a target, NAME.TARGET.ptx or NAME.TARGET.cubin, where NAME is the file's without .cu.
PTX is freed of comments, unused variables and names that the compiler makes up, so that it depends on sources and
options alone; it is compiled as machine code too, because only that checks inline PTX.

A list has a line an image family: NAME SOURCE TARGET[,TARGET...] [OPTION...], with paths from the list's folder. Options
of the command line come before the line's. Lines that begin with # are comments. A target such as compute_90a+cubin
writes the PTX and the machine code that --ptxas makes of it for its own architecture; NVRTC does not compile it as machine
code then. compute_90a:cubin writes the machine code only: smaller, but no other architecture runs it. Lines
entries FAMILY ENTRY... declare kernel names for other readers of the list; nothing is compiled for them.

FOLDER/manifest has a line an image: family, target, the lowest PTX ISA that the driver must take, kind, hash of options
and sources, hash of the image (both FNV-1a, 64 bits), compiler, options, and the sources with all that they include,
from the source's folder. Files that the old manifest lists and the new one does not are removed.

Examples:
  selvedge build-images saxpy.cu --target compute_60 --target sm_90 --out images
  selvedge build-images --list kernels/list.txt --out images --if-changed
";

#[derive(Debug, Args)]
#[command(
    after_help = format!("{FILES}\n{EXIT_CODES}"),
    arg_required_else_help = true,
    group = ArgGroup::new("what").required(true).args(["sources", "list"])
)]
pub struct BuildImagesOptions {
    /// The sources, each for every target
    #[arg(value_name = "SOURCE.cu", requires = "targets")]
    pub sources: Vec<PathBuf>,
    /// Take sources, targets and options from a file
    #[arg(long, value_name = "FILE", conflicts_with = "targets")]
    pub list: Option<PathBuf>,
    /// compute_80 for PTX, sm_90 for machine code; may be given several times
    #[arg(long = "target", value_name = "TARGET", value_parser = parse_target)]
    pub targets: Vec<Target>,
    /// The folder of the images
    #[arg(short, long, value_name = "FOLDER")]
    pub out: PathBuf,
    /// Write nothing, and fail where the folder is not what the sources give
    #[arg(long)]
    pub check: bool,
    /// Do nothing where the manifest fits sources, options and images
    #[arg(long, conflicts_with = "check")]
    pub if_changed: bool,
    /// Compile only the families that this manifest does not list as sources, options and images are
    #[arg(long, value_name = "MANIFEST", conflicts_with = "if_changed")]
    pub keep: Option<PathBuf>,
    /// The manifest's first line, as a comment
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "Written by selvedge build-images, whose --help says what the columns are."
    )]
    pub comment: String,
    /// An assembler for PTX, to check that the architectures of --assemble-for take it
    #[arg(long, value_name = "PROGRAM", requires = "architectures")]
    pub ptxas: Option<PathBuf>,
    /// The architectures, such as sm_80,sm_90; each assembles the PTX that may run on it
    #[arg(long = "assemble-for", value_name = "ARCHITECTURES", value_delimiter = ',', requires = "ptxas", value_parser = parse_target)]
    pub architectures: Vec<Target>,
    /// Fail where an assembled kernel uses local memory: spilled registers, or arrays indexed by a variable
    #[arg(long, requires = "ptxas")]
    pub forbid_local_memory: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub compile: CompileOptions,
}
