//! `selvedge explain expr`: the kernels of an expression, with their bytes and texts.

use std::fmt;

use selvedge::fuse::{Explanation, Expr, Graph, RowKernel, RowLaunches};
use selvedge::types::{DType, Layout, Shape};
use serde_json::{Value, json};

use super::text::{self, DefaultAxes, Parsed};
use super::{device_text, properties};
use crate::failure::{BAD_INPUT, Failure};
use crate::options::ExprOptions;
use crate::output::Report;
use crate::plan::invalid;

/// An input or the result of an expression.
struct ExpressionOperand {
    name: String,
    dtype: DType,
    layout: Layout,
}

impl ExpressionOperand {
    fn bytes(&self) -> usize {
        self.layout.count() * self.dtype.size()
    }

    fn json(&self) -> Value {
        json!({ "name": self.name, "dtype": self.dtype.to_string(), "shape": self.layout.shape().to_vec() })
    }
}

impl fmt::Display for ExpressionOperand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {} {}", self.name, self.dtype, self.layout.shape())
    }
}

/// The kernels of an expression.
struct Kernels {
    /// The plan, with the texts of kernels if they are wanted.
    text: String,
    bytes_read: usize,
    bytes_written: usize,
    json: Vec<Value>,
}

/// Returns the kernels as JSON: (blocks, threads, text) of each launch.
fn launches_of(launches: &[(u32, u32, &str)], with_text: bool) -> Vec<Value> {
    let json = |(blocks, threads, ptx): &(u32, u32, &str)| match with_text {
        true => json!({ "blocks": blocks, "threads": threads, "ptx": ptx }),
        false => json!({ "blocks": blocks, "threads": threads }),
    };
    launches.iter().map(json).collect()
}

fn elementwise_launches(explanation: &Explanation) -> Vec<(u32, u32, &str)> {
    let launches = explanation.launches.iter();
    launches.map(|launch| (launch.blocks, launch.threads, launch.ptx.as_str())).collect()
}

fn row_launches(kernel: &RowKernel) -> Vec<(u32, u32, &str)> {
    match &kernel.launches {
        RowLaunches::Expression(explanation) => elementwise_launches(explanation),
        RowLaunches::Rows(launch) | RowLaunches::Check(launch) => {
            vec![(launch.blocks, launch.threads, launch.ptx.as_str())]
        }
        RowLaunches::Reduction(reduction) => {
            let launches = reduction.launches.iter();
            launches.map(|launch| (launch.blocks, launch.threads, launch.ptx.as_str())).collect()
        }
    }
}

/// Removes the texts of kernels from a plan.
fn without_text(plan: &str, launches: &[(u32, u32, &str)]) -> String {
    let mut plan = plan.to_owned();
    for (.., ptx) in launches.iter().filter(|(.., ptx)| !ptx.is_empty()) {
        plan = plan.replace(ptx, "");
    }
    let lines: Vec<&str> = plan.lines().filter(|line| !line.is_empty()).collect();
    lines.join("\n") + "\n"
}

fn elementwise(
    output: Expr<'_>,
    inputs: &[ExpressionOperand],
    result: &ExpressionOperand,
    capability: (i32, i32),
    options: &ExprOptions,
) -> Result<Kernels, Failure> {
    let with_text = options.ptx;
    let expression = output.graph().expression(&[output])?;
    let layouts: Vec<Layout> = inputs.iter().map(|input| input.layout).collect();
    let explanation = expression.explain(&layouts, &[result.layout], capability)?;
    let launches = elementwise_launches(&explanation);
    let (bytes_read, bytes_written) = (inputs.iter().map(ExpressionOperand::bytes).sum(), result.bytes());
    let plan = explanation.to_string();
    let plan = if with_text { plan } else { without_text(&plan, &launches) };
    let mut kernel = json!({
        "name": "elementwise",
        "bytes_read": bytes_read,
        "bytes_written": bytes_written,
        "launches": launches_of(&launches, with_text),
    });
    let mut text = format!("1 kernel reads {bytes_read} bytes and writes {bytes_written}\n{plan}");
    if options.code {
        let code = explanation.cpu_code();
        // The plan says why the CPU interprets an expression.
        text += code.as_deref().unwrap_or("no machine code of the CPU\n");
        kernel["cpu_code"] = code.into();
    }
    Ok(Kernels { text, bytes_read, bytes_written, json: vec![kernel] })
}

fn rows(
    output: Expr<'_>,
    inputs: &[ExpressionOperand],
    result: &mut ExpressionOperand,
    axes: &[isize],
    capability: (i32, i32),
    with_text: bool,
) -> Result<Kernels, Failure> {
    let program = output.graph().row_program(&[output])?;
    if program.is_per_group(0) {
        let shape = result.layout.shape();
        let mut sizes = shape.to_vec();
        for &axis in axes {
            sizes[shape.axis("an expression", axis)?] = 1;
        }
        result.layout = Layout::contiguous(&sizes)?;
    }
    let layouts: Vec<Layout> = inputs.iter().map(|input| input.layout).collect();
    let explanation = program.explain(&layouts, axes, &[result.layout], capability)?;
    let launches: Vec<_> = explanation.kernels.iter().flat_map(row_launches).collect();
    let plan = explanation.to_string();
    let kernel = |kernel: &RowKernel| {
        json!({
            "name": kernel.name,
            "phase": kernel.phase,
            "bytes_read": kernel.bytes_read,
            "bytes_written": kernel.bytes_written,
            "launches": launches_of(&row_launches(kernel), with_text),
        })
    };
    Ok(Kernels {
        text: if with_text { plan } else { without_text(&plan, &launches) },
        bytes_read: explanation.bytes_read(),
        bytes_written: explanation.bytes_written(),
        json: explanation.kernels.iter().map(kernel).collect(),
    })
}

/// Returns the axes of groups that all functions have.
fn default_axes(functions: &[(&str, DefaultAxes)]) -> Result<DefaultAxes, Failure> {
    let Some((&(first, axes), others)) = functions.split_first() else { return Ok(DefaultAxes::Last) };
    match others.iter().find(|(_, other)| *other != axes) {
        Some((other, _)) => {
            let found = format!("{first} beside {other}, whose groups have other axes");
            Err(invalid(found, "the axes of all groups as --axis"))
        }
        None => Ok(axes),
    }
}

/// Explains the kernels of an expression.
pub fn expr(options: &ExprOptions) -> Result<Report, Failure> {
    let given = |name: &str| options.inputs.iter().find(|input| input.name == name);
    let dtype_of = |name: &str| given(name).map_or(options.dtype, |input| input.dtype);
    let graph = Graph::new();
    let Parsed { output, inputs: names, functions } = text::parse(&graph, &options.text, dtype_of)
        .map_err(|error| Failure { code: BAD_INPUT, message: error.show(&options.text) })?;
    let has_groups = !functions.is_empty();
    if let Some(unused) = options.inputs.iter().find(|input| !names.contains(&input.name)) {
        let wanted = format!("one of {}", names.join(", "));
        return Err(invalid(format!("--input {}, which is not in the expression", unused.name), wanted));
    }
    if let (Some(axis), false) = (options.axes.first(), has_groups) {
        return Err(invalid(
            format!("--axis {axis} for an expression without groups"),
            "a function such as sum_group",
        ));
    }
    if options.code && has_groups {
        return Err(invalid("--code for an expression with groups", "an elementwise expression"));
    }
    let mut shape = Shape::SCALAR;
    let mut inputs = Vec::with_capacity(names.len());
    for name in names {
        let layout = Layout::contiguous(given(&name).map_or(&options.shape.0, |input| &input.shape))?;
        shape = shape.broadcast(layout.shape())?;
        inputs.push(ExpressionOperand { dtype: dtype_of(&name), name, layout });
    }
    let mut result = ExpressionOperand {
        name: "result".to_owned(),
        dtype: output.dtype(),
        layout: Layout::contiguous(&shape)?,
    };
    let (properties, here) = properties(options.arch)?;
    let axes = match options.axes.as_slice() {
        [] => default_axes(&functions)?.of(shape.rank()),
        axes => axes.to_vec(),
    };
    let (capability, with_text) = (properties.capability, options.ptx);
    let kernels = match has_groups {
        true => rows(output, &inputs, &mut result, &axes, capability, with_text)?,
        false => elementwise(output, &inputs, &result, capability, options)?,
    };
    let json = json!({
        "expression": options.text,
        "inputs": inputs.iter().map(ExpressionOperand::json).collect::<Vec<_>>(),
        "result": result.json(),
        "axes": if has_groups { axes } else { Vec::new() },
        "device": { "compute_capability": format!("{}.{}", capability.0, capability.1), "here": here },
        "bytes_read": kernels.bytes_read,
        "bytes_written": kernels.bytes_written,
        "kernels": kernels.json,
    });
    let operands: Vec<String> =
        inputs.iter().chain([&result]).map(|operand| format!("  {operand}\n")).collect();
    let (device_text, expression) = (device_text(here), &options.text);
    let text = format!("On {device_text}:\n{expression}\n{}{}", operands.concat(), kernels.text);
    Ok(Report { text, json })
}
