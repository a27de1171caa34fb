//! The choice of the code that runs expressions on the CPU: machine code for AVX-512 or AVX2, or the interpreter.
//!
//! `SELVEDGE_CPU` limits it. An expression gets machine code when a run is large enough to pay for its generation, or at
//! its third run. Results do not depend on the choice.

use std::fmt;
#[cfg(target_arch = "x86_64")]
use std::sync::Once;
use std::sync::OnceLock;
#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{AtomicU32, Ordering};

use super::super::expression::Expression;
#[cfg(target_arch = "x86_64")]
use super::super::expression::ExpressionState;
#[cfg(target_arch = "x86_64")]
use super::native::{Native, Target, Unsupported};

const VARIABLE: &str = "SELVEDGE_CPU";

/// The elements times steps from which a run pays for machine code: its generation takes about as long as the interpreter
/// for this many.
#[cfg(target_arch = "x86_64")]
const WORTH_GENERATION: usize = 1 << 19;
/// The runs after which an expression gets machine code whatever its size.
#[cfg(target_arch = "x86_64")]
const RUNS_BEFORE: u32 = 2;

/// The code that runs an expression on the CPU.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuBackend {
    Interpreter,
    Avx2,
    Avx512,
}

impl CpuBackend {
    /// Returns whether this processor can run it.
    pub fn is_available(self) -> bool {
        match self {
            CpuBackend::Interpreter => true,
            #[cfg(target_arch = "x86_64")]
            CpuBackend::Avx2 => Target::Avx2.is_available(),
            #[cfg(target_arch = "x86_64")]
            CpuBackend::Avx512 => Target::Avx512.is_available(),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    fn name(self) -> &'static str {
        match self {
            CpuBackend::Interpreter => "interpreter",
            CpuBackend::Avx2 => "avx2",
            CpuBackend::Avx512 => "avx512",
        }
    }
}

/// Parses the variable; none is `auto`. An unknown value is logged and ignored.
fn from_variable(value: Option<&str>) -> Option<CpuBackend> {
    let value = value.map(str::trim).filter(|value| !value.is_empty() && *value != "auto")?;
    let backends = [CpuBackend::Interpreter, CpuBackend::Avx2, CpuBackend::Avx512];
    let backend = backends.into_iter().find(|backend| backend.name() == value);
    if backend.is_none() {
        log::warn!("{VARIABLE}={value} is ignored: it must be auto, avx512, avx2 or interpreter");
    }
    backend
}

/// Returns the allowed backends that the processor can run, best first; logs them once.
fn allowed() -> &'static [CpuBackend] {
    static ALLOWED: OnceLock<Vec<CpuBackend>> = OnceLock::new();
    ALLOWED.get_or_init(|| {
        let requested = from_variable(std::env::var(VARIABLE).ok().as_deref());
        let mut allowed = match requested {
            None => vec![CpuBackend::Avx512, CpuBackend::Avx2],
            Some(CpuBackend::Interpreter) => Vec::new(),
            Some(backend) => vec![backend],
        };
        allowed.retain(|backend| backend.is_available());
        match (allowed.first(), requested) {
            (Some(best), _) => log::info!("expressions on the CPU run as machine code for {}", best.name()),
            (None, Some(CpuBackend::Interpreter)) => {
                log::info!("expressions on the CPU are interpreted: {VARIABLE} asks for it");
            }
            (None, _) if cfg!(miri) => {
                log::info!("expressions on the CPU are interpreted: Miri runs no machine code")
            }
            (None, _) => {
                log::info!("expressions on the CPU are interpreted: the processor lacks the instructions")
            }
        }
        allowed
    })
}

/// The machine code of an expression, once it is worth it.
#[derive(Default)]
pub(crate) struct CpuCode {
    #[cfg(target_arch = "x86_64")]
    runs: AtomicU32,
    #[cfg(target_arch = "x86_64")]
    code: OnceLock<Result<Native, Unsupported>>,
}

#[cfg(target_arch = "x86_64")]
impl CpuCode {
    /// Returns the machine code for a run of `count` elements, or none if the run is interpreted.
    pub(in crate::fuse) fn for_run(&self, state: &ExpressionState, count: usize) -> Option<&Native> {
        if let Some(code) = self.code.get() {
            return code.as_ref().ok();
        }
        let is_worth_it = count.saturating_mul(state.program.steps.len()) >= WORTH_GENERATION
            || self.runs.load(Ordering::Relaxed) >= RUNS_BEFORE;
        if is_worth_it {
            return self.generated(state).as_ref().ok();
        }
        self.runs.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// Returns the machine code that an earlier run has got.
    pub(in crate::fuse) fn ready(&self) -> Option<&Native> {
        self.code.get().and_then(|code| code.as_ref().ok())
    }

    fn generated(&self, state: &ExpressionState) -> &Result<Native, Unsupported> {
        self.code.get_or_init(|| {
            let targets = targets(allowed());
            let code = match targets.is_empty() {
                true => Err(Unsupported::Target),
                false => Native::new(state, &targets),
            };
            if let Err(Unsupported::Memory(reason)) = &code {
                static REFUSED: Once = Once::new();
                REFUSED.call_once(|| {
                    log::info!("expressions on the CPU are interpreted: no executable memory: {reason}");
                });
            }
            code
        })
    }
}

impl Expression {
    /// Computes the outputs of few contiguous elements by machine code that an earlier run has got. Returns false, and
    /// writes nothing, if there is none.
    ///
    /// # Safety
    ///
    /// The operands are the inputs and then the outputs. Each has `count` elements of its dtype; the outputs are writable,
    /// nobody else accesses them, and none is an input.
    pub(crate) unsafe fn run_few_on_host(&self, operands: &[*mut u8], count: usize) -> bool {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller guarantees it.
        return unsafe { super::native::run_few(&self.0, operands, count) };
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = (operands, count);
            false
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) fn targets(backends: &[CpuBackend]) -> Vec<Target> {
    let target = |backend: &CpuBackend| match backend {
        CpuBackend::Avx512 => Some(Target::Avx512),
        CpuBackend::Avx2 => Some(Target::Avx2),
        CpuBackend::Interpreter => None,
    };
    backends.iter().filter_map(target).collect()
}

/// Generates an expression's machine code for one backend.
///
/// # Errors
///
/// The reason why there is none.
#[cfg(target_arch = "x86_64")]
pub(super) fn generate_for(state: &ExpressionState, backend: CpuBackend) -> Result<Native, String> {
    if !backend.is_available() {
        return Err(Unsupported::Target.to_string());
    }
    Native::new(state, &targets(&[backend])).map_err(|reason| reason.to_string())
}

/// Returns the listing of the machine code of an expression's larger runs, or none if they are interpreted.
pub(in crate::fuse) fn listing(expression: &Expression) -> Option<String> {
    #[cfg(target_arch = "x86_64")]
    {
        let state = &*expression.0;
        // A system that gives no executable memory interprets the expression.
        let native = state.cpu_code.generated(state).as_ref().ok()?;
        Native::listing(state, &[native.target]).ok()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = expression;
        None
    }
}

/// Writes the backend of an expression's larger runs, with its reason.
pub(in crate::fuse) struct Described<'a>(pub(in crate::fuse) &'a Expression);

impl fmt::Display for Described<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(target_arch = "x86_64")]
        match self.0.0.cpu_code.generated(&self.0.0) {
            Ok(native) => write!(formatter, "{native}"),
            Err(reason) => write!(formatter, "interpreter ({reason})"),
        }
        #[cfg(not(target_arch = "x86_64"))]
        formatter.write_str("interpreter (the processor is no x86-64)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_a_backend_or_nothing() {
        let table = [
            (None, None),
            (Some(""), None),
            (Some("auto"), None),
            (Some(" avx2 "), Some(CpuBackend::Avx2)),
            (Some("avx512"), Some(CpuBackend::Avx512)),
            (Some("interpreter"), Some(CpuBackend::Interpreter)),
            (Some("AVX2"), None),
            (Some("1"), None),
        ];
        for (value, wanted) in table {
            assert_eq!(from_variable(value), wanted, "{value:?}");
        }
    }
}
