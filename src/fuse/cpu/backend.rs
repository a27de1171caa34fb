//! The choice of the code that runs expressions on the CPU: machine code for AVX-512 or AVX2, or the interpreter.
//!
//! `SELVEDGE_CPU` limits it. An expression gets machine code when a run is large enough to pay for its generation, or at
//! its third run. Results do not depend on the choice.

use std::fmt;
#[cfg(target_arch = "x86_64")]
use std::sync::Arc;
use std::sync::OnceLock;
#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

#[cfg(target_arch = "x86_64")]
use super::native::{Native, Target, Unsupported};
use crate::fuse::plan::compiled_expression::CompiledExpression;

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

/// The machine code of an expression, once it is worth it. Clones share it.
#[derive(Clone, Default)]
pub(in crate::fuse) struct CpuCode {
    #[cfg(target_arch = "x86_64")]
    cache: Arc<CodeCache>,
}

#[cfg(target_arch = "x86_64")]
#[derive(Default)]
struct CodeCache {
    runs: AtomicU32,
    code: OnceLock<Result<Native, Unsupported>>,
}

#[cfg(target_arch = "x86_64")]
impl CpuCode {
    /// Returns the machine code for a run of `count` elements, or none if the run is interpreted.
    pub(in crate::fuse) fn for_run(&self, compiled: &CompiledExpression, count: usize) -> Option<&Native> {
        if let Some(code) = self.cache.code.get() {
            return code.as_ref().ok();
        }
        let is_worth_it = count.saturating_mul(compiled.program.steps.len()) >= WORTH_GENERATION
            || self.cache.runs.load(Ordering::Relaxed) >= RUNS_BEFORE;
        if is_worth_it {
            return self.generated(compiled).as_ref().ok();
        }
        self.cache.runs.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// Returns the machine code that an earlier run has got.
    pub(in crate::fuse) fn ready(&self) -> Option<&Native> {
        self.cache.code.get().and_then(|code| code.as_ref().ok())
    }

    fn generated(&self, compiled: &CompiledExpression) -> &Result<Native, Unsupported> {
        self.cache.code.get_or_init(|| {
            let targets = targets(allowed());
            let code = match targets.is_empty() {
                true => Err(Unsupported::Target),
                false => Native::new(compiled, &targets),
            };
            if let Err(reason) = &code {
                report(reason);
            }
            code
        })
    }
}

/// Logs the first expression that is too long for machine code, and the first one that the system refuses memory. Other
/// reasons are known beforehand: [`allowed`] logs the instruction sets, and an instruction without a vector form is a property
/// of its operation. Returns whether it has logged.
#[cfg(target_arch = "x86_64")]
fn report(reason: &Unsupported) -> bool {
    static REFUSED: AtomicBool = AtomicBool::new(false);
    static TOO_LONG: AtomicBool = AtomicBool::new(false);
    let (reported, subject) = match reason {
        Unsupported::Memory(_) => (&REFUSED, "expressions on the CPU are"),
        Unsupported::Length => (&TOO_LONG, "a long expression on the CPU is"),
        _ => return false,
    };
    let is_first = !reported.swap(true, Ordering::Relaxed);
    if is_first {
        log::info!("{subject} interpreted: {reason}");
    }
    is_first
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
pub(super) fn generate_for(compiled: &CompiledExpression, backend: CpuBackend) -> Result<Native, String> {
    if !backend.is_available() {
        return Err(Unsupported::Target.to_string());
    }
    Native::new(compiled, &targets(&[backend])).map_err(|reason| reason.to_string())
}

/// Returns the listing of the machine code of an expression's larger runs, or none if they are interpreted.
pub(in crate::fuse) fn listing(compiled: &CompiledExpression, code: &CpuCode) -> Option<String> {
    #[cfg(target_arch = "x86_64")]
    {
        // A system that gives no executable memory interprets the expression.
        let native = code.generated(compiled).as_ref().ok()?;
        Native::listing(compiled, &[native.target]).ok()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (compiled, code);
        None
    }
}

/// Writes the backend of an expression's larger runs, with its reason.
pub(in crate::fuse) struct Described<'a>(
    pub(in crate::fuse) &'a CompiledExpression,
    pub(in crate::fuse) &'a CpuCode,
);

impl fmt::Display for Described<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(target_arch = "x86_64")]
        match self.1.generated(self.0) {
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

    /// Returns an expression of so many products, no two of which are equal.
    #[cfg(target_arch = "x86_64")]
    fn products(count: usize) -> CompiledExpression {
        let graph = crate::fuse::Graph::new();
        let x = graph.input(crate::types::DType::F32);
        let product = (0..count).fold(x, |product, _| product * x + x);
        CompiledExpression::of(&graph, &[product]).unwrap()
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_reason_for_the_interpreter_is_logged_once_unless_it_is_known() {
        let refused = Unsupported::Memory("for the test".to_owned());
        assert!(!report(&Unsupported::Target) && !report(&Unsupported::Coordinates));
        // Other tests may have been first.
        report(&refused);
        report(&Unsupported::Length);
        assert!(!report(&refused) && !report(&Unsupported::Length));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_program_that_is_too_long_is_interpreted() {
        if targets(allowed()).is_empty() {
            return;
        }
        for (count, is_long) in [(20, false), (5000, true)] {
            let (expression, code) = (products(count), CpuCode::default());
            assert_eq!(
                matches!(code.generated(&expression), Err(Unsupported::Length)),
                is_long,
                "{count} products"
            );
            let (elements, mut found) = ([0.5f32, -0.25, 0.0], [0.0f32; 3]);
            let layout = crate::types::Layout::contiguous(&[3]).unwrap();
            let input = crate::fuse::HostInput::new(&elements, layout).unwrap();
            let output = crate::fuse::HostOutput::new(&mut found, layout).unwrap();
            crate::fuse::cpu::run_host(&expression, &code, &[input], &[], &mut [output]).unwrap();
            let wanted = elements.map(|x| (0..count).fold(x, |product, _| product * x + x));
            assert_eq!(found, wanted, "{count} products");
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_processor_without_avx2_has_no_machine_code() {
        let expression = products(3);
        assert_eq!(targets(&[CpuBackend::Interpreter]), []);
        let cache = CodeCache { code: OnceLock::from(Err(Unsupported::Target)), ..CodeCache::default() };
        let code = CpuCode { cache: Arc::new(cache) };
        assert!(code.for_run(&expression, 1 << 20).is_none() && code.ready().is_none());
    }

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
