//! The sums of a trace as tables for a terminal and as JSON.

use serde_json::{Value, json};

use super::analysis::{Analysis, DeviceTimes, Times};
use super::read::Trace;
use crate::output::{self, Style, Table, counted, grouped, microseconds, printable, printable_name};

/// Lines of a table.
const LISTED: usize = 20;

fn share(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.1} %", 100.0 * part / whole) } else { "-".to_owned() }
}

pub(super) fn number_at_end(trace: &Trace, name: &str) -> u64 {
    trace.end.as_ref().and_then(|end| end[name].as_u64()).unwrap_or(0)
}

/// The tables.
pub fn text(trace: &Trace, analysis: &Analysis) -> String {
    let style = Style::of_stdout();
    let mut text = format!(
        "trace of {} by selvedge {}: {}\n",
        microseconds(analysis.duration),
        printable_name(&trace.selvedge),
        counted(trace.events.len() as u64, "event"),
    );
    if trace.end.is_none() {
        text += "  the file breaks off: it was read up to there\n";
    }
    for (name, what) in [
        ("dropped", "dropped, because a buffer was full"),
        (
            "untimed",
            "of a device without a time: lost with its context, unfinished, or refused by the driver",
        ),
    ] {
        match number_at_end(trace, name) {
            0 => {}
            count => text += &format!("  {} {what}\n", counted(count, "event")),
        }
    }
    if let Some(clock) =
        trace.end.as_ref().and_then(|end| end["device_clock"].as_str()).filter(|clock| *clock != "none")
    {
        text += &format!("  device times by {}", printable(clock));
        if let Some(reason) = trace.end.as_ref().and_then(|end| end["device_clock_reason"].as_str()) {
            text += &format!(" ({})", printable(reason));
        }
        text.push('\n');
    }
    if !analysis.operations.is_empty() {
        let mut table =
            Table::with_head("<>>>>>", ["operation", "count", "host", "host mean", "device", "share"]);
        let device: f64 = analysis.kernels.iter().map(|kernel| kernel.times.total).sum();
        for sum in analysis.operations.iter().take(LISTED) {
            table.row([
                printable_name(&sum.name),
                grouped(sum.host.count),
                microseconds(sum.host.total),
                microseconds(sum.host.mean()),
                microseconds(sum.device.total),
                share(sum.device.total, device),
            ]);
        }
        text += &section(style, "operations", &table, analysis.operations.len());
    }
    if !analysis.kernels.is_empty() {
        let mut table =
            Table::with_head("<<>>>>>", ["kernel", "kind", "count", "total", "mean", "max", "share"]);
        let device: f64 = analysis.kernels.iter().map(|kernel| kernel.times.total).sum();
        for kernel in analysis.kernels.iter().take(LISTED) {
            table.row([
                printable_name(&kernel.name),
                kernel.category.clone(),
                grouped(kernel.times.count),
                microseconds(kernel.times.total),
                microseconds(kernel.times.mean()),
                microseconds(kernel.times.max),
                share(kernel.times.total, device),
            ]);
        }
        text += &section(style, "kernels", &table, analysis.kernels.len());
    }
    for device in analysis.devices.values() {
        text += &format!("\n{}\n", style.bold(&printable_name(&device.name)));
        text += &of_device(device).render(style);
    }
    if analysis.waits.count > 0 {
        let waits = &analysis.waits;
        text += &format!(
            "\nthe host waited {} for the device, {} in all, at most {}\n",
            if waits.count == 1 { "once".to_owned() } else { format!("{} times", grouped(waits.count)) },
            microseconds(waits.total),
            microseconds(waits.max)
        );
    }
    text
}

pub(super) fn section(style: Style, name: &str, table: &Table, lines: usize) -> String {
    let more = match lines.saturating_sub(LISTED) {
        0 => String::new(),
        more => format!("  and {} more\n", grouped(more as u64)),
    };
    format!("\n{}\n{}{more}", style.bold(name), table.render(style))
}

fn of_device(device: &DeviceTimes) -> Table {
    let mut table = Table::new("<<");
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    row(
        "busy",
        format!(
            "{} of {} ({})",
            microseconds(device.busy),
            microseconds(device.span),
            share(device.busy, device.span)
        ),
    );
    let longest = device.longest.as_ref().map_or_else(String::new, |gap| {
        format!(", the longest {} before {}", microseconds(gap.duration), printable_name(&gap.before))
    });
    row("idle", format!("{} in {}{longest}", microseconds(device.idle()), counted(device.gaps, "gap")));
    if device.ahead.count > 0 {
        let (mean, most) = (microseconds(device.ahead.mean()), microseconds(device.ahead.max));
        row("host ahead", format!("{mean} from launch to start on average, at most {most}"));
    }
    if let Some((bytes, at)) = device.peak_live {
        row("memory", format!("at most {} in use, at {}", output::bytes(bytes as u64), microseconds(at)));
    }
    if let Some(bytes) = device.peak_reserved {
        row("pool", format!("at most {} from the driver", output::bytes(bytes as u64)));
    }
    if let Some(error) = device.clock_error {
        row("clock", format!("within {} of the host's", microseconds(error)));
    }
    table
}

/// The same numbers; times are in microseconds.
pub fn json(trace: &Trace, analysis: &Analysis) -> Value {
    let times = |times: &Times| json!({ "count": times.count, "total_us": times.total, "mean_us": times.mean(), "max_us": times.max });
    let operations = analysis.operations.iter().map(|sum| {
        json!({ "name": sum.name, "category": sum.category, "host": times(&sum.host), "device": times(&sum.device) })
    });
    let kernels = analysis.kernels.iter().map(
        |kernel| json!({ "name": kernel.name, "category": kernel.category, "times": times(&kernel.times) }),
    );
    let devices = analysis.devices.values().map(|device| {
        json!({
            "name": device.name,
            "span_us": device.span,
            "busy_us": device.busy,
            "idle_us": device.idle(),
            "gaps": device.gaps,
            "longest_gap": device.longest.as_ref().map(
                |gap| json!({ "start_us": gap.start, "duration_us": gap.duration, "before": gap.before }),
            ),
            "host_ahead": times(&device.ahead),
            "peak_live_bytes": device.peak_live.map(|(bytes, _)| bytes),
            "peak_live_at_us": device.peak_live.map(|(_, at)| at),
            "peak_reserved_bytes": device.peak_reserved,
            "clock_error_us": device.clock_error,
        })
    });
    json!({
        "selvedge": trace.selvedge,
        "complete": trace.end.is_some(),
        "events": trace.events.len(),
        "dropped": number_at_end(trace, "dropped"),
        "untimed": number_at_end(trace, "untimed"),
        "device_clock": trace.end.as_ref().map_or(&Value::Null, |end| &end["device_clock"]),
        "device_clock_reason": trace.end.as_ref().map_or(&Value::Null, |end| &end["device_clock_reason"]),
        "duration_us": analysis.duration,
        "operations": operations.collect::<Vec<_>>(),
        "kernels": kernels.collect::<Vec<_>>(),
        "devices": devices.collect::<Vec<_>>(),
        "waits": times(&analysis.waits),
    })
}
