//! PTX text: its header, its entries with their parameters, its variables.
//!
//! Only module scope is read; function bodies and debug sections are skipped by their braces. Whatever compiler wrote
//! the text (NVCC, NVRTC, Clang, Triton, Numba, this crate), a directive that is not known here is stepped over token by
//! token, so that newer PTX is read as well. Text ends at its first NUL, as it does for the driver.

use super::ascii::BYTE_ORDER_MARK;
use super::{
    Entry, ImageInfo, ImageKind, KernelInfo, Parameter, ParameterKind, Result, Suffix, Target, damaged,
};

const KIND: &str = "PTX";

/// Whether the first directive is `.version`, as the ISA wants it.
pub(super) fn is_ptx(bytes: &[u8]) -> bool {
    matches!(Tokens::new(bytes).next(), Ok(Some(Token::Word(b".version"))))
}

pub(super) fn parse(bytes: &[u8]) -> Result<ImageInfo> {
    let mut module = Module::default();
    let mut tokens = Tokens::new(bytes);
    let end = tokens.text.len();
    if bytes.iter().skip(end).any(|byte| *byte != 0) {
        return damaged(KIND, format!("a NUL at byte {end}, and more text behind it"));
    }
    module.read(&mut tokens)?;
    let Some(isa) = module.isa else { return damaged(KIND, "no .version that can be read") };
    let Some(target) = module.target else {
        return damaged(KIND, "no .target with an architecture such as sm_80");
    };
    let entry = Entry { kind: ImageKind::Ptx, target, isa: Some(isa), toolkit: None };
    let mut info = ImageInfo::single(entry);
    info.kernels = module.kernels;
    info.globals = module.globals;
    info.keep_first_names();
    Ok(info)
}

#[derive(Default)]
struct Module {
    isa: Option<(i32, i32)>,
    target: Option<Target>,
    kernels: Vec<KernelInfo>,
    globals: Vec<String>,
}

impl Module {
    fn read(&mut self, tokens: &mut Tokens<'_>) -> Result<()> {
        // Set by `.extern`: what follows is only declared here.
        let mut declared = false;
        while let Some(token) = tokens.next()? {
            match token {
                Token::Word(b".version") => self.isa = tokens.word()?.and_then(version),
                Token::Word(b".target") => self.read_target(tokens)?,
                Token::Word(b".extern") => declared = true,
                Token::Word(b".visible" | b".weak" | b".common") => declared = false,
                Token::Word(b".entry") => {
                    let (kernel, defined) = read_entry(tokens)?;
                    if defined {
                        self.kernels.push(kernel);
                    }
                    declared = false;
                }
                Token::Word(b".func" | b".alias") => {
                    tokens.skip_function()?;
                    declared = false;
                }
                Token::Word(b".global" | b".const") => {
                    self.read_variables(tokens, declared)?;
                    declared = false;
                }
                Token::Open(b'{') => tokens.skip_block()?,
                Token::Close(b'}') => return damaged(KIND, tokens.at("a '}' that closes nothing")),
                Token::Semicolon => declared = false,
                _ => {}
            }
        }
        Ok(())
    }

    /// `.target sm_90a, debug`: one architecture, and words that do not matter here.
    fn read_target(&mut self, tokens: &mut Tokens<'_>) -> Result<()> {
        loop {
            let Some(word) = tokens.word()? else { return Ok(()) };
            if self.target.is_none() {
                self.target = target(word);
            }
            if tokens.peek()? != Some(Token::Comma) {
                return Ok(());
            }
            tokens.next()?;
        }
    }

    /// `.global .attribute(.managed) .align 8 .b8 table[16] = {1, 2}, other;`
    fn read_variables(&mut self, tokens: &mut Tokens<'_>, declared: bool) -> Result<()> {
        let mut opaque = false;
        let mut name = None;
        while let Some(token) = tokens.next()? {
            match token {
                Token::Word(b".align") => drop(tokens.word()?),
                Token::Word(b".texref" | b".samplerref" | b".surfref") => opaque = true,
                Token::Word(word) if word.first() == Some(&b'.') => {}
                Token::Word(word) if name.is_none() => name = Some(text(word)),
                Token::Open(b'{') => tokens.skip_block()?,
                Token::Open(_) => tokens.skip_brackets()?,
                Token::Close(_) => return damaged(KIND, tokens.at("a bracket that closes nothing")),
                Token::Comma | Token::Semicolon => {
                    if let Some(name) = name.take().filter(|_| !declared && !opaque) {
                        self.globals.push(name);
                    }
                    if token == Token::Semicolon {
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
        damaged(KIND, "it ends inside a variable")
    }
}

/// What follows `.entry`, and whether it has a body.
fn read_entry(tokens: &mut Tokens<'_>) -> Result<(KernelInfo, bool)> {
    let Some(Token::Word(name)) = tokens.next()? else {
        return damaged(KIND, tokens.at("an .entry without a name"));
    };
    let mut kernel = KernelInfo::new(text(name));
    let mut parameters = Vec::new();
    if tokens.peek()? == Some(Token::Open(b'(')) {
        tokens.next()?;
        parameters = read_parameters(tokens, &kernel.name)?;
    }
    kernel.parameters = Some(parameters);
    while let Some(token) = tokens.next()? {
        match token {
            Token::Word(b".maxntid") => {
                kernel.max_threads = Some(
                    read_extent(tokens)?.iter().map(|side| u64::from(*side)).fold(1, u64::saturating_mul),
                );
            }
            Token::Word(b".reqntid") => kernel.required_block = Some(read_extent(tokens)?),
            Token::Word(b".reqnctapercluster") => kernel.required_cluster = Some(read_extent(tokens)?),
            // The one directive here that ends in a semicolon.
            Token::Word(b".pragma") => while tokens.next()?.is_some_and(|token| token != Token::Semicolon) {},
            Token::Semicolon => return Ok((kernel, false)),
            Token::Open(b'{') => {
                tokens.skip_block()?;
                return Ok((kernel, true));
            }
            _ => {}
        }
    }
    damaged(KIND, format!("it ends before the body of kernel '{}'", kernel.name))
}

/// `128`, `128, 2` or `128, 2, 1`.
fn read_extent(tokens: &mut Tokens<'_>) -> Result<[u32; 3]> {
    let mut extent = [1; 3];
    for (index, side) in extent.iter_mut().enumerate() {
        if index > 0 {
            if tokens.peek()? != Some(Token::Comma) {
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

/// The parameters up to the closing parenthesis, laid out as the kernel sees them.
fn read_parameters(tokens: &mut Tokens<'_>, kernel: &str) -> Result<Vec<Parameter>> {
    let mut parameters = Vec::new();
    let mut end = 0;
    loop {
        let mut declaration = Declaration::default();
        let mut last = false;
        let mut empty = true;
        loop {
            match tokens.next()? {
                None => return damaged(KIND, format!("it ends inside the parameters of kernel '{kernel}'")),
                Some(Token::Close(b')')) => {
                    last = true;
                    break;
                }
                Some(Token::Comma) => break,
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
            if end > LARGEST_SPACE {
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

/// More than any parameter space is (32764 bytes today), and small enough for all sums of this module.
const LARGEST_SPACE: usize = 1 << 20;

/// `.param .align 8 .b8 name[16]` or `.param .u64 .ptr .global .align 4 name`, token by token.
#[derive(Default)]
struct Declaration {
    /// Letter and bytes of the type, such as `(b'u', 8)`; `o` for the opaque ones.
    scalar: Option<(u8, usize)>,
    /// Elements of a vector type.
    lanes: usize,
    alignment: Option<usize>,
    pointer: bool,
    /// A pointer into a space of which no device address exists outside the kernel.
    inner_space: bool,
    /// The product of the dimensions of an array.
    elements: Option<usize>,
}

impl Declaration {
    fn read(&mut self, token: Token<'_>, tokens: &mut Tokens<'_>) -> Result<()> {
        match token {
            Token::Word(b".param") => {}
            Token::Word(b".align") => {
                let value = tokens.word()?.and_then(integer).and_then(|value| usize::try_from(value).ok());
                match value.filter(|value| value.is_power_of_two() && *value <= LARGEST_SPACE) {
                    // Behind `.ptr` it is the alignment of what is pointed at.
                    Some(_) if self.pointer => {}
                    Some(value) => self.alignment = Some(value),
                    None => return damaged(KIND, tokens.at("an .align that is no power of two")),
                }
            }
            Token::Word(b".ptr") => self.pointer = true,
            Token::Word(b".shared" | b".local") => self.inner_space = true,
            Token::Word(b".v2") => self.lanes = 2,
            Token::Word(b".v4") => self.lanes = 4,
            Token::Word(b".v8") => self.lanes = 8,
            Token::Word(b".texref" | b".samplerref" | b".surfref") => self.scalar = Some((b'o', 8)),
            Token::Word(word) => {
                if let Some(scalar) = scalar(word) {
                    self.scalar = Some(scalar);
                }
            }
            Token::Open(b'[') => {
                let length = tokens.word()?.and_then(integer).and_then(|value| usize::try_from(value).ok());
                let elements = length.and_then(|length| length.checked_mul(self.elements.unwrap_or(1)));
                match elements.filter(|elements| *elements <= LARGEST_SPACE) {
                    Some(elements) => self.elements = Some(elements),
                    None => return damaged(KIND, tokens.at("an array whose size cannot be read")),
                }
                if tokens.next()? != Some(Token::Close(b']')) {
                    return damaged(KIND, tokens.at("an array without its ']'"));
                }
            }
            Token::Open(_) => tokens.skip_brackets()?,
            _ => {}
        }
        Ok(())
    }

    /// Kind, size and alignment.
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

/// The letter and size of a type such as `.u64`. Packed and small float types count as bits of their size.
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
fn target(word: &[u8]) -> Option<Target> {
    let number = std::str::from_utf8(word).ok()?.strip_prefix("sm_")?;
    let (number, suffix) = match number.as_bytes().last()? {
        b'a' => (number.strip_suffix('a')?, Suffix::Architecture),
        b'f' => (number.strip_suffix('f')?, Suffix::Family),
        _ => (number, Suffix::None),
    };
    Target::from_number(number.parse().ok()?, suffix)
}

/// A number as PTX writes it: decimal, hexadecimal, octal or binary, with an optional `U`.
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
enum Token<'a> {
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
struct Tokens<'a> {
    text: &'a [u8],
    position: usize,
}

impl<'a> Tokens<'a> {
    fn new(bytes: &'a [u8]) -> Tokens<'a> {
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        let position = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        Tokens { text, position }
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.position + ahead).copied()
    }

    fn next(&mut self) -> Result<Option<Token<'a>>> {
        self.skip_blanks()?;
        let start = self.position;
        let Some(first) = self.byte(0) else { return Ok(None) };
        self.position += 1;
        Ok(Some(match first {
            b'(' | b'[' | b'{' => Token::Open(first),
            b')' | b']' | b'}' => Token::Close(first),
            b',' => Token::Comma,
            b';' => Token::Semicolon,
            b'"' => {
                self.skip_string()?;
                Token::Text
            }
            _ if is_word(first) => {
                while self.byte(0).is_some_and(is_word) {
                    self.position += 1;
                }
                Token::Word(self.text.get(start..self.position).unwrap_or_default())
            }
            _ => Token::Other,
        }))
    }

    fn peek(&self) -> Result<Option<Token<'a>>> {
        self.clone().next()
    }

    /// The next token where it is a word; anything else is left in place.
    fn word(&mut self) -> Result<Option<&'a [u8]>> {
        match self.peek()? {
            Some(Token::Word(word)) => {
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

    /// The rest of a string whose opening quote has been read. Strings do not cross lines.
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

    /// The rest of a block whose opening brace has been read.
    fn skip_block(&mut self) -> Result<()> {
        let start = self.position;
        let mut depth = 1_usize;
        while depth > 0 {
            match self.next()? {
                Some(Token::Open(b'{')) => depth += 1,
                Some(Token::Close(b'}')) => depth -= 1,
                Some(_) => {}
                None => {
                    self.position = start;
                    return damaged(KIND, self.at("it ends inside the block that opens"));
                }
            }
        }
        Ok(())
    }

    /// The rest of a bracketed list whose opening bracket has been read.
    fn skip_brackets(&mut self) -> Result<()> {
        let mut depth = 1_usize;
        while depth > 0 {
            match self.next()? {
                Some(Token::Open(_)) => depth += 1,
                Some(Token::Close(_)) => depth -= 1,
                Some(_) => {}
                None => return damaged(KIND, "it ends inside brackets"),
            }
        }
        Ok(())
    }

    /// The rest of a function behind `.func`: to the end of its body, or to the semicolon of a declaration.
    fn skip_function(&mut self) -> Result<()> {
        while let Some(token) = self.next()? {
            match token {
                Token::Open(b'{') => return self.skip_block(),
                Token::Open(_) => self.skip_brackets()?,
                Token::Word(b".pragma") => {
                    while self.next()?.is_some_and(|token| token != Token::Semicolon) {}
                }
                Token::Semicolon => return Ok(()),
                _ => {}
            }
        }
        damaged(KIND, "it ends inside a function")
    }

    /// What is wrong, with the line.
    fn at(&self, what: &str) -> String {
        let before = self.text.get(..self.position).unwrap_or(self.text);
        format!("{what} (line {})", 1 + before.iter().filter(|byte| **byte == b'\n').count())
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'$' | b'%') || byte >= 0x80
}
