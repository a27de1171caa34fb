//! The options of `selvedge memory`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

use super::EXIT_CODES;

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
    /// Returns `true` for `--json` of this command or of its subcommand.
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

/// The kinds of generated traces.
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

#[cfg(test)]
mod tests {
    use super::*;

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
