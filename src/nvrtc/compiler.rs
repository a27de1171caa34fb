//! Calls of NVRTC.
//!
//! Its functions may be called from several threads at once if no two share a program (NVRTC's documentation, "Thread
//! safety"). A [`Session`] never leaves the call that created it, so nothing here locks.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;

use super::diagnostics;
use super::program::Program;
use super::target::{Target, list};
use crate::error::{CompilationDetails, Error, Result};
use crate::sys::nvrtc::{nvrtcProgram, nvrtcResult};
use crate::sys::{NvrtcApi, Status, call, call_raw};

/// The default dialect, which is NVRTC's own from 12.0 on. NVRTC 11 defaults to C++03.
const DIALECT: &str = "--std=c++17";

/// The result of a compilation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Output {
    /// A cubin, or PTX without the terminating zero.
    pub(super) image: Vec<u8>,
    /// The PTX that a cubin was assembled from; empty if the image is the PTX.
    pub(super) ptx: Vec<u8>,
    /// The compiler's output; may be empty.
    pub(super) log: String,
    /// Each expression with its lowered name.
    pub(super) names: Vec<(String, String)>,
}

/// Returns NVRTC's version.
pub(super) fn version(api: &NvrtcApi) -> (i32, i32) {
    (api.loaded.number / 1000, api.loaded.number % 1000 / 10)
}

/// Returns the compute capabilities that NVRTC compiles for, times ten, ascending.
pub(super) fn architectures(api: &NvrtcApi) -> Result<Vec<u32>> {
    let mut count: c_int = 0;
    // SAFETY: the pointer outlives the call.
    unsafe { call!(api, nvrtcGetNumSupportedArchs(&mut count)) }?;
    let mut numbers: Vec<c_int> = vec![0; usize::try_from(count).unwrap_or(0)];
    // SAFETY: the buffer has the count just returned, which is fixed for a library.
    unsafe { call!(api, nvrtcGetSupportedArchs(numbers.as_mut_ptr())) }?;
    let mut architectures: Vec<u32> =
        numbers.into_iter().filter_map(|number| u32::try_from(number).ok()).collect();
    architectures.sort_unstable();
    Ok(architectures)
}

/// Returns the ISA of the PTX that NVRTC generates. No function returns it, so it is read from a compiled program.
pub(super) fn isa(api: &'static NvrtcApi) -> Result<(i32, i32)> {
    let newest = architectures(api)?.into_iter().max().unwrap_or_default();
    let target: Target = format!("compute_{newest}").parse()?;
    let output = compile(api, &Program::new("empty.cu", ""), target)?;
    let text = String::from_utf8_lossy(&output.image);
    let version = text.lines().find_map(|line| pair(line.strip_prefix(".version ")?));
    version.ok_or_else(|| Error::DamagedImage {
        kind: "PTX",
        found: "no .version in what NVRTC wrote".to_owned(),
    })
}

/// Parses `8.0`.
pub(super) fn pair(text: &str) -> Option<(i32, i32)> {
    let (major, minor) = text.trim().split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Compiles a program.
///
/// # Errors
///
/// [`Error::Compilation`] with the log, [`Error::InvalidArgument`] for text with a zero byte or a target that this
/// NVRTC does not know, [`Error::Library`] if NVRTC fails without a log.
pub(super) fn compile(api: &'static NvrtcApi, program: &Program, target: Target) -> Result<Output> {
    let known = architectures(api)?;
    if !known.contains(&target.architecture()) {
        let wanted = format!("NVRTC {} compiles for {}", api.loaded.version, list(&known));
        return Err(Error::invalid("Program::compile", format!("target {target}"), wanted));
    }
    let session = Session::new(api, program)?;
    let expressions = strings("a name expression", program.expressions.iter().map(String::as_str))?;
    for expression in &expressions {
        // SAFETY: the program is ours and has not been compiled, and the text is terminated.
        unsafe { call!(api, nvrtcAddNameExpression(session.program, expression.as_ptr())) }?;
    }
    let architecture = format!("--gpu-architecture={target}");
    let mut options: Vec<&str> = vec![&architecture];
    if !program.names_dialect() {
        options.push(DIALECT);
    }
    options.extend(program.options.iter().map(String::as_str));
    let options = strings("an option", options.into_iter())?;
    let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
    // SAFETY: the program is ours; the array has that many pointers, to terminated texts that outlive the call.
    let status = unsafe {
        call_raw!(api, nvrtcCompileProgram(session.program, pointers.len() as c_int, pointers.as_ptr()))
    }?;
    let log = session.log()?;
    let report = diagnostics::annotate(&log, |file| program.text_of(file));
    if let Err(error) = status.check("nvrtcCompileProgram") {
        if report.log.is_empty() {
            return Err(error);
        }
        let details = CompilationDetails {
            target: target.to_string(),
            version: api.loaded.version.clone(),
            file: report.file,
            line: report.line,
            column: report.column,
        };
        let (name, log) = (program.name.clone(), report.log);
        return Err(Error::Compilation { name, log, details: Box::new(details) });
    }
    let names = program.expressions.iter().zip(&expressions);
    let names = names
        .map(|(text, expression)| Ok((text.clone(), session.lowered_name(expression)?)))
        .collect::<Result<Vec<_>>>()?;
    let ptx = session.ptx()?;
    let (image, ptx) = if target.is_ptx() { (ptx, Vec::new()) } else { (session.cubin()?, ptx) };
    if image.is_empty() {
        return Err(Error::invalid(
            "Program::compile",
            format!("options {:?}, with which NVRTC writes no image for {target}", program.options),
            "options that produce PTX or a cubin; remove those for link-time optimisation",
        ));
    }
    Ok(Output { image, ptx, log: report.log, names })
}

/// Converts texts to C strings.
fn strings<'a>(what: &'static str, texts: impl Iterator<Item = &'a str>) -> Result<Vec<CString>> {
    texts.map(|text| string(what, text)).collect()
}

fn string(what: &'static str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|error| {
        Error::invalid(
            "Program::compile",
            format!("{what} with a zero at byte {}", error.nul_position()),
            "text without zeros",
        )
    })
}

/// An NVRTC program, destroyed on drop.
struct Session {
    api: &'static NvrtcApi,
    program: nvrtcProgram,
}

impl Session {
    fn new(api: &'static NvrtcApi, program: &Program) -> Result<Session> {
        let name = string("a name", &program.name)?;
        let source = string("a source", &program.source)?;
        let names = strings("a header's name", program.all_headers().map(|(name, _)| name))?;
        let texts = strings("a header", program.all_headers().map(|(_, text)| text))?;
        let names: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let texts: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
        let mut raw: nvrtcProgram = ptr::null_mut();
        let count = names.len() as c_int;
        // SAFETY: all texts are terminated and outlive the call, which copies them; both lists have the stated length.
        unsafe {
            call!(
                api,
                nvrtcCreateProgram(
                    &mut raw,
                    source.as_ptr(),
                    name.as_ptr(),
                    count,
                    texts.as_ptr(),
                    names.as_ptr()
                )
            )
        }?;
        Ok(Session { api, program: raw })
    }

    /// Returns the compiler's output. Paths and source lines may be in any encoding.
    fn log(&self) -> Result<String> {
        let mut size = 0;
        // SAFETY: the program is ours and the pointer outlives the call.
        unsafe { call!(self.api, nvrtcGetProgramLogSize(self.program, &mut size)) }?;
        let bytes = self.fill(size, |buffer| {
            // SAFETY: the buffer has the size just returned.
            unsafe { call!(self.api, nvrtcGetProgramLog(self.program, buffer)) }
        })?;
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned())
    }

    fn ptx(&self) -> Result<Vec<u8>> {
        let mut size = 0;
        // SAFETY: the program is ours and the pointer outlives the call.
        unsafe { call!(self.api, nvrtcGetPTXSize(self.program, &mut size)) }?;
        let mut text = self.fill(size, |buffer| {
            // SAFETY: the buffer has the size just returned.
            unsafe { call!(self.api, nvrtcGetPTX(self.program, buffer)) }
        })?;
        while text.last() == Some(&0) {
            text.pop();
        }
        Ok(text)
    }

    fn cubin(&self) -> Result<Vec<u8>> {
        let mut size = 0;
        // SAFETY: the program is ours and the pointer outlives the call.
        unsafe { call!(self.api, nvrtcGetCUBINSize(self.program, &mut size)) }?;
        self.fill(size, |buffer| {
            // SAFETY: the buffer has the size just returned.
            unsafe { call!(self.api, nvrtcGetCUBIN(self.program, buffer)) }
        })
    }

    fn fill(&self, size: usize, get: impl FnOnce(*mut c_char) -> Result<()>) -> Result<Vec<u8>> {
        let mut bytes = vec![0_u8; size];
        get(bytes.as_mut_ptr().cast())?;
        Ok(bytes)
    }

    fn lowered_name(&self, expression: &CStr) -> Result<String> {
        let mut name: *const c_char = ptr::null();
        // SAFETY: the program is ours and compiled, and the pointer outlives the call.
        unsafe { call!(self.api, nvrtcGetLoweredName(self.program, expression.as_ptr(), &mut name)) }?;
        if name.is_null() {
            return Err(nvrtcResult::NVRTC_ERROR_INTERNAL_ERROR
                .check("nvrtcGetLoweredName")
                .err()
                .unwrap_or_else(|| {
                    Error::invalid(
                        "nvrtcGetLoweredName",
                        "no name",
                        "the name of an expression that was added",
                    )
                }));
        }
        // SAFETY: the text is terminated, and lives as long as the program.
        Ok(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: the program is ours and nothing uses it any more. A failure only leaks memory.
        let _ = unsafe { call!(self.api, nvrtcDestroyProgram(&mut self.program)) };
    }
}
