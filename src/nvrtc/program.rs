//! Programs: source text with all inputs of a compilation, and the result.

use std::fmt;
use std::fmt::Display;

use super::cache::{Cache, CacheKey};
use super::compiler::{self, Output};
use super::headers::HEADERS;
use super::target::Target;
use super::{includes, lookup};
use crate::error::{Error, Result};

/// CUDA C++ source with its options, headers and requested names.
///
/// ```no_run
/// use selvedge::nvrtc::{Cache, Program, Target};
///
/// # fn main() -> selvedge::Result<()> {
/// let program = Program::new("scale.cu", "template <typename T> __global__ void scale(T *x, T by) { x[threadIdx.x] *= by; }")
///     .option("--use_fast_math")
///     .expression("scale<float>");
/// let compiled = program.compile("sm_90a".parse::<Target>()?, &Cache::standard())?;
/// println!("{} bytes, {:?}", compiled.image().len(), compiled.lowered_name("scale<float>"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Program {
    pub(super) name: String,
    pub(super) source: String,
    /// The program's own headers, with unique names.
    pub(super) headers: Vec<(String, String)>,
    pub(super) options: Vec<String>,
    pub(super) expressions: Vec<String>,
}

impl Program {
    /// Creates a program of this source. The name appears in messages, such as `saxpy.cu`.
    pub fn new(name: impl Into<String>, source: impl Into<String>) -> Program {
        Program {
            name: name.into(),
            source: source.into(),
            headers: Vec::new(),
            options: Vec::new(),
            expressions: Vec::new(),
        }
    }

    /// Adds a header, for `#include "name"` and `#include <name>`. It replaces one of the same name, including the
    /// crate's own.
    pub fn header(mut self, name: impl Into<String>, text: impl Into<String>) -> Program {
        let name = name.into();
        self.headers.retain(|(other, _)| *other != name);
        self.headers.push((name, text.into()));
        self
    }

    /// Adds an NVRTC option, such as `--use_fast_math`. The target sets the architecture, so an option must not. The
    /// default dialect is C++17 with every NVRTC; `--std` selects another.
    pub fn option(mut self, option: impl Into<String>) -> Program {
        self.options.push(option.into());
        self
    }

    /// Defines a macro.
    pub fn define(self, name: impl AsRef<str>, value: impl Display) -> Program {
        self.option(format!("--define-macro={}={value}", name.as_ref()))
    }

    /// Requests a template instance, or a name in a namespace: `scale<float>`, `ours::fill`. [`Compiled::lowered_name`]
    /// then returns its name in the image. `extern "C"` kernels need no request.
    pub fn expression(mut self, expression: impl Into<String>) -> Program {
        let expression = expression.into();
        if !self.expressions.contains(&expression) {
            self.expressions.push(expression);
        }
        self
    }

    /// Compiles the program, or returns an earlier result from the cache.
    ///
    /// # Errors
    ///
    /// [`Error::Compilation`] for a program that does not compile, with the position and NVRTC's log;
    /// [`Error::InvalidArgument`] for an option that sets an architecture, text with a zero byte, or a target that
    /// NVRTC does not know; [`Error::LibraryUnavailable`] without NVRTC. A cache that cannot be read or written is
    /// reported to [`log`], and the program is compiled.
    pub fn compile(&self, target: Target, cache: &Cache) -> Result<Compiled> {
        self.check_options()?;
        let key = self.key(target, cache);
        let (output, is_from_cache) = lookup::cached(cache, key, |api| compiler::compile(api, self, target))?;
        Ok(Compiled { target, output, is_from_cache })
    }

    /// Compiles the program and replaces its cache entry, for an image that the driver refused.
    ///
    /// # Errors
    ///
    /// As [`Program::compile`].
    pub fn compile_anew(&self, target: Target, cache: &Cache) -> Result<Compiled> {
        self.check_options()?;
        let key = self.key(target, cache);
        let output = lookup::replaced(cache, key, |api| compiler::compile(api, self, target))?;
        Ok(Compiled { target, output, is_from_cache: false })
    }

    /// Returns the hash of everything that decides the result, except NVRTC; `None` if the program cannot be cached.
    fn key(&self, target: Target, cache: &Cache) -> Option<CacheKey> {
        if !cache.is_usable() {
            return None;
        }
        let outside = match includes::outside(self) {
            Ok(outside) => outside,
            Err(reason) => {
                log::debug!("{} is compiled each time: {reason}", self.name);
                return None;
            }
        };
        let mut key = CacheKey::new("program");
        key.add_all([self.name.as_str(), &self.source, &target.to_string()].into_iter());
        key.add_all(self.all_headers().flat_map(|(name, text)| [name, text]));
        key.add_all(self.options.iter().map(String::as_str));
        key.add_all(self.expressions.iter().map(String::as_str));
        for (path, text) in outside {
            key.add(path.as_os_str().as_encoded_bytes());
            key.add(&text);
        }
        Some(key)
    }

    /// Refuses options that set the architecture.
    fn check_options(&self) -> Result<()> {
        let named = self.options_named(&["gpu-architecture", "arch"]).next();
        named.map_or(Ok(()), |option| {
            let found = format!("option '{option}'");
            Err(Error::invalid("Program::compile", found, "the architecture as the target"))
        })
    }

    /// Returns whether an option selects the C++ dialect.
    pub(super) fn names_dialect(&self) -> bool {
        self.options_named(&["std"]).next().is_some()
    }

    /// Returns the options of these names, given as `--name=value`, `-name=value`, `-name value` or alone.
    pub(super) fn options_named<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
        self.options.iter().map(String::as_str).filter(move |option| names.contains(&split(option).0))
    }

    /// Returns the values of these options: in the option itself, or in the next one. A one-letter name may be joined
    /// to its value.
    pub(super) fn values_of<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
        let next = self.options.iter().skip(1).map(String::as_str).chain([""]);
        self.options.iter().zip(next).filter_map(move |(option, next)| {
            let (name, value) = split(option);
            if names.contains(&name) {
                return Some(if value.is_empty() { next } else { value });
            }
            let short = names.iter().filter(|name| name.len() == 1);
            short.filter_map(|name| option.trim().strip_prefix('-')?.strip_prefix(name)).next()
        })
    }

    /// Returns the program's headers, and those of the crate that it does not replace.
    pub(super) fn all_headers(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        let own = self.headers.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        let replaced = |name: &str| self.headers.iter().any(|(own, _)| own == name);
        own.chain(HEADERS.iter().copied().filter(move |(name, _)| !replaced(name)))
    }

    /// Returns the text of a file by its name in NVRTC's log.
    pub(super) fn text_of(&self, file: &str) -> Option<&str> {
        if file == self.name {
            return Some(&self.source);
        }
        self.all_headers().find(|(name, _)| *name == file).map(|(_, text)| text)
    }
}

/// Returns an option's name without dashes, and the value after `=` or a blank.
fn split(option: &str) -> (&str, &str) {
    let option = option.trim();
    let option = option.strip_prefix("--").or_else(|| option.strip_prefix('-')).unwrap_or("");
    let (name, value) = option.split_once(['=', ' ']).unwrap_or((option, ""));
    (name, value.trim())
}

/// The result of a compilation.
#[derive(Clone)]
pub struct Compiled {
    pub(super) target: Target,
    pub(super) output: Output,
    pub(super) is_from_cache: bool,
}

impl Compiled {
    /// The cubin, or the PTX text without a terminating zero.
    pub fn image(&self) -> &[u8] {
        &self.output.image
    }

    /// The PTX: the image itself, or the text that a cubin was assembled from. It has parameter kinds, which a cubin
    /// lacks: see [`Device::load_described`](crate::driver::Device::load_described).
    pub fn ptx(&self) -> &[u8] {
        if self.target.is_ptx() { &self.output.image } else { &self.output.ptx }
    }

    /// The target of the compilation.
    pub fn target(&self) -> Target {
        self.target
    }

    /// The compiler's warnings, with source lines and carets; empty without warnings.
    pub fn log(&self) -> &str {
        &self.output.log
    }

    /// Returns the name in the image for an expression of [`Program::expression`].
    pub fn lowered_name(&self, expression: &str) -> Option<&str> {
        let found = self.output.names.iter().find(|(asked, _)| asked == expression);
        found.map(|(_, lowered)| lowered.as_str())
    }

    /// Every expression with its name in the image, in order of request.
    pub fn lowered_names(&self) -> &[(String, String)] {
        &self.output.names
    }

    /// Returns whether the result came from the cache.
    pub fn is_from_cache(&self) -> bool {
        self.is_from_cache
    }
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled")
            .field("target", &self.target.to_string())
            .field("bytes", &self.output.image.len())
            .field("lowered_names", &self.output.names)
            .field("is_from_cache", &self.is_from_cache)
            .finish()
    }
}
