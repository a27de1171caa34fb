//! Definitions: the source of a kernel, and its fallback.

use std::fmt;

use super::fallback::Fallback;
use crate::nvrtc::Program;

/// The order in which an image and a program are tried, if a definition has both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefer {
    /// The image first, then the program: nothing is compiled on machines that can use the image.
    #[default]
    Image,
    /// The program first, then the image if it cannot be compiled, as without NVRTC.
    Source,
}

/// The definition of a kernel name, for [`Launcher::define`](super::Launcher::define).
///
/// ```no_run
/// use selvedge::launcher::{Definition, Fallback, Launcher, Prefer};
/// use selvedge::nvrtc::Program;
///
/// # fn main() -> selvedge::Result<()> {
/// # let launcher = Launcher::new(&selvedge::driver::Device::new(0)?)?;
/// # let (source, ptx) = ("", "");
/// let scale = Definition::new("scale")
///     .program(Program::new("scale.cu", source).expression("scale<float>"))
///     .entry("scale<float>")
///     .image(ptx)
///     .prefer(Prefer::Source)
///     .fallback(Fallback::cpu(|launch| {
///         let [x, by] = launch.arguments()?;
///         let by = by.value::<f32>()?;
///         x.slice_mut::<f32>()?.iter_mut().for_each(|x| *x *= by);
///         Ok(())
///     }));
/// launcher.define(scale)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use]
pub struct Definition {
    pub(super) name: String,
    pub(super) entry: Option<String>,
    pub(super) program: Option<Program>,
    /// The program's content without its name, which identifies it.
    pub(super) identity: String,
    pub(super) image: Option<Vec<u8>>,
    pub(super) prefer: Prefer,
    pub(super) fallback: Fallback,
}

impl Definition {
    /// Creates an empty definition of this name.
    pub fn new(name: impl Into<String>) -> Definition {
        Definition {
            name: name.into(),
            entry: None,
            program: None,
            identity: String::new(),
            image: None,
            prefer: Prefer::default(),
            fallback: Fallback::Error,
        }
    }

    /// Adds CUDA C++ source. Messages use the definition's name with `.cu`.
    pub fn source(mut self, source: impl Into<String>) -> Definition {
        let source = source.into();
        self.identity = format!("{:?}", Program::new("", source.as_str()));
        self.program = Some(Program::new(format!("{}.cu", self.name), source));
        self
    }

    /// Adds a program with options, headers and template instances.
    pub fn program(mut self, program: Program) -> Definition {
        self.identity = format!("{program:?}");
        self.program = Some(program);
        self
    }

    /// Adds an image: PTX, a cubin or a fatbin.
    pub fn image(mut self, image: impl Into<Vec<u8>>) -> Definition {
        self.image = Some(image.into());
        self
    }

    /// Selects one of several kernels: by its name in the image, its plain C++ name if that is unique, or one of the
    /// program's expressions. The default is the definition's own name, or the only kernel.
    pub fn entry(mut self, entry: impl Into<String>) -> Definition {
        self.entry = Some(entry.into());
        self
    }

    /// Sets the order of image and program.
    pub fn prefer(mut self, prefer: Prefer) -> Definition {
        self.prefer = prefer;
        self
    }

    /// Sets the fallback for an unavailable kernel.
    pub fn fallback(mut self, fallback: Fallback) -> Definition {
        self.fallback = fallback;
        self
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Definition")
            .field("name", &self.name)
            .field("entry", &self.entry)
            .field("program", &self.program.is_some())
            .field("image_bytes", &self.image.as_ref().map(Vec::len))
            .field("prefer", &self.prefer)
            .field("fallback", &self.fallback)
            .finish()
    }
}
