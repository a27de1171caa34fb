//! The options of `selvedge explain attention`.

use clap::Args;
use selvedge::nvrtc::Target;
use selvedge::types::DType;

use super::EXIT_CODES;
use super::gemm::architecture;

const ATTENTION: &str = "\
Queries are of BATCH x HEADS x LENGTH x DIMENSION. No device is needed; what is not here is taken to be like an H200.

Examples:
  selvedge explain attention 64 12 1024 64 bf16 --causal --backward
  selvedge explain attention 1 32 8192 128 f16 --key-heads 8 --window 4095,0 --arch sm_90a
  selvedge explain attention 64 32 1 128 bf16 --key-heads 8 --keys 8192 --decode
";

#[derive(Debug, Args)]
#[command(after_help = format!("{ATTENTION}\n{EXIT_CODES}"), arg_required_else_help = true)]
pub struct AttentionOptions {
    /// The number of batches
    #[arg(value_name = "BATCH")]
    pub batch: usize,
    /// Heads of the queries
    #[arg(value_name = "HEADS")]
    pub heads: usize,
    /// Queries of a batch and head
    #[arg(value_name = "LENGTH")]
    pub length: usize,
    /// The head dimension
    #[arg(value_name = "DIMENSION")]
    pub dimension: usize,
    /// The dtype of queries, keys and values, such as bf16
    #[arg(value_name = "DTYPE")]
    pub dtype: DType,
    /// Heads of keys and values [default: those of the queries]
    #[arg(long, value_name = "COUNT")]
    pub key_heads: Option<usize>,
    /// Keys of a batch and head [default: LENGTH]
    #[arg(long, value_name = "COUNT")]
    pub keys: Option<usize>,
    /// A query reads no later key
    #[arg(long)]
    pub causal: bool,
    /// A query reads so many keys before and after its own position
    #[arg(long, value_name = "BEFORE,AFTER", value_delimiter = ',', num_args = 1)]
    pub window: Vec<usize>,
    /// The limit of the scaled scores
    #[arg(long, value_name = "CAP")]
    pub soft_cap: Option<f64>,
    /// The probability that a probability is replaced by 0
    #[arg(long, value_name = "PROBABILITY", default_value_t = 0.0)]
    pub dropout: f64,
    /// With gradients
    #[arg(long)]
    pub backward: bool,
    /// The last queries of each sequence against a cache of --keys positions
    #[arg(long, conflicts_with_all = ["backward", "dropout"])]
    pub decode: bool,
    /// For a device of this architecture, such as sm_80 [default: device 0, or sm_90a where there is none]
    #[arg(long, value_name = "ARCH", value_parser = architecture)]
    pub arch: Option<Target>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
