//! The engines, how one is asked for, and what keeps one from running.

use std::env;
use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::types::DType;

/// A family of kernels that multiplies matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// Tensor cores of compute capability 9.0, fed by bulk tensor copies: [`DType::F16`] and [`DType::BF16`], added in f32.
    Wgmma,
    /// Tensor cores of compute capability 8.0 and up, and 7.5 for [`DType::F16`]: [`DType::F16`] and [`DType::BF16`], added
    /// in f32, of any alignment.
    Mma,
    /// Ordinary arithmetic: every device, every element type, any alignment.
    Simt,
}

impl Engine {
    /// Every engine, the one that is preferred first.
    pub const ALL: [Engine; 3] = [Engine::Wgmma, Engine::Mma, Engine::Simt];

    /// Its name in `SELVEDGE_GEMM`.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Wgmma => "wgmma",
            Engine::Mma => "mma",
            Engine::Simt => "simt",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// The engines that are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Choice {
    /// The best of all that can run.
    #[default]
    Auto,
    /// The best of this crate's own that can run, which are all that there are so far.
    Own,
    /// This one, or an error that says what it lacks.
    Only(Engine),
}

impl Choice {
    /// What `SELVEDGE_GEMM` asks for; [`Choice::Auto`] where it is not set or empty.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] with its value and what it may be.
    pub fn from_environment() -> Result<Choice> {
        match env::var_os("SELVEDGE_GEMM") {
            None => Ok(Choice::Auto),
            Some(name) => name.to_string_lossy().parse(),
        }
    }

    pub(super) fn allows(self, engine: Engine) -> bool {
        match self {
            Choice::Auto | Choice::Own => true,
            Choice::Only(only) => only == engine,
        }
    }
}

impl FromStr for Choice {
    type Err = Error;

    /// Reads `auto` (or nothing), `own` or an engine's name.
    fn from_str(name: &str) -> Result<Choice> {
        match name {
            "" | "auto" => return Ok(Choice::Auto),
            "own" => return Ok(Choice::Own),
            _ => {}
        }
        let engine = Engine::ALL.into_iter().find(|engine| engine.name() == name);
        engine.map(Choice::Only).ok_or_else(|| {
            let names = Engine::ALL.map(Engine::name).join(", ");
            Error::invalid("SELVEDGE_GEMM", format!("'{name}'"), format!("auto, own, or an engine: {names}"))
        })
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Auto => formatter.pad("auto"),
            Choice::Own => formatter.pad("own"),
            Choice::Only(engine) => engine.fmt(formatter),
        }
    }
}

/// Why an engine does not run a product.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Lack {
    /// Others were asked for.
    NotAsked(Choice),
    /// It does not multiply this type into that one.
    Types(DType, DType),
    /// It needs k of 1 or more (alpha of 0 counts as a k of 0).
    NoDepth,
    /// Rows or matrices of this operand do not all begin at multiples of so many bytes.
    Alignment(char, u64),
    /// Results of this type have no epilogue.
    Epilogue(DType),
    /// More of something than the engine counts.
    TooMany(&'static str),
    /// There is no image of its kernels for the device, its driver, or the overrides of the environment.
    Image(Error),
}

impl fmt::Display for Lack {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lack::NotAsked(choice) => write!(formatter, "{choice} was asked for"),
            Lack::Types(operand, result) => write!(formatter, "it does not multiply {operand} into {result}"),
            Lack::NoDepth => {
                formatter.write_str("it needs a depth k of at least 1, and an alpha other than 0")
            }
            Lack::Alignment(operand, bytes) => {
                write!(
                    formatter,
                    "it needs {operand} with all rows and matrices at multiples of {bytes} bytes"
                )
            }
            Lack::Epilogue(result) => {
                write!(formatter, "an epilogue needs a result of f16, bf16, f32 or f64, not {result}")
            }
            Lack::TooMany(what) => write!(formatter, "there are too many {what} for it"),
            Lack::Image(error) => write!(formatter, "{error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_others_refused() {
        for choice in [Choice::Auto, Choice::Own, Choice::Only(Engine::Simt), Choice::Only(Engine::Mma)] {
            assert_eq!(choice.to_string().parse::<Choice>().unwrap(), choice);
        }
        assert_eq!("".parse::<Choice>().unwrap(), Choice::Auto);
        for name in ["cublas", "Own", "simt "] {
            let error = name.parse::<Choice>().unwrap_err().to_string();
            assert!(error.contains(&format!("'{name}'")) && error.contains("wgmma, mma, simt"), "{error}");
        }
    }
}
