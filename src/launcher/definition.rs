//! What a name stands for: where its kernel comes from, and what is done where it cannot be had.

use std::fmt;

use super::fallback::Fallback;
use crate::nvrtc::Program;

/// Which of an image and a program is tried first, where a definition has both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefer {
    /// The image, and the program where the image cannot be used: nothing is compiled on machines that the image is for.
    #[default]
    Image,
    /// The program, and the image where it cannot be compiled, as without NVRTC.
    Source,
}

/// What a name stands for, for [`Launcher::define`](super::Launcher::define).
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
    /// What the program is apart from its name, by which it is found again.
    pub(super) identity: String,
    pub(super) image: Option<Vec<u8>>,
    pub(super) prefer: Prefer,
    pub(super) fallback: Fallback,
}

impl Definition {
    /// A definition of this name, of nothing yet.
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

    /// From CUDA C++ source. Messages call it by the definition's name, with `.cu`.
    pub fn source(mut self, source: impl Into<String>) -> Definition {
        let source = source.into();
        self.identity = format!("{:?}", Program::new("", source.as_str()));
        self.program = Some(Program::new(format!("{}.cu", self.name), source));
        self
    }

    /// From a program, which has options, headers and instances of templates.
    pub fn program(mut self, program: Program) -> Definition {
        self.identity = format!("{program:?}");
        self.program = Some(program);
        self
    }

    /// From an image: PTX, a cubin or a fatbin.
    pub fn image(mut self, image: impl Into<Vec<u8>>) -> Definition {
        self.image = Some(image.into());
        self
    }

    /// Which kernel of several: its name in the image, its plain C++ name where no other has it, or one of the program's
    /// expressions. Without it, that is the definition's own name, or the only kernel that there is.
    pub fn entry(mut self, entry: impl Into<String>) -> Definition {
        self.entry = Some(entry.into());
        self
    }

    /// Which of image and program is tried first.
    pub fn prefer(mut self, prefer: Prefer) -> Definition {
        self.prefer = prefer;
        self
    }

    /// What is done where the kernel cannot be had.
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
