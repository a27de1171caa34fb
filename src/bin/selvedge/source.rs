//! The kernel argument of a command: an image, or CUDA C++ in a `.cu` file with compiler options.
//!
//! The files that a source includes are read by the compiler, and are part of what the cache goes by; the source's own folder
//! is always searched.

use std::path::{Path, PathBuf};

use selvedge::Error;
use selvedge::nvrtc::{Cache, Compiled, Program, Target};

use crate::failure::Failure;
use crate::files;
use crate::options::{CompileOptions, TargetOptions};
use crate::output::{Progress, Style};

/// NVRTC's name for the file in which it reads expressions.
const EXPRESSIONS: &str = "__nv_name_map";

/// An image, or what one is made of.
#[derive(Debug)]
pub enum Kernel {
    Image(Vec<u8>),
    Source(Source),
}

/// CUDA C++ and how it is compiled.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    text: String,
    options: CompileOptions,
}

impl Kernel {
    /// Reads the file. Options of the compiler are refused where there is nothing to compile.
    pub fn read(path: &Path, compile: &CompileOptions, target: &TargetOptions) -> Result<Kernel, Failure> {
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("cu")) {
            return Source::read(path, compile).map(Kernel::Source);
        }
        if let Some(option) = compile.given().into_iter().chain(target.given()).next() {
            return Err(Error::InvalidArgument {
                operation: "arguments",
                found: format!("{option} with {}", path.display()),
                wanted: "a .cu file, which alone is compiled".to_owned(),
            }
            .into());
        }
        files::read(path, "a PTX, cubin or fatbin file, or CUDA C++ in a .cu file").map(Kernel::Image)
    }
}

impl Source {
    /// Reads the file.
    pub fn read(path: &Path, options: &CompileOptions) -> Result<Source, Failure> {
        for folder in &options.include_paths {
            if !folder.is_dir() {
                let path = folder.display().to_string();
                let (found, wanted) = ("no such folder".to_owned(), "a folder for --include-path".to_owned());
                return Err(Error::File { path, found, wanted }.into());
            }
        }
        let text = files::read_text(path, "CUDA C++")?;
        Ok(Source { path: path.to_owned(), text, options: options.clone() })
    }

    /// The text, as it was read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The program with this name in messages.
    pub fn program(&self, name: &str) -> Program {
        let mut program = Program::new(name, self.text.as_str());
        for option in &self.options.options {
            program = program.option(option.as_str());
        }
        for definition in &self.options.definitions {
            program = program.define(&definition.name, &definition.value);
        }
        let own = folder_of(&self.path);
        for folder in std::iter::once(own).chain(self.options.include_paths.iter().map(PathBuf::as_path)) {
            program = program.option(format!("--include-path={}", folder.display()));
        }
        program
    }

    /// Compiles, or takes the image from the cache. `expression` is the kernel where it is an instance of a template.
    pub fn compile(
        &self,
        target: Target,
        cache: &Cache,
        expression: Option<&str>,
    ) -> Result<Compiled, Failure> {
        let mut program = self.program(&self.path.display().to_string());
        if let Some(expression) = expression {
            program = program.expression(expression);
        }
        let _progress = Progress::spinner("compiling");
        program.compile(target, cache).map_err(|error| match (&error, expression) {
            // NVRTC reads expressions as a file of their own.
            (Error::Compilation { details, .. }, Some(expression)) if details.file == EXPRESSIONS => {
                let failure = Failure::from(error);
                let name = self.path.display();
                Failure {
                    message: format!("'{expression}' is no kernel of {name}: {}", failure.message),
                    ..failure
                }
            }
            _ => explained(error),
        })
    }
}

/// Converts an error of the compiler, and adds advice where there is no NVRTC.
pub fn explained(error: Error) -> Failure {
    let absent = matches!(&error, Error::LibraryUnavailable { library, .. } if *library == "NVRTC");
    let failure = Failure::from(error);
    if !absent {
        return failure;
    }
    let advice = "to compile .cu files install NVRTC (pip install nvidia-cuda-nvrtc-cu12, or a CUDA toolkit) or name it by \
                  SELVEDGE_LIBNVRTC; without it give PTX, a cubin or a fatbin, such as selvedge build-images makes elsewhere";
    Failure { message: format!("{}\n{advice}", failure.message.trim_end()), ..failure }
}

/// Shows what the compiler had to say of a program that it compiled.
pub fn show_warnings(compiled: &Compiled) {
    if !compiled.log().is_empty() {
        eprintln!("{}", Style::of_stderr().dim(compiled.log().trim_end()));
    }
}

/// The cache that a command uses.
pub fn cache(turned_off: bool) -> Cache {
    if turned_off { Cache::none() } else { Cache::standard() }
}

/// The folder of a file, `.` where none is named.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// FNV-1a of 64 bits (G. Fowler, L. C. Noll, K.-P. Vo, "The FNV non-cryptographic hash algorithm"), as 16 hexadecimal
/// digits: what manifests have, since a build script and a test can write it in a line.
pub fn fnv1a(bytes: &[u8]) -> String {
    let step = |value: u64, byte: &u8| (value ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_definition() {
        assert_eq!(fnv1a(b""), "cbf29ce484222325");
        assert_eq!(fnv1a(b"a"), "af63dc4c8601ec8c");
        assert_eq!(fnv1a(b"foobar"), "85944171f73967e8");
    }
}
