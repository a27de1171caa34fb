//! The options of `selvedge explain expr`.

use clap::Args;
use selvedge::nvrtc::Target;
use selvedge::types::DType;

use super::EXIT_CODES;
use super::gemm::architecture;
use crate::plan::Spec;

const EXPR: &str = "\
The expression consists of inputs, numbers, + - * /, parentheses, every elementwise operation (relu, exp, fma, choose …), casts
by the name of a dtype, and functions of groups: sum_group, mean_group, prod_group, max_group, min_group, argmax_group,
argmin_group, any_group, all_group, at_group(x, index), softmax(x), log_softmax(x), layer_norm(x, weight, bias),
rms_norm(x, weight), normalize(x), standardize(x), batch_norm(x, weight, bias), group_norm(x, weight, bias) and
cross_entropy(x, label).
The groups are along the last axis; batch_norm has all axes but the second, and group_norm those from the third on, for
images of shape NxGx(C/G)xHxW. Functions with different axes need --axis. No device is needed.

Examples:
  selvedge explain expr 'relu(a*b+c)' --shape 1024x1024
  selvedge explain expr 'softmax(x)' --shape 4096x4096 --dtype bf16 --arch sm_90
  selvedge explain expr 'layer_norm(x, w, b)' --shape 4096x1024 --input 'w:f32[1024]' --input 'b:f32[1024]' --ptx
  selvedge explain expr 'relu(a*b+c)' --shape 1024x1024 --code
  selvedge explain expr 'batch_norm(x)' --shape 64x256x56x56
  selvedge explain expr 'cross_entropy(x, label)' --shape 4096x50257 --input 'label:i64[4096,1]'
";

#[derive(Debug, Args)]
#[command(after_help = format!("{EXPR}\n{EXIT_CODES}"), arg_required_else_help = true)]
pub struct ExprOptions {
    /// The expression, such as 'relu(a*b+c)'
    #[arg(value_name = "TEXT")]
    pub text: String,
    /// The shape of inputs, such as 4096x4096
    #[arg(long, value_name = "SHAPE", value_parser = shape)]
    pub shape: ShapeOption,
    /// The dtype of inputs, such as bf16 or float32
    #[arg(long, value_name = "DTYPE", default_value = "f32")]
    pub dtype: DType,
    /// An input with its own dtype and shape, which broadcasts
    #[arg(long = "input", value_name = "NAME:DTYPE[SHAPE]", value_parser = input)]
    pub inputs: Vec<InputOption>,
    /// An axis of the groups; a negative one counts from the last [default: those of the functions, else the last]
    #[arg(long = "axis", value_name = "AXIS", allow_negative_numbers = true)]
    pub axes: Vec<isize>,
    /// For a device of this architecture, such as sm_80 [default: device 0, or sm_90 where there is none]
    #[arg(long, value_name = "ARCH", value_parser = architecture)]
    pub arch: Option<Target>,
    /// Print the text of the kernels
    #[arg(long)]
    pub ptx: bool,
    /// Print the machine code of this CPU for an elementwise expression, or the reason why there is none
    #[arg(long)]
    pub code: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Sizes of dimensions.
#[derive(Debug, Clone)]
pub struct ShapeOption(pub Vec<usize>);

fn shape(text: &str) -> Result<ShapeOption, String> {
    let sizes = text.split('x').map(|size| size.trim().parse()).collect::<Result<_, _>>();
    sizes.map(ShapeOption).map_err(|_| format!("found '{text}'; wanted sizes such as 4096x4096"))
}

/// An input with a dtype and a shape of its own.
#[derive(Debug, Clone)]
pub struct InputOption {
    pub name: String,
    pub dtype: DType,
    pub shape: Vec<usize>,
}

fn input(text: &str) -> Result<InputOption, String> {
    match Spec::parse(text)? {
        Spec::Buffer { name, dtype, shape } => Ok(InputOption { name, dtype, shape }),
        _ => Err(format!("found '{text}'; wanted NAME:DTYPE[SHAPE], such as w:f32[1024]")),
    }
}
