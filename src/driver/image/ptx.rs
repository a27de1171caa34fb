//! A reader of PTX text: its header, its entries with their parameters, and its variables.
//!
//! The reader parses module scope only, and skips function bodies and debug sections by their braces. It skips unknown
//! directives token by token, so newer PTX and that of other compilers (NVCC, NVRTC, Clang, Triton, Numba, this crate)
//! is read as well. The text ends at its first NUL, as it does for the driver.

use super::ascii::BYTE_ORDER_MARK;
use super::{
    ArchitectureSuffix, ImageEntry, ImageInfo, ImageKind, KernelInfo, Parameter, ParameterKind, Result,
    TargetArchitecture, damaged,
};

const KIND: &str = "PTX";

/// Returns whether the first directive is `.version`, as the ISA requires.
pub(super) fn is_ptx(bytes: &[u8]) -> bool {
    matches!(PtxTokens::new(bytes).next(), Ok(Some(PtxToken::Word(b".version"))))
}

pub(super) fn parse(bytes: &[u8]) -> Result<ImageInfo> {
    let mut module = Module::default();
    let mut tokens = PtxTokens::new(bytes);
    let end = tokens.text.len();
    if bytes.iter().skip(end).any(|byte| *byte != 0) {
        return damaged(KIND, format!("a NUL at byte {end}, and more text behind it"));
    }
    module.read(&mut tokens)?;
    let Some(isa) = module.isa else { return damaged(KIND, "no .version that can be read") };
    let Some(target) = module.target else {
        return damaged(KIND, "no .target with an architecture such as sm_80");
    };
    let entry = ImageEntry { kind: ImageKind::Ptx, target, isa: Some(isa), toolkit: None };
    let mut info = ImageInfo::single(entry);
    info.kernels = module.kernels;
    info.globals = module.globals;
    info.keep_first_names();
    Ok(info)
}

#[derive(Default)]
struct Module {
    isa: Option<(i32, i32)>,
    target: Option<TargetArchitecture>,
    kernels: Vec<KernelInfo>,
    globals: Vec<String>,
}

impl Module {
    fn read(&mut self, tokens: &mut PtxTokens<'_>) -> Result<()> {
        // Set by `.extern`: the following symbol is only declared here.
        let mut declared = false;
        while let Some(token) = tokens.next()? {
            match token {
                PtxToken::Word(b".version") => self.isa = tokens.word()?.and_then(version),
                PtxToken::Word(b".target") => self.read_target(tokens)?,
                PtxToken::Word(b".extern") => declared = true,
                PtxToken::Word(b".visible" | b".weak" | b".common") => declared = false,
                PtxToken::Word(b".entry") => {
                    let (kernel, defined) = read_entry(tokens)?;
                    if defined {
                        self.kernels.push(kernel);
                    }
                    declared = false;
                }
                PtxToken::Word(b".func" | b".alias") => {
                    tokens.skip_function()?;
                    declared = false;
                }
                PtxToken::Word(b".global" | b".const") => {
                    self.read_variables(tokens, declared)?;
                    declared = false;
                }
                PtxToken::Open(b'{') => tokens.skip_block()?,
                PtxToken::Close(b'}') => return damaged(KIND, tokens.at("a '}' that closes nothing")),
                PtxToken::Semicolon => declared = false,
                _ => {}
            }
        }
        Ok(())
    }

    /// `.target sm_90a, debug`: one architecture, and words that do not matter here.
    fn read_target(&mut self, tokens: &mut PtxTokens<'_>) -> Result<()> {
        loop {
            let Some(word) = tokens.word()? else { return Ok(()) };
            if self.target.is_none() {
                self.target = target(word);
            }
            if tokens.peek()? != Some(PtxToken::Comma) {
                return Ok(());
            }
            tokens.next()?;
        }
    }

    /// `.global .attribute(.managed) .align 8 .b8 table[16] = {1, 2}, other;`
    fn read_variables(&mut self, tokens: &mut PtxTokens<'_>, declared: bool) -> Result<()> {
        let mut opaque = false;
        let mut name = None;
        while let Some(token) = tokens.next()? {
            match token {
                PtxToken::Word(b".align") => drop(tokens.word()?),
                PtxToken::Word(b".texref" | b".samplerref" | b".surfref") => opaque = true,
                PtxToken::Word(word) if word.first() == Some(&b'.') => {}
                PtxToken::Word(word) if name.is_none() => name = Some(text(word)),
                PtxToken::Open(b'{') => tokens.skip_block()?,
                PtxToken::Open(_) => tokens.skip_brackets()?,
                PtxToken::Close(_) => return damaged(KIND, tokens.at("a bracket that closes nothing")),
                PtxToken::Comma | PtxToken::Semicolon => {
                    if let Some(name) = name.take().filter(|_| !declared && !opaque) {
                        self.globals.push(name);
                    }
                    if token == PtxToken::Semicolon {
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
        damaged(KIND, "it ends inside a variable")
    }
}

/// Parses the text after `.entry`. The flag is true if the entry has a body.
fn read_entry(tokens: &mut PtxTokens<'_>) -> Result<(KernelInfo, bool)> {
    let Some(PtxToken::Word(name)) = tokens.next()? else {
        return damaged(KIND, tokens.at("an .entry without a name"));
    };
    let mut kernel = KernelInfo::new(text(name));
    let mut parameters = Vec::new();
    if tokens.peek()? == Some(PtxToken::Open(b'(')) {
        tokens.next()?;
        parameters = read_parameters(tokens, &kernel.name)?;
    }
    kernel.parameters = Some(parameters);
    while let Some(token) = tokens.next()? {
        match token {
            PtxToken::Word(b".maxntid") => {
                kernel.max_threads = Some(
                    read_extent(tokens)?.iter().map(|side| u64::from(*side)).fold(1, u64::saturating_mul),
                );
            }
            PtxToken::Word(b".reqntid") => kernel.required_block = Some(read_extent(tokens)?),
            PtxToken::Word(b".reqnctapercluster") => kernel.required_cluster = Some(read_extent(tokens)?),
            // The one directive here that ends in a semicolon.
            PtxToken::Word(b".pragma") => {
                while tokens.next()?.is_some_and(|token| token != PtxToken::Semicolon) {}
            }
            PtxToken::Semicolon => return Ok((kernel, false)),
            PtxToken::Open(b'{') => {
                tokens.skip_block()?;
                return Ok((kernel, true));
            }
            _ => {}
        }
    }
    damaged(KIND, format!("it ends before the body of kernel '{}'", kernel.name))
}

/// `128`, `128, 2` or `128, 2, 1`.
fn read_extent(tokens: &mut PtxTokens<'_>) -> Result<[u32; 3]> {
    let mut extent = [1; 3];
    for (index, side) in extent.iter_mut().enumerate() {
        if index > 0 {
            if tokens.peek()? != Some(PtxToken::Comma) {
                break;
            }
            tokens.next()?;
        }
        let word = tokens.word()?.and_then(integer).and_then(|value| u32::try_from(value).ok());
        let Some(value) = word else { return damaged(KIND, tokens.at("a size that is no number")) };
        *side = value;
    }
    Ok(extent)
}

/// Parses the parameters up to the closing parenthesis, and computes their offsets.
fn read_parameters(tokens: &mut PtxTokens<'_>, kernel: &str) -> Result<Vec<Parameter>> {
    let mut parameters = Vec::new();
    let mut end = 0;
    loop {
        let mut declaration = Declaration::default();
        let mut last = false;
        let mut empty = true;
        loop {
            match tokens.next()? {
                None => return damaged(KIND, format!("it ends inside the parameters of kernel '{kernel}'")),
                Some(PtxToken::Close(b')')) => {
                    last = true;
                    break;
                }
                Some(PtxToken::Comma) => break,
                Some(token) => {
                    empty = false;
                    declaration.read(token, tokens)?;
                }
            }
        }
        if !(empty && last && parameters.is_empty()) {
            let Some((kind, size, alignment)) = declaration.shape() else {
                let what = format!("parameter {} of kernel '{kernel}' cannot be read", parameters.len());
                return damaged(KIND, tokens.at(&what));
            };
            // Alignments are powers of two of at most 2^31 and sizes are bounded, so nothing here overflows.
            let offset = (end + alignment - 1) & !(alignment - 1);
            end = offset + size;
            if end > MAX_SPACE {
                return damaged(
                    KIND,
                    format!("the parameters of kernel '{kernel}' have {end} bytes or more"),
                );
            }
            parameters.push(Parameter { kind, size, offset });
        }
        if last {
            return Ok(parameters);
        }
    }
}

/// Larger than any parameter space (32764 bytes today), and small enough for all sums of this module.
const MAX_SPACE: usize = 1 << 20;

/// `.param .align 8 .b8 name[16]` or `.param .u64 .ptr .global .align 4 name`, token by token.
#[derive(Default)]
struct Declaration {
    /// The letter and bytes of the type, such as `(b'u', 8)`; `o` for opaque types.
    scalar: Option<(u8, usize)>,
    /// Elements of a vector type.
    lanes: usize,
    alignment: Option<usize>,
    pointer: bool,
    /// True for a pointer into a space without device addresses outside the kernel.
    inner_space: bool,
    /// The product of the dimensions of an array.
    elements: Option<usize>,
}

impl Declaration {
    fn read(&mut self, token: PtxToken<'_>, tokens: &mut PtxTokens<'_>) -> Result<()> {
        match token {
            PtxToken::Word(b".param") => {}
            PtxToken::Word(b".align") => {
                let value = tokens.word()?.and_then(integer).and_then(|value| usize::try_from(value).ok());
                match value.filter(|value| value.is_power_of_two() && *value <= MAX_SPACE) {
                    // After `.ptr` it is the alignment of the pointee.
                    Some(_) if self.pointer => {}
                    Some(value) => self.alignment = Some(value),
                    None => return damaged(KIND, tokens.at("an .align that is no power of two")),
                }
            }
            PtxToken::Word(b".ptr") => self.pointer = true,
            PtxToken::Word(b".shared" | b".local") => self.inner_space = true,
            PtxToken::Word(b".v2") => self.lanes = 2,
            PtxToken::Word(b".v4") => self.lanes = 4,
            PtxToken::Word(b".v8") => self.lanes = 8,
            PtxToken::Word(b".texref" | b".samplerref" | b".surfref") => self.scalar = Some((b'o', 8)),
            PtxToken::Word(word) => {
                if let Some(scalar) = scalar(word) {
                    self.scalar = Some(scalar);
                }
            }
            PtxToken::Open(b'[') => {
                let length = tokens.word()?.and_then(integer).and_then(|value| usize::try_from(value).ok());
                let elements = length.and_then(|length| length.checked_mul(self.elements.unwrap_or(1)));
                match elements.filter(|elements| *elements <= MAX_SPACE) {
                    Some(elements) => self.elements = Some(elements),
                    None => return damaged(KIND, tokens.at("an array whose size cannot be read")),
                }
                if tokens.next()? != Some(PtxToken::Close(b']')) {
                    return damaged(KIND, tokens.at("an array without its ']'"));
                }
            }
            PtxToken::Open(_) => tokens.skip_brackets()?,
            _ => {}
        }
        Ok(())
    }

    /// Returns kind, size and alignment.
    fn shape(&self) -> Option<(ParameterKind, usize, usize)> {
        let (letter, bytes) = self.scalar?;
        let lanes = self.lanes.max(1);
        let size = bytes * lanes * self.elements.unwrap_or(1);
        let kind = if self.elements.is_some() || lanes > 1 {
            ParameterKind::Bytes
        } else if self.pointer && !self.inner_space {
            ParameterKind::Address
        } else {
            match letter {
                b'f' => ParameterKind::Float,
                b'u' | b's' => ParameterKind::Integer,
                _ => ParameterKind::Unknown,
            }
        };
        Some((kind, size, self.alignment.unwrap_or(bytes * lanes)))
    }
}

/// Returns the letter and size of a type such as `.u64`. Packed and small float types count as bits of their size.
fn scalar(word: &[u8]) -> Option<(u8, usize)> {
    Some(match word {
        b".u8" => (b'u', 1),
        b".u16" => (b'u', 2),
        b".u32" => (b'u', 4),
        b".u64" => (b'u', 8),
        b".s8" => (b's', 1),
        b".s16" => (b's', 2),
        b".s32" => (b's', 4),
        b".s64" => (b's', 8),
        b".b8" => (b'b', 1),
        b".b16" => (b'b', 2),
        b".b32" | b".f16x2" | b".bf16x2" => (b'b', 4),
        b".b64" => (b'b', 8),
        b".b128" => (b'b', 16),
        b".f16" | b".bf16" => (b'f', 2),
        b".f32" => (b'f', 4),
        b".f64" => (b'f', 8),
        _ => return None,
    })
}

/// `8.7`.
fn version(word: &[u8]) -> Option<(i32, i32)> {
    let (major, minor) = std::str::from_utf8(word).ok()?.split_once('.')?;
    let digits =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u16>().ok());
    Some((digits(major)??.into(), digits(minor)??.into()))
}

/// `sm_90a`.
fn target(word: &[u8]) -> Option<TargetArchitecture> {
    let number = std::str::from_utf8(word).ok()?.strip_prefix("sm_")?;
    let (number, suffix) = match number.as_bytes().last()? {
        b'a' => (number.strip_suffix('a')?, ArchitectureSuffix::Architecture),
        b'f' => (number.strip_suffix('f')?, ArchitectureSuffix::Family),
        _ => (number, ArchitectureSuffix::None),
    };
    TargetArchitecture::from_number(number.parse().ok()?, suffix)
}

/// Parses a PTX number: decimal, hexadecimal, octal or binary, with an optional `U`.
fn integer(word: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(word).ok()?;
    let text = text.strip_suffix('U').unwrap_or(text);
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        u64::from_str_radix(digits, 16).ok()
    } else if let Some(digits) = text.strip_prefix("0b").or_else(|| text.strip_prefix("0B")) {
        u64::from_str_radix(digits, 2).ok()
    } else if text.len() > 1 && text.starts_with('0') {
        u64::from_str_radix(text, 8).ok()
    } else {
        text.parse().ok()
    }
}

fn text(word: &[u8]) -> String {
    String::from_utf8_lossy(word).into_owned()
}

/// A token of PTX, as coarse as module scope allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PtxToken<'a> {
    /// A directive, name or number.
    Word(&'a [u8]),
    Text,
    Open(u8),
    Close(u8),
    Comma,
    Semicolon,
    Other,
}

/// The tokens of the text up to its first NUL, without blanks and comments.
#[derive(Clone)]
struct PtxTokens<'a> {
    text: &'a [u8],
    position: usize,
}

impl<'a> PtxTokens<'a> {
    fn new(bytes: &'a [u8]) -> PtxTokens<'a> {
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        let position = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        PtxTokens { text, position }
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.position + ahead).copied()
    }

    fn next(&mut self) -> Result<Option<PtxToken<'a>>> {
        self.skip_blanks()?;
        let start = self.position;
        let Some(first) = self.byte(0) else { return Ok(None) };
        self.position += 1;
        Ok(Some(match first {
            b'(' | b'[' | b'{' => PtxToken::Open(first),
            b')' | b']' | b'}' => PtxToken::Close(first),
            b',' => PtxToken::Comma,
            b';' => PtxToken::Semicolon,
            b'"' => {
                self.skip_string()?;
                PtxToken::Text
            }
            _ if is_word(first) => {
                while self.byte(0).is_some_and(is_word) {
                    self.position += 1;
                }
                PtxToken::Word(self.text.get(start..self.position).unwrap_or_default())
            }
            _ => PtxToken::Other,
        }))
    }

    fn peek(&self) -> Result<Option<PtxToken<'a>>> {
        self.clone().next()
    }

    /// Returns the next token if it is a word, and leaves any other.
    fn word(&mut self) -> Result<Option<&'a [u8]>> {
        match self.peek()? {
            Some(PtxToken::Word(word)) => {
                self.next()?;
                Ok(Some(word))
            }
            _ => Ok(None),
        }
    }

    fn skip_blanks(&mut self) -> Result<()> {
        loop {
            match (self.byte(0), self.byte(1)) {
                (Some(byte), _) if byte.is_ascii_whitespace() || byte == 0x0b => self.position += 1,
                (Some(b'/'), Some(b'/')) => {
                    while self.byte(0).is_some_and(|byte| byte != b'\n') {
                        self.position += 1;
                    }
                }
                (Some(b'/'), Some(b'*')) => {
                    let start = self.position;
                    self.position += 2;
                    while !matches!((self.byte(0), self.byte(1)), (Some(b'*'), Some(b'/'))) {
                        if self.byte(0).is_none() {
                            self.position = start;
                            return damaged(KIND, self.at("a comment that does not end"));
                        }
                        self.position += 1;
                    }
                    self.position += 2;
                }
                _ => return Ok(()),
            }
        }
    }

    /// Skips the rest of a string whose opening quote has been read. Strings do not cross lines.
    fn skip_string(&mut self) -> Result<()> {
        while let Some(byte) = self.byte(0) {
            self.position += 1;
            match byte {
                b'"' => return Ok(()),
                b'\\' => self.position += 1,
                b'\n' => break,
                _ => {}
            }
        }
        damaged(KIND, self.at("a string that does not end"))
    }

    /// Skips the rest of a block whose opening brace has been read.
    fn skip_block(&mut self) -> Result<()> {
        let start = self.position;
        let mut depth = 1_usize;
        while depth > 0 {
            match self.next()? {
                Some(PtxToken::Open(b'{')) => depth += 1,
                Some(PtxToken::Close(b'}')) => depth -= 1,
                Some(_) => {}
                None => {
                    self.position = start;
                    return damaged(KIND, self.at("it ends inside the block that opens"));
                }
            }
        }
        Ok(())
    }

    /// Skips the rest of a bracketed list whose opening bracket has been read.
    fn skip_brackets(&mut self) -> Result<()> {
        let mut depth = 1_usize;
        while depth > 0 {
            match self.next()? {
                Some(PtxToken::Open(_)) => depth += 1,
                Some(PtxToken::Close(_)) => depth -= 1,
                Some(_) => {}
                None => return damaged(KIND, "it ends inside brackets"),
            }
        }
        Ok(())
    }

    /// Skips the rest of a function after `.func`: to the end of its body, or to the semicolon of a declaration.
    fn skip_function(&mut self) -> Result<()> {
        while let Some(token) = self.next()? {
            match token {
                PtxToken::Open(b'{') => return self.skip_block(),
                PtxToken::Open(_) => self.skip_brackets()?,
                PtxToken::Word(b".pragma") => {
                    while self.next()?.is_some_and(|token| token != PtxToken::Semicolon) {}
                }
                PtxToken::Semicolon => return Ok(()),
                _ => {}
            }
        }
        damaged(KIND, "it ends inside a function")
    }

    /// Appends the line number to a message.
    fn at(&self, what: &str) -> String {
        let before = self.text.get(..self.position).unwrap_or(self.text);
        format!("{what} (line {})", 1 + before.iter().filter(|byte| **byte == b'\n').count())
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'$' | b'%') || byte >= 0x80
}
