//! A parser of the Itanium ABI's mangled names, for the parameter types of C++ kernels.
//!
//! An image does not store the pointees of pointers, but the name of a C++ kernel does: `_Z5saxpyPKfPff` is
//! `saxpy(float const*, float*, float)`. The parser supports the constructs that kernel names can have: namespaces,
//! templates with types and numbers, substitutions, every scalar. Other constructs of the ABI (lambdas, packs,
//! operators, expressions) return `None`, which means unchecked; the parser never guesses.
//!
//! Invariants: the parser terminates quickly on any bytes; a type prints as `c++filt` prints it, which lets the tests
//! check the numbering of substitutions.

use std::fmt;
use std::sync::Arc;

/// The longest name that is parsed, which bounds the recursion and the time.
const LONGEST: usize = 4096;

/// The largest nesting of types.
const DEEPEST: usize = 64;

/// A C++ type.
#[derive(Debug)]
pub(super) enum CxxType {
    /// A builtin type such as `float`: its mangled letters and its name.
    Builtin(&'static str, &'static str),
    /// A class, enumeration or namespace: its scope, its own name, and its template arguments.
    Named { inside: Option<Arc<CxxType>>, name: String, arguments: Option<Vec<TemplateArgument>> },
    /// A pointer or reference, with its sign.
    Pointer(Arc<CxxType>, &'static str),
    /// A type with `const` or similar qualifiers, in words.
    Qualified(Arc<CxxType>, String),
    /// An array, with its length.
    Array(Arc<CxxType>, String),
}

/// A template argument.
#[derive(Clone, Debug)]
pub(super) enum TemplateArgument {
    Type(Arc<CxxType>),
    /// A number, as `c++filt` prints it.
    Value(String),
}

/// A function's name and parameters.
#[derive(Debug)]
pub(super) struct Function {
    /// The name without namespaces and template arguments.
    pub(super) name: String,
    pub(super) parameters: Vec<Arc<CxxType>>,
}

/// The mangled letters and names of the builtin types.
const BUILTINS: &[(&str, &str)] = &[
    ("v", "void"),
    ("w", "wchar_t"),
    ("b", "bool"),
    ("c", "char"),
    ("a", "signed char"),
    ("h", "unsigned char"),
    ("s", "short"),
    ("t", "unsigned short"),
    ("i", "int"),
    ("j", "unsigned int"),
    ("l", "long"),
    ("m", "unsigned long"),
    ("x", "long long"),
    ("y", "unsigned long long"),
    ("n", "__int128"),
    ("o", "unsigned __int128"),
    ("f", "float"),
    ("d", "double"),
    ("e", "long double"),
    ("g", "__float128"),
    ("Cf", "float _Complex"),
    ("Cd", "double _Complex"),
    ("Dh", "half"),
    ("DF16b", "std::bfloat16_t"),
    ("DF16_", "_Float16"),
    ("DF32_", "_Float32"),
    ("DF64_", "_Float64"),
    ("Di", "char32_t"),
    ("Ds", "char16_t"),
    ("Du", "char8_t"),
    ("Dn", "decltype(nullptr)"),
];

/// Parses a mangled name; `None` if it is not one, or uses unsupported constructs.
pub(super) fn parse(name: &str) -> Option<Function> {
    let text = name.strip_prefix("_Z").filter(|text| text.len() <= LONGEST)?;
    let mut reader =
        Reader { rest: text.as_bytes(), substitutions: Vec::new(), arguments: Vec::new(), depth: 0 };
    reader.function()
}

struct Reader<'a> {
    rest: &'a [u8],
    /// The meanings of `S_`, `S0_` and so on.
    substitutions: Vec<Arc<CxxType>>,
    /// The meanings of `T_`, `T0_` and so on: the arguments of the function's own template.
    arguments: Vec<TemplateArgument>,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn function(&mut self) -> Option<Function> {
        let full_name = self.function_name()?;
        let CxxType::Named { name, arguments, .. } = &*full_name else { return None };
        let name = name.clone();
        if let Some(arguments) = arguments {
            self.arguments.clone_from(arguments);
            // The return type, which only template functions have in their names.
            self.read_type()?;
        }
        if self.rest.is_empty() {
            return None;
        }
        if self.rest == b"v" {
            return Some(Function { name, parameters: Vec::new() });
        }
        let mut parameters = Vec::new();
        while !self.rest.is_empty() {
            parameters.push(self.read_type()?);
        }
        Some(Function { name, parameters })
    }

    /// Parses a function's name. The name itself is no substitution, but its scope and its template are.
    fn function_name(&mut self) -> Option<Arc<CxxType>> {
        if self.take(b"N") {
            let name = self.nested()?;
            self.substitutions.pop();
            return Some(name);
        }
        let name = self.unscoped()?;
        if self.rest.first() != Some(&b'I') {
            return Some(name);
        }
        self.substitutions.push(name.clone());
        self.template_of(&name)
    }

    fn take(&mut self, prefix: &[u8]) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn remember(&mut self, found: CxxType) -> Arc<CxxType> {
        let found = Arc::new(found);
        self.substitutions.push(found.clone());
        found
    }

    fn read_type(&mut self) -> Option<Arc<CxxType>> {
        self.depth += 1;
        let found = if self.depth > DEEPEST { None } else { self.read_type_here() };
        self.depth -= 1;
        found
    }

    fn read_type_here(&mut self) -> Option<Arc<CxxType>> {
        for (letters, name) in BUILTINS {
            if self.take(letters.as_bytes()) {
                return Some(Arc::new(CxxType::Builtin(letters, name)));
            }
        }
        match *self.rest.first()? {
            b'P' => self.pointer("*"),
            b'R' => self.pointer("&"),
            b'O' => self.pointer("&&"),
            b'r' | b'V' | b'K' => self.qualified(),
            b'A' => self.array(),
            b'N' => {
                self.rest = self.rest.get(1..)?;
                self.nested()
            }
            b'T' => self.parameter_of_template(),
            // A vendor's extended type.
            b'u' => {
                self.rest = self.rest.get(1..)?;
                let name = self.source_name()?;
                Some(self.remember(CxxType::Named { inside: None, name, arguments: None }))
            }
            _ => {
                let substituted = self.rest.first() == Some(&b'S') && !self.rest.starts_with(b"St");
                let name = if substituted { self.substitution()? } else { self.unscoped()? };
                if !substituted {
                    self.substitutions.push(name.clone());
                }
                if self.rest.first() != Some(&b'I') {
                    return Some(name);
                }
                let found = self.template_of(&name)?;
                self.substitutions.push(found.clone());
                Some(found)
            }
        }
    }

    fn pointer(&mut self, sign: &'static str) -> Option<Arc<CxxType>> {
        self.rest = self.rest.get(1..)?;
        let pointee = self.read_type()?;
        Some(self.remember(CxxType::Pointer(pointee, sign)))
    }

    fn qualified(&mut self) -> Option<Arc<CxxType>> {
        let mut words = String::new();
        // In mangled order; printing reverses it.
        for (letter, word) in [(b"r", " restrict"), (b"V", " volatile"), (b"K", " const")] {
            if self.take(letter) {
                words.insert_str(0, word);
            }
        }
        let qualified = self.read_type()?;
        Some(self.remember(CxxType::Qualified(qualified, words)))
    }

    /// `A4_f`.
    fn array(&mut self) -> Option<Arc<CxxType>> {
        self.rest = self.rest.get(1..)?;
        let length = self.digits().to_owned();
        if !self.take(b"_") {
            return None;
        }
        let element = self.read_type()?;
        Some(self.remember(CxxType::Array(element, length)))
    }

    /// `T_`, `T0_`: without template arguments of its own.
    fn parameter_of_template(&mut self) -> Option<Arc<CxxType>> {
        self.rest = self.rest.get(1..)?;
        let index = self.sequence(10)?;
        let TemplateArgument::Type(found) = self.arguments.get(index)?.clone() else { return None };
        if self.rest.first() == Some(&b'I') {
            return None;
        }
        self.substitutions.push(found.clone());
        Some(found)
    }

    /// `S_`, `S0_`, up to `SZ_` and on.
    fn substitution(&mut self) -> Option<Arc<CxxType>> {
        if !self.take(b"S") {
            return None;
        }
        let index = self.sequence(36)?;
        self.substitutions.get(index).cloned()
    }

    /// The number before a `_`, where an empty one comes first: `_` is 0, `0_` is 1.
    fn sequence(&mut self, base: u32) -> Option<usize> {
        let end = self.rest.iter().position(|&letter| letter == b'_')?;
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..)?;
        if number.is_empty() {
            return Some(0);
        }
        let upper = number.iter().all(|letter| letter.is_ascii_digit() || letter.is_ascii_uppercase());
        let number = std::str::from_utf8(number).ok().filter(|_| upper)?;
        usize::from_str_radix(number, base).ok()?.checked_add(1)
    }

    fn digits(&mut self) -> &'a str {
        let end = self.rest.iter().position(|letter| !letter.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        std::str::from_utf8(digits).unwrap_or_default()
    }

    /// `5saxpy`, with an optional mark of a `static` function before it and tags behind it.
    fn source_name(&mut self) -> Option<String> {
        self.take(b"L");
        let mut name = self.counted()?.to_owned();
        if name.starts_with("_GLOBAL__N") {
            "(anonymous namespace)".clone_into(&mut name);
        }
        while self.take(b"B") {
            name += &format!("[abi:{}]", self.counted()?);
        }
        Some(name)
    }

    /// As many letters as the preceding number.
    fn counted(&mut self) -> Option<&'a str> {
        let length: usize = self.digits().parse().ok().filter(|&length| length > 0)?;
        let (name, rest) = (self.rest.get(..length)?, self.rest.get(length..)?);
        self.rest = rest;
        std::str::from_utf8(name).ok()
    }

    /// `5saxpy` or `St7complex`.
    fn unscoped(&mut self) -> Option<Arc<CxxType>> {
        let inside = self.take(b"St").then(standard);
        let name = self.source_name()?;
        Some(Arc::new(CxxType::Named { inside, name, arguments: None }))
    }

    /// The text between `N` and its `E`. Each step is a substitution, the whole as the last.
    fn nested(&mut self) -> Option<Arc<CxxType>> {
        let mut current: Option<Arc<CxxType>> = None;
        while !self.take(b"E") {
            current = Some(match (*self.rest.first()?, &current) {
                (b'S', None) if self.take(b"St") => standard(),
                (b'S', None) => self.substitution()?,
                (b'I', Some(name)) => {
                    let name = name.clone();
                    let found = self.template_of(&name)?;
                    self.substitutions.push(found.clone());
                    found
                }
                (b'T', None) => self.parameter_of_template()?,
                _ => {
                    let name = self.source_name()?;
                    self.remember(CxxType::Named { inside: current, name, arguments: None })
                }
            });
        }
        current
    }

    /// A template with the arguments that follow.
    fn template_of(&mut self, template: &CxxType) -> Option<Arc<CxxType>> {
        let CxxType::Named { inside, name, arguments: None } = template else { return None };
        if !self.take(b"I") {
            return None;
        }
        let mut arguments = Vec::new();
        while !self.take(b"E") {
            arguments.push(self.template_argument()?);
        }
        Some(Arc::new(CxxType::Named {
            inside: inside.clone(),
            name: name.clone(),
            arguments: Some(arguments),
        }))
    }

    fn template_argument(&mut self) -> Option<TemplateArgument> {
        if self.take(b"L") {
            return self.value().map(TemplateArgument::Value);
        }
        self.read_type().map(TemplateArgument::Type)
    }

    /// `Li4E`, `Lb1E`, `Lin4E`: a number of a scalar type.
    fn value(&mut self) -> Option<String> {
        let scalar = self.read_type()?;
        let minus = if self.take(b"n") { "-" } else { "" };
        let digits = self.digits().to_owned();
        if digits.is_empty() || !self.take(b"E") {
            return None;
        }
        Some(match &*scalar {
            CxxType::Builtin("b", _) if digits == "0" => "false".to_owned(),
            CxxType::Builtin("b", _) if digits == "1" => "true".to_owned(),
            CxxType::Builtin("i", _) => format!("{minus}{digits}"),
            CxxType::Builtin("j", _) => format!("{minus}{digits}u"),
            CxxType::Builtin("l", _) => format!("{minus}{digits}l"),
            CxxType::Builtin("m", _) => format!("{minus}{digits}ul"),
            CxxType::Builtin("x", _) => format!("{minus}{digits}ll"),
            CxxType::Builtin("y", _) => format!("{minus}{digits}ull"),
            other => format!("({other}){minus}{digits}"),
        })
    }
}

fn standard() -> Arc<CxxType> {
    Arc::new(CxxType::Named { inside: None, name: "std".to_owned(), arguments: None })
}

impl CxxType {
    /// The type without `const` and similar qualifiers.
    pub(super) fn unqualified(&self) -> &CxxType {
        match self {
            CxxType::Qualified(inner, _) => inner.unqualified(),
            other => other,
        }
    }
}

/// The notation of `c++filt`. A type that substitutions made huge is truncated.
impl fmt::Display for CxxType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_LENGTH: usize = 1024;
        let mut text = String::new();
        print(self, &mut text, MAX_LENGTH);
        if text.len() >= MAX_LENGTH {
            text.push_str("...");
        }
        formatter.write_str(&text)
    }
}

fn print(found: &CxxType, text: &mut String, most: usize) {
    if text.len() >= most {
        return;
    }
    match found {
        CxxType::Builtin(_, name) => text.push_str(name),
        CxxType::Named { inside, name, arguments } => {
            if let Some(inside) = inside {
                print(inside, text, most);
                text.push_str("::");
            }
            text.push_str(name);
            let Some(arguments) = arguments else { return };
            text.push('<');
            for (index, argument) in arguments.iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                match argument {
                    TemplateArgument::Type(found) => print(found, text, most),
                    TemplateArgument::Value(value) => text.push_str(value),
                }
            }
            text.push_str(if text.ends_with('>') { " >" } else { ">" });
        }
        CxxType::Pointer(pointee, sign) => {
            // `const` of an array applies to its elements.
            let (inner, words) = match &**pointee {
                CxxType::Qualified(inner, words) => (inner, words.as_str()),
                _ => (pointee, ""),
            };
            if let CxxType::Array(element, length) = &**inner {
                print(element, text, most);
                text.push_str(&format!("{words} ({sign}) [{length}]"));
                return;
            }
            print(pointee, text, most);
            text.push_str(sign);
        }
        CxxType::Qualified(inner, words) => {
            print(inner, text, most);
            text.push_str(words);
        }
        CxxType::Array(element, length) => {
            print(element, text, most);
            text.push_str(&format!(" [{length}]"));
        }
    }
}
