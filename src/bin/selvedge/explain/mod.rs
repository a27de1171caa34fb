//! `selvedge explain`: what would be done, and why, without doing it.

mod attention;
mod expr;
mod text;

use selvedge::driver::Device;
use selvedge::gemm::{DeviceProperties, Plan, Product};
use selvedge::nvrtc::Target;
use serde_json::json;

use crate::failure::Failure;
use crate::options::{ExplainOptions, Explained, MatmulOptions};
use crate::output::Report;

/// Explains one thing.
pub fn explain(options: &ExplainOptions) -> Result<Report, Failure> {
    match &options.what {
        Explained::Matmul(options) => matmul(options),
        Explained::Attention(options) => attention::attention(options),
        Explained::Expr(options) => expr::expr(options),
    }
}

/// The device that is asked about: one that is named, the first that there is, or one like an H200. And whether it is here.
fn properties(arch: Option<Target>) -> Result<(DeviceProperties, bool), Failure> {
    Ok(match arch {
        Some(target) => (DeviceProperties::reference(target.capability()), false),
        None => match Device::new(0) {
            Ok(device) => (DeviceProperties::from_device(&device)?, true),
            Err(_) => (DeviceProperties::reference((9, 0)), false),
        },
    })
}

fn matmul(options: &MatmulOptions) -> Result<Report, Failure> {
    let MatmulOptions { m, n, k, dtype, batch, .. } = *options;
    let into = options.into.unwrap_or(dtype);
    let (of_a, of_b) = options.layout.operations();
    let mut product = Product::new(m, n, k).a(of_a).b(of_b);
    if batch != 1 {
        product = product.batch(batch, m.saturating_mul(k), k.saturating_mul(n), m.saturating_mul(n));
    }
    if let Some(choice) = options.by {
        product = product.by(choice);
    }
    let (mut properties, here) = properties(options.arch)?;
    if let Some(multiprocessors) = options.multiprocessors {
        properties.multiprocessors = multiprocessors;
    }
    let plan = Plan::explain(&product, dtype, into, properties)?;
    let (major, minor) = properties.capability;
    let lacking: Vec<_> = plan
        .unsupported()
        .iter()
        .map(|(engine, lack)| json!({ "engine": engine.name(), "lacks": lack.to_string() }))
        .collect();
    let json = json!({
        "m": m,
        "n": n,
        "k": k,
        "batch": batch,
        "operands": dtype.to_string(),
        "result": into.to_string(),
        "layout": format!("{:?}", options.layout).to_lowercase(),
        "device": {
            "compute_capability": format!("{major}.{minor}"),
            "multiprocessors": properties.multiprocessors,
            "here": here,
        },
        "engine": plan.engine().name(),
        "kernel": plan.kernel(),
        "tile": plan.tile().map(|(rows, columns)| [rows, columns]),
        "tiles": plan.tile().map(|_| plan.work().0),
        "blocks": plan.tile().map(|_| plan.work().1),
        "copied": plan.copied().iter().map(char::to_string).collect::<Vec<_>>(),
        "others": lacking,
    });
    let device_text = device_text(here);
    Ok(Report { text: format!("On {device_text}:\n{plan}\n"), json })
}

fn device_text(here: bool) -> &'static str {
    if here { "device 0" } else { "a device that is not here" }
}
