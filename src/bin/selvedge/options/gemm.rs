//! The options of `selvedge explain`.

use clap::{Args, Subcommand, ValueEnum};
use selvedge::gemm::{Choice, Operation};
use selvedge::nvrtc::Target;
use selvedge::types::DType;

use super::{AttentionOptions, EXIT_CODES, EXIT_CODES_OF_GROUP, ExprOptions};

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES_OF_GROUP, arg_required_else_help = true)]
pub struct ExplainOptions {
    #[command(subcommand)]
    pub what: Explained,
}

impl ExplainOptions {
    /// Returns `true` for `--json`.
    pub fn json(&self) -> bool {
        match &self.what {
            Explained::Matmul(options) => options.json,
            Explained::Attention(options) => options.json,
            Explained::Expr(options) => options.json,
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum Explained {
    /// Which engine would make a matrix product, how, and why no other
    Matmul(MatmulOptions),
    /// The kernels of an attention, or why it stores its scores
    Attention(AttentionOptions),
    /// The kernels of an elementwise expression, or of one with reductions over groups
    Expr(ExprOptions),
}

const MATMUL: &str = "\
C of M x N is A of M x K times B of K x N. The layout says how A and B are stored: n as they are multiplied, t transposed.
SELVEDGE_GEMM counts as it does in a call. No device is needed; what is not here is taken to be like an H200.

Examples:
  selvedge explain matmul 4096 4096 4096 bf16
  selvedge explain matmul 1 50304 768 bf16 --into f32 --layout nt --arch sm_90a
";

#[derive(Debug, Args)]
#[command(after_help = format!("{MATMUL}\n{EXIT_CODES}"), arg_required_else_help = true)]
pub struct MatmulOptions {
    /// Rows of C
    #[arg(value_name = "M")]
    pub m: usize,
    /// Columns of C
    #[arg(value_name = "N")]
    pub n: usize,
    /// Columns of A and rows of B
    #[arg(value_name = "K")]
    pub k: usize,
    /// The dtype of A and B, such as bf16 or float32
    #[arg(value_name = "DTYPE")]
    pub dtype: DType,
    /// The dtype of C [default: that of A and B]
    #[arg(long, value_name = "DTYPE")]
    pub into: Option<DType>,
    /// How A and B are stored
    #[arg(long, value_enum, default_value_t = Stored::Nn)]
    pub layout: Stored,
    /// As many products, each of matrices of its own
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub batch: usize,
    /// For a device of this architecture, such as sm_80 [default: device 0, or sm_90a where there is none]
    #[arg(long, value_name = "ARCH", value_parser = architecture)]
    pub arch: Option<Target>,
    /// With so many multiprocessors [default: the device's, or 132]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub multiprocessors: Option<u32>,
    /// By these engines: own, auto, or one's name [default: SELVEDGE_GEMM, or own]
    #[arg(long, value_name = "ENGINES")]
    pub by: Option<Choice>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The compute capabilities of NVIDIA's devices that the embedded kernels can run on.
const CAPABILITIES: [(i32, i32); 17] = [
    (6, 0),
    (6, 1),
    (6, 2),
    (7, 0),
    (7, 2),
    (7, 5),
    (8, 0),
    (8, 6),
    (8, 7),
    (8, 9),
    (9, 0),
    (10, 0),
    (10, 1),
    (10, 3),
    (11, 0),
    (12, 0),
    (12, 1),
];

/// Reads an architecture, and refuses one that no device has.
pub fn architecture(text: &str) -> Result<Target, String> {
    let target: Target = text.parse().map_err(|error: selvedge::Error| error.to_string())?;
    if CAPABILITIES.contains(&target.capability()) {
        return Ok(target);
    }
    let known: Vec<_> = CAPABILITIES.iter().map(|(major, minor)| format!("sm_{major}{minor}")).collect();
    Err(format!("no device has this architecture; choose one of {}", known.join(", ")))
}

/// How operands are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Stored {
    Nn,
    Nt,
    Tn,
    Tt,
}

impl Stored {
    /// Returns the operations on A and B.
    pub fn operations(self) -> (Operation, Operation) {
        let operation = |transposed| if transposed { Operation::Transpose } else { Operation::None };
        (
            operation(matches!(self, Stored::Tn | Stored::Tt)),
            operation(matches!(self, Stored::Nt | Stored::Tt)),
        )
    }
}
