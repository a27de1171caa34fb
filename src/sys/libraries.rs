//! The libraries of this process, each loaded on first use and never unloaded.
//!
//! A failed load is retried on the next call, because the library may be installed or a variable set meanwhile. Only a
//! success is cached, and a search for the driver that found no file, until one of its circumstances changes ([`super::missing`]).

use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};

use once_cell::sync::OnceCell;

use super::cublas::libraryPropertyType;
use super::driver::CUresult;
use super::layout::{self, Candidate, Family, Override};
use super::linker;
use super::loader::{Failure, How, file_of, refused, taken};
use super::missing::Circumstances;
use super::report::{Attempt, LibraryReport, MissingSymbol, Report};
use super::status::driver_error;
use super::symbols::{Loaded, Symbol, call, call_raw, cuda_version};
use super::tables::{CublasApi, CublasLtApi, CuptiApi, DriverApi, NcclApi, NvrtcApi};
use crate::error::{DRIVER_NAME, Error};

/// The override of the driver's path.
const DRIVER_VARIABLE: &str = "SELVEDGE_LIBCUDA";

static DRIVER: OnceCell<DriverApi> = OnceCell::new();
static NVRTC: OnceCell<NvrtcApi> = OnceCell::new();
static CUBLAS: OnceCell<(CublasApi, CublasLtApi)> = OnceCell::new();
static NCCL: OnceCell<NcclApi> = OnceCell::new();
static CUPTI: OnceCell<CuptiApi> = OnceCell::new();

/// Returns the driver, loaded and initialised.
///
/// # Errors
///
/// [`Error::LibraryUnavailable`] with every path tried, [`Error::MissingSymbol`] if the driver is too old,
/// [`Error::NoDevice`] if it finds no device, or [`Error::Driver`] if `cuInit` fails for another reason.
#[inline]
pub fn driver() -> Result<&'static DriverApi, Error> {
    match DRIVER.get() {
        Some(api) => Ok(api),
        None => DRIVER.get_or_try_init(load_driver).map_err(|failure| failure.error),
    }
}

/// Returns the driver if it is loaded already. Never loads it, for paths such as `Drop`.
pub fn loaded_driver() -> Option<&'static DriverApi> {
    DRIVER.get()
}

/// Returns NVRTC.
///
/// # Errors
///
/// [`Error::LibraryUnavailable`] with every path tried, or [`Error::MissingSymbol`].
pub fn nvrtc() -> Result<&'static NvrtcApi, Error> {
    NVRTC.get_or_try_init(load_nvrtc).map_err(|failure| failure.error)
}

/// Returns cuBLAS.
///
/// # Errors
///
/// [`Error::LibraryUnavailable`] with every path tried, or [`Error::MissingSymbol`].
pub fn cublas() -> Result<&'static CublasApi, Error> {
    CUBLAS.get_or_try_init(load_cublas).map(|pair| &pair.0).map_err(|failure| failure.error)
}

/// Returns cuBLASLt, from the same folder as cuBLAS.
///
/// # Errors
///
/// [`Error::LibraryUnavailable`] with every path tried, or [`Error::MissingSymbol`].
pub fn cublaslt() -> Result<&'static CublasLtApi, Error> {
    CUBLAS.get_or_try_init(load_cublas).map(|pair| &pair.1).map_err(|failure| failure.error)
}

/// Returns NCCL.
///
/// # Errors
///
/// [`Error::LibraryUnavailable`] with every path tried, or [`Error::MissingSymbol`].
pub fn nccl() -> Result<&'static NcclApi, Error> {
    NCCL.get_or_try_init(load_nccl).map_err(|failure| failure.error)
}

/// Returns CUPTI.
///
/// # Errors
///
/// [`Error::LibraryUnavailable`] with every path tried, or [`Error::MissingSymbol`].
pub fn cupti() -> Result<&'static CuptiApi, Error> {
    CUPTI.get_or_try_init(load_cupti).map_err(|failure| failure.error)
}

impl DriverApi {
    /// The newest CUDA version that the driver supports, such as 12040 for 12.4.
    pub fn version(&self) -> i32 {
        self.loaded.number
    }

    /// Returns the driver's name of a code.
    pub(super) fn error_name(&self, code: CUresult) -> Option<String> {
        // SAFETY: the function returns a static string, or null for an unknown code.
        unsafe { static_text(code, self.cuGetErrorName().ok()?) }
    }

    /// Returns the driver's text for a code.
    pub(super) fn error_text(&self, code: CUresult) -> Option<String> {
        // SAFETY: as above.
        unsafe { static_text(code, self.cuGetErrorString().ok()?) }
    }
}

/// # Safety
///
/// `ask` succeeds only with a static string or null.
unsafe fn static_text(
    code: CUresult,
    ask: unsafe extern "C" fn(CUresult, *mut *const c_char) -> CUresult,
) -> Option<String> {
    let mut text: *const c_char = std::ptr::null();
    // SAFETY: the pointer outlives the call, and the caller vouches for the result.
    unsafe {
        let status = ask(code, &mut text);
        let known = status == CUresult::CUDA_SUCCESS && !text.is_null();
        known.then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    }
}

fn environment(variable: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(variable)
}

/// The result of starting a candidate driver.
enum Start {
    Ready(Box<DriverApi>),
    /// The library is not a driver, for this reason.
    NotADriver(String),
    Failed(Box<Failure>),
}

fn load_driver() -> Result<DriverApi, Box<Failure>> {
    let circumstances = Circumstances::of_driver(DRIVER_VARIABLE, &environment);
    if let Some(failure) = circumstances.last_failure() {
        return Err(failure);
    }
    search_driver().inspect_err(|failure| circumstances.remember(failure))
}

fn search_driver() -> Result<DriverApi, Box<Failure>> {
    let mut attempts = Vec::new();
    let candidates = match layout::override_of(DRIVER_VARIABLE, &environment) {
        Override::Unset => layout::driver_candidates(),
        given => overridden(given, DRIVER_VARIABLE, &mut attempts, |path| Candidate {
            how: How::File(path.to_owned()),
            source: DRIVER_VARIABLE.to_owned(),
            companion: None,
            refused: None,
            explicit: true,
        }),
    };
    for candidate in candidates {
        let library = match candidate.how.open() {
            Ok(library) => library,
            Err(reason) => {
                attempts.push(refused(candidate.how.path(), candidate.source, reason));
                continue;
            }
        };
        let mut loaded = Loaded::new(library, DRIVER_NAME, candidate.how.path());
        loaded.path = real_path(&loaded, "cuInit");
        match start_driver(loaded) {
            Start::Ready(mut api) => {
                attempts.push(taken(
                    candidate.how.path(),
                    candidate.source,
                    format!("taken, {}", api.loaded.version),
                ));
                api.loaded.attempts = attempts;
                return Ok(*api);
            }
            Start::NotADriver(reason) => {
                attempts.push(refused(candidate.how.path(), candidate.source, reason))
            }
            Start::Failed(mut failure) => {
                attempts.push(taken(candidate.how.path(), candidate.source, failure.error.to_string()));
                failure.attempts = attempts;
                return Err(failure);
            }
        }
    }
    Err(Failure::unavailable(DRIVER_NAME, attempts))
}

/// Initialises a driver and checks its required functions.
///
/// `cuInit` goes first: only there does a toolkit's stub, which has most functions, identify itself.
fn start_driver(mut loaded: Loaded) -> Start {
    loaded.use_driver_lookup();
    let mut api = DriverApi::new(loaded);
    // SAFETY: `cuInit` takes no pointer and is the first call.
    let status = match unsafe { call_raw!(api, cuInit(0)) } {
        Ok(status) => status,
        Err(_) => return Start::NotADriver("is no driver: it has no cuInit".to_owned()),
    };
    if status == CUresult::CUDA_ERROR_STUB_LIBRARY {
        return Start::NotADriver(
            "is the toolkit's stub for linking, not a driver (cuInit says 34)".to_owned(),
        );
    }
    let mut version = 0;
    // SAFETY: the pointer outlives the call, which works before `cuInit` too.
    match unsafe { call!(api, cuDriverGetVersion(&mut version)) } {
        Ok(()) => {
            api.loaded.number = version;
            api.loaded.version = format!("CUDA {}", cuda_version(version));
        }
        Err(error) => return Start::Failed(failure(&api.loaded, error)),
    }
    if let Some(error) = first_missing(&api.loaded, DriverApi::SYMBOLS) {
        return Start::Failed(failure(&api.loaded, error));
    }
    match status {
        CUresult::CUDA_SUCCESS => Start::Ready(Box::new(api)),
        CUresult::CUDA_ERROR_NO_DEVICE => {
            let visible = match std::env::var("CUDA_VISIBLE_DEVICES") {
                Ok(value) => format!("; CUDA_VISIBLE_DEVICES is '{value}'"),
                Err(_) => String::new(),
            };
            let error = Error::NoDevice {
                wanted: "that CUDA can use".to_owned(),
                found: format!(
                    "the driver ({}, {}) finds none: cuInit gave CUDA_ERROR_NO_DEVICE{visible}",
                    api.loaded.version, api.loaded.path
                ),
            };
            Start::Failed(failure(&api.loaded, error))
        }
        status => Start::Failed(failure(&api.loaded, driver_error("cuInit", status, String::new()))),
    }
}

fn failure(loaded: &Loaded, error: Error) -> Box<Failure> {
    Box::new(Failure {
        error,
        attempts: Vec::new(),
        found: Some((loaded.path.clone(), loaded.version.clone())),
    })
}

/// Returns the error for the first required function that a library lacks.
fn first_missing(loaded: &Loaded, symbols: &[Symbol]) -> Option<Error> {
    let missing = symbols.iter().find(|symbol| symbol.required && loaded.find(symbol).is_none())?;
    Some(loaded.missing(missing))
}

/// Returns the candidate of a set override; `None`, with the reason among the attempts, if it names no file.
fn overridden(
    given: Override,
    variable: &'static str,
    attempts: &mut Vec<Attempt>,
    candidate: impl FnOnce(&Path) -> Candidate,
) -> Vec<Candidate> {
    match given {
        Override::Unset => {}
        Override::Absent => attempts.push(refused("none", variable, "the variable asks for none")),
        Override::Relative(path) => {
            attempts.push(refused(
                path,
                variable,
                "refused: the path is relative; give an absolute path, or none",
            ));
        }
        Override::File(path) => return vec![candidate(&path)],
    }
    Vec::new()
}

/// Returns the file of a library that the linker found by name, if the system reports it.
fn real_path(loaded: &Loaded, symbol: &str) -> String {
    if Path::new(&loaded.path).is_absolute() {
        return loaded.path.clone();
    }
    let file = loaded.exported(symbol).and_then(file_of);
    file.map_or_else(|| loaded.path.clone(), |file| file.display().to_string())
}

/// Returns the driver's version, for the version checks of the other libraries; `None` without a driver.
fn driver_version() -> Option<i32> {
    driver().ok().map(DriverApi::version)
}

/// Loads a library without companion, and queries its version.
fn load<A>(
    family: &Family,
    symbols: &[Symbol],
    api: impl Fn(Loaded) -> A,
    loaded: impl Fn(&mut A) -> &mut Loaded,
    version: impl Fn(&A) -> Result<(i32, String), Error>,
) -> Result<A, Box<Failure>> {
    let first = symbols.first().map_or("", |symbol| symbol.spelling);
    search(family, |candidate| {
        let mut library = Loaded::new(candidate.how.open()?, family.name, candidate.how.path());
        library.path = real_path(&library, first);
        let mut api = api(library);
        if let Some(error) = first_missing(loaded(&mut api), symbols) {
            return Err(error.to_string());
        }
        let (number, words) = version(&api).map_err(|error| error.to_string())?;
        loaded(&mut api).number = number;
        loaded(&mut api).version = words.clone();
        Ok((api, words))
    })
    .map(|(mut api, attempts)| {
        loaded(&mut api).attempts = attempts;
        api
    })
}

/// Tries the candidates of a library in order and returns the first that opens.
fn search<A>(
    family: &Family,
    open: impl Fn(&Candidate) -> Result<(A, String), String>,
) -> Result<(A, Vec<Attempt>), Box<Failure>> {
    let mut attempts = Vec::new();
    let candidates = match layout::override_of(family.variable, &environment) {
        Override::Unset => layout::candidates(family, driver_version(), &environment),
        given => overridden(given, family.variable, &mut attempts, |path| layout::explicit(family, path)),
    };
    for candidate in candidates {
        let result = match &candidate.refused {
            Some(reason) => Err(reason.clone()),
            None => open(&candidate),
        };
        match result {
            Ok((api, words)) => {
                attempts.push(taken(candidate.how.path(), candidate.source, format!("taken, {words}")));
                return Ok((api, attempts));
            }
            Err(reason) => attempts.push(refused(candidate.how.path(), candidate.source, reason)),
        }
    }
    Err(Failure::unavailable(family.name, attempts))
}

fn load_nvrtc() -> Result<NvrtcApi, Box<Failure>> {
    let version = |api: &NvrtcApi| {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the pointers outlive the call.
        unsafe { call!(api, nvrtcVersion(&mut major, &mut minor)) }?;
        Ok((major * 1000 + minor * 10, format!("{major}.{minor}")))
    };
    let api = load(&layout::NVRTC, NvrtcApi::SYMBOLS, NvrtcApi::new, |api| &mut api.loaded, version)?;
    preload_builtins(&api);
    Ok(api)
}

/// Returns the file that NVRTC is, or would be, loaded from; `None` if only loading can tell.
///
/// The search tries the same candidates in the same order as a load, and takes the first that exists, where a load
/// takes the first that opens. It can therefore be wrong about a file that does not open, or about the linker's result
/// (see `linker.rs`), but not about a library that is already loaded.
///
/// The first result is cached, as a load is, until there is a load.
pub fn nvrtc_file() -> Option<PathBuf> {
    static PREDICTED: OnceCell<PathBuf> = OnceCell::new();
    match NVRTC.get() {
        Some(api) => Some(PathBuf::from(&api.loaded.path)),
        None => PREDICTED.get_or_try_init(|| predict_nvrtc().ok_or(())).ok().cloned(),
    }
}

fn predict_nvrtc() -> Option<PathBuf> {
    let candidates = match layout::override_of(layout::NVRTC.variable, &environment) {
        Override::File(path) => return Some(path),
        Override::Absent | Override::Relative(_) => return None,
        Override::Unset => layout::candidates(&layout::NVRTC, driver_version(), &environment),
    };
    let allowed = candidates.into_iter().filter(|candidate| candidate.refused.is_none());
    let mut there = allowed.filter_map(|candidate| match &candidate.how {
        How::File(path) => path.exists().then(|| path.clone()),
        How::Linker(name) => linker::find(name, &environment),
        How::AlreadyLoaded(_) => {
            let loaded = Loaded::new(candidate.how.open().ok()?, layout::NVRTC.name, candidate.how.path());
            loaded.exported("nvrtcVersion").and_then(file_of)
        }
    });
    there.next()
}

/// Opens `libnvrtc-builtins` from NVRTC's own folder. NVRTC opens it by bare name at its first compilation. A wheel
/// without run path (13.0) then finds only a copy that is already loaded. If the file is missing, NVRTC reports the
/// error.
fn preload_builtins(api: &NvrtcApi) {
    let (major, minor) = (api.loaded.number / 1000, api.loaded.number % 1000 / 10);
    let file = match cfg!(windows) {
        true => format!("nvrtc-builtins64_{major}{minor}.dll"),
        false => format!("libnvrtc-builtins.so.{major}.{minor}"),
    };
    let path = Path::new(&api.loaded.path).with_file_name(file);
    if path.is_absolute()
        && let Ok(library) = How::File(path).open()
    {
        // Never unloaded, like NVRTC.
        std::mem::forget(library);
    }
}

fn load_cublas() -> Result<(CublasApi, CublasLtApi), Box<Failure>> {
    let ((mut cublas, mut cublaslt), attempts) = search(&layout::CUBLAS, open_cublas)?;
    cublaslt.loaded.attempts = attempts.clone();
    cublas.loaded.attempts = attempts;
    Ok((cublas, cublaslt))
}

/// Opens cuBLASLt first, then cuBLAS from the same folder. cuBLAS opens cuBLASLt by its bare name, and with one of
/// another release it fails with undefined symbols or wrong statuses.
fn open_cublas(candidate: &Candidate) -> Result<((CublasApi, CublasLtApi), String), String> {
    let companion = candidate.companion.as_ref().ok_or("no cuBLASLt is named for it")?;
    let library = companion.open().map_err(|reason| format!("its {}: {reason}", companion.path()))?;
    let mut lt = Loaded::new(library, "cuBLASLt", companion.path());
    lt.path = real_path(&lt, "cublasLtGetVersion");
    let how = beside(&lt.path, &candidate.how);
    let mut main = Loaded::new(how.open()?, "cuBLAS", how.path());
    main.path = real_path(&main, "cublasGetProperty");

    let mut lt = CublasLtApi::new(lt);
    let mut main = CublasApi::new(main);
    if let Some(error) = first_missing(&lt.loaded, CublasLtApi::SYMBOLS)
        .or_else(|| first_missing(&main.loaded, CublasApi::SYMBOLS))
    {
        return Err(error.to_string());
    }
    let property = |which| -> Result<i32, Error> {
        let mut value = 0;
        // SAFETY: the pointer outlives the call.
        unsafe { call!(main, cublasGetProperty(which, &mut value)) }?;
        Ok(value)
    };
    let version = property(libraryPropertyType::MAJOR_VERSION).and_then(|major| {
        let minor = property(libraryPropertyType::MINOR_VERSION)?;
        Ok([major, minor, property(libraryPropertyType::PATCH_LEVEL)?])
    });
    let [major, minor, patch] = version.map_err(|error| error.to_string())?;
    // SAFETY: the function takes no arguments.
    let lt_number = unsafe { lt.cublasLtGetVersion().map_err(|error| error.to_string())?() } as i32;

    let number = major * 10000 + minor * 100 + patch;
    main.loaded.number = number;
    main.loaded.version = format!("{major}.{minor}.{patch}");
    lt.loaded.number = lt_number;
    lt.loaded.version = format!("{}.{}.{}", lt_number / 10000, lt_number / 100 % 100, lt_number % 100);
    if number != lt_number {
        return Err(format!(
            "refused: cuBLAS is {} but the cuBLASLt that it was given is {} ({})",
            main.loaded.version, lt.loaded.version, lt.loaded.path
        ));
    }
    let words = main.loaded.version.clone();
    Ok(((main, lt), words))
}

/// Returns the library next to a companion that the linker (or another part of the process) chose.
fn beside(companion: &str, how: &How) -> How {
    let name = match how {
        How::AlreadyLoaded(name) | How::Linker(name) => name,
        How::File(_) => return how.clone(),
    };
    let file: PathBuf = Path::new(companion).with_file_name(name);
    if file.is_absolute() && file.exists() { How::File(file) } else { how.clone() }
}

fn load_nccl() -> Result<NcclApi, Box<Failure>> {
    let version = |api: &NcclApi| {
        let mut code = 0;
        // SAFETY: the pointer outlives the call.
        unsafe { call!(api, ncclGetVersion(&mut code)) }?;
        // Until 2.8 the minor version had one digit less.
        let words = match code {
            ..10000 => format!("{}.{}.{}", code / 1000, code / 100 % 10, code % 100),
            _ => format!("{}.{}.{}", code / 10000, code / 100 % 100, code % 100),
        };
        Ok((code, words))
    };
    load(&layout::NCCL, NcclApi::SYMBOLS, NcclApi::new, |api| &mut api.loaded, version)
}

fn load_cupti() -> Result<CuptiApi, Box<Failure>> {
    let version = |api: &CuptiApi| {
        let mut number = 0;
        // SAFETY: the pointer outlives the call.
        unsafe { call!(api, cuptiGetVersion(&mut number)) }?;
        // From CUDA 13 on the number has the version of CUDA.
        let words = match number {
            ..100_000 => format!("API {number}"),
            _ => format!("{}.{}.{}", number / 10000, number / 100 % 100, number % 100),
        };
        Ok((i32::try_from(number).unwrap_or(i32::MAX), words))
    };
    load(&layout::CUPTI, CuptiApi::SYMBOLS, CuptiApi::new, |api| &mut api.loaded, version)
}

/// Returns the state of every library, with all attempts. Loads the ones that are not loaded yet.
pub fn report() -> Report {
    let driver = DRIVER.get_or_try_init(load_driver).map(|api| &api.loaded);
    let driver = library_report(DRIVER_NAME, driver, DriverApi::SYMBOLS);
    let nvrtc = NVRTC.get_or_try_init(load_nvrtc).map(|api| &api.loaded);
    let nvrtc = library_report("NVRTC", nvrtc, NvrtcApi::SYMBOLS);
    let cublas = CUBLAS.get_or_try_init(load_cublas).map(|pair| &pair.0.loaded);
    let cublas = library_report("cuBLAS", cublas, CublasApi::SYMBOLS);
    let cublaslt = CUBLAS.get_or_try_init(load_cublas).map(|pair| &pair.1.loaded);
    let cublaslt = library_report("cuBLASLt", cublaslt, CublasLtApi::SYMBOLS);
    let nccl = NCCL.get_or_try_init(load_nccl).map(|api| &api.loaded);
    let nccl = library_report("NCCL", nccl, NcclApi::SYMBOLS);
    let cupti = CUPTI.get_or_try_init(load_cupti).map(|api| &api.loaded);
    let cupti = library_report("CUPTI", cupti, CuptiApi::SYMBOLS);
    Report { libraries: vec![driver, nvrtc, cublas, cublaslt, nccl, cupti] }
}

fn library_report(
    name: &'static str,
    result: Result<&Loaded, Box<Failure>>,
    symbols: &[Symbol],
) -> LibraryReport {
    match result {
        Ok(loaded) => LibraryReport {
            name,
            path: Some(loaded.path.clone()),
            version: Some(loaded.version.clone()).filter(|version| !version.is_empty()),
            usable: true,
            problem: None,
            attempts: loaded.attempts.clone(),
            missing: symbols
                .iter()
                .filter(|symbol| loaded.find(symbol).is_none())
                .map(|symbol| MissingSymbol {
                    name: symbol.name,
                    needs: cuda_version(symbol.version),
                    required: symbol.required,
                })
                .collect(),
        },
        Err(failure) => {
            let (path, version) = failure.found.unzip();
            LibraryReport {
                name,
                path,
                version: version.filter(|version| !version.is_empty()),
                usable: false,
                problem: Some(failure.error.to_string()),
                attempts: failure.attempts,
                missing: Vec::new(),
            }
        }
    }
}
