//! The options of commands that compile CUDA C++.

use std::path::PathBuf;

use clap::Args;
use selvedge::nvrtc::Target;

/// Options for the compiler.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Compiling .cu files")]
pub struct CompileOptions {
    /// An option for NVRTC, such as --option=--use_fast_math
    #[arg(long = "option", value_name = "OPTION", allow_hyphen_values = true)]
    pub options: Vec<String>,
    /// Define a macro
    #[arg(long = "define", value_name = "NAME[=VALUE]", value_parser = Definition::parse)]
    pub definitions: Vec<Definition>,
    /// A folder of files that are included; the source's own is always searched, and first
    #[arg(long = "include-path", value_name = "FOLDER")]
    pub include_paths: Vec<PathBuf>,
}

impl CompileOptions {
    /// Returns the options that were given; a file that is not compiled takes none.
    pub fn given(&self) -> Vec<&'static str> {
        let given = [
            ("--option", !self.options.is_empty()),
            ("--define", !self.definitions.is_empty()),
            ("--include-path", !self.include_paths.is_empty()),
        ];
        given.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect()
    }
}

/// For what one file is compiled.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Compiling .cu files")]
pub struct TargetOptions {
    /// sm_90 for machine code, compute_80 for PTX [default: what the device takes]
    #[arg(long, value_name = "TARGET", value_parser = parse_target)]
    pub target: Option<Target>,
    /// Neither look for the compiled image in the cache nor keep it there
    #[arg(long)]
    pub no_cache: bool,
}

impl TargetOptions {
    /// Returns the options that were given; a file that is not compiled takes none.
    pub fn given(&self) -> Vec<&'static str> {
        let given = [("--target", self.target.is_some()), ("--no-cache", self.no_cache)];
        given.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect()
    }
}

/// A macro and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    pub name: String,
    /// `1` where none was written, as compilers have it.
    pub value: String,
}

impl Definition {
    fn parse(text: &str) -> Result<Definition, String> {
        let (name, value) = text.split_once('=').unwrap_or((text, "1"));
        let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if !is_name {
            return Err(format!("found '{text}'; wanted NAME or NAME=VALUE, such as TILE=32"));
        }
        Ok(Definition { name: name.to_owned(), value: value.to_owned() })
    }
}

pub fn parse_target(text: &str) -> Result<Target, String> {
    text.parse().map_err(|error: selvedge::Error| match error {
        selvedge::Error::InvalidArgument { found, wanted, .. } => format!("found {found}; wanted {wanted}"),
        error => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_have_a_name() {
        let definition =
            |name: &str, value: &str| Ok(Definition { name: name.to_owned(), value: value.to_owned() });
        assert_eq!(Definition::parse("FAST"), definition("FAST", "1"));
        assert_eq!(Definition::parse("TILE=32"), definition("TILE", "32"));
        assert_eq!(Definition::parse("TYPE=a=b"), definition("TYPE", "a=b"));
        assert_eq!(Definition::parse("EMPTY="), definition("EMPTY", ""));
        for text in ["", "=1", "2D=1", "a-b", "F(x)=x"] {
            assert!(Definition::parse(text).is_err_and(|message| message.contains(text)), "{text}");
        }
    }
}
