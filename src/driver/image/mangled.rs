//! What a C++ kernel's name says of its parameters: a reader of the Itanium ABI's mangled names.
//!
//! An image does not keep what a pointer points to, but the name of a C++ kernel does: `_Z5saxpyPKfPff` is
//! `saxpy(float const*, float*, float)`. Read here is what kernels can have in their names: namespaces, templates with
//! types and numbers, substitutions, every scalar. What else the ABI knows (lambdas, packs, operators, expressions) gives
//! `None`, which means unchecked, and never a guess.
//!
//! What must stay true: any bytes give an answer, and soon; a type that is printed reads as
//! `c++filt` prints it, which is how the tests know that the substitutions are counted right.

use std::fmt;
use std::sync::Arc;

/// Longer names are not read: no recursion below can then be deep, and nothing takes long.
const LONGEST: usize = 4096;

/// How deep types may stand in each other.
const DEEPEST: usize = 64;

/// A type of C++.
#[derive(Debug)]
pub(super) enum Type {
    /// `float`, by its letters in a mangled name and its name.
    Builtin(&'static str, &'static str),
    /// A class, enumeration or namespace: what it stands in, its own name, and the arguments of its template.
    Named { inside: Option<Arc<Type>>, name: String, arguments: Option<Vec<Argument>> },
    /// A pointer or reference, with its sign.
    Pointer(Arc<Type>, &'static str),
    /// `const` and its kind, with the words.
    Qualified(Arc<Type>, String),
    /// An array, with its length.
    Array(Arc<Type>, String),
}

/// An argument of a template.
#[derive(Clone, Debug)]
pub(super) enum Argument {
    Type(Arc<Type>),
    /// A number, as `c++filt` prints it.
    Value(String),
}

/// A function's name, as far as it matters here.
#[derive(Debug)]
pub(super) struct Function {
    /// The name without namespaces and template arguments.
    pub(super) name: String,
    pub(super) parameters: Vec<Arc<Type>>,
}

/// Letters and names of the types that C++ itself has.
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

/// Reads a mangled name; `None` where it is none, or says what is not read here.
pub(super) fn parse(name: &str) -> Option<Function> {
    let text = name.strip_prefix("_Z").filter(|text| text.len() <= LONGEST)?;
    let mut reader =
        Reader { rest: text.as_bytes(), substitutions: Vec::new(), arguments: Vec::new(), depth: 0 };
    reader.function()
}

struct Reader<'a> {
    rest: &'a [u8],
    /// What `S_`, `S0_` and so on stand for.
    substitutions: Vec<Arc<Type>>,
    /// What `T_`, `T0_` and so on stand for: the arguments of the function's own template.
    arguments: Vec<Argument>,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn function(&mut self) -> Option<Function> {
        let full_name = self.function_name()?;
        let Type::Named { name, arguments, .. } = &*full_name else { return None };
        let name = name.clone();
        if let Some(arguments) = arguments {
            self.arguments.clone_from(arguments);
            // The type that it returns: functions made of a template say it.
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

    /// A function's own name is no substitution; what it stands in is, and its template.
    fn function_name(&mut self) -> Option<Arc<Type>> {
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

    fn remember(&mut self, found: Type) -> Arc<Type> {
        let found = Arc::new(found);
        self.substitutions.push(found.clone());
        found
    }

    fn read_type(&mut self) -> Option<Arc<Type>> {
        self.depth += 1;
        let found = if self.depth > DEEPEST { None } else { self.read_type_here() };
        self.depth -= 1;
        found
    }

    fn read_type_here(&mut self) -> Option<Arc<Type>> {
        for (letters, name) in BUILTINS {
            if self.take(letters.as_bytes()) {
                return Some(Arc::new(Type::Builtin(letters, name)));
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
            // A type that a compiler has beside those of the language.
            b'u' => {
                self.rest = self.rest.get(1..)?;
                let name = self.source_name()?;
                Some(self.remember(Type::Named { inside: None, name, arguments: None }))
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

    fn pointer(&mut self, sign: &'static str) -> Option<Arc<Type>> {
        self.rest = self.rest.get(1..)?;
        let pointee = self.read_type()?;
        Some(self.remember(Type::Pointer(pointee, sign)))
    }

    fn qualified(&mut self) -> Option<Arc<Type>> {
        let mut words = String::new();
        // As they stand in a name; they are printed the other way round.
        for (letter, word) in [(b"r", " restrict"), (b"V", " volatile"), (b"K", " const")] {
            if self.take(letter) {
                words.insert_str(0, word);
            }
        }
        let qualified = self.read_type()?;
        Some(self.remember(Type::Qualified(qualified, words)))
    }

    /// `A4_f`.
    fn array(&mut self) -> Option<Arc<Type>> {
        self.rest = self.rest.get(1..)?;
        let length = self.digits().to_owned();
        if !self.take(b"_") {
            return None;
        }
        let element = self.read_type()?;
        Some(self.remember(Type::Array(element, length)))
    }

    /// `T_`, `T0_`: as it is without arguments of its own.
    fn parameter_of_template(&mut self) -> Option<Arc<Type>> {
        self.rest = self.rest.get(1..)?;
        let index = self.sequence(10)?;
        let Argument::Type(found) = self.arguments.get(index)?.clone() else { return None };
        if self.rest.first() == Some(&b'I') {
            return None;
        }
        self.substitutions.push(found.clone());
        Some(found)
    }

    /// `S_`, `S0_`, up to `SZ_` and on.
    fn substitution(&mut self) -> Option<Arc<Type>> {
        if !self.take(b"S") {
            return None;
        }
        let index = self.sequence(36)?;
        self.substitutions.get(index).cloned()
    }

    /// The number before a `_`, which none at all begins: `_` is 0, `0_` is 1.
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

    /// `5saxpy`, with the mark of a `static` function before it and tags behind it.
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

    /// As many letters as the number before them says.
    fn counted(&mut self) -> Option<&'a str> {
        let length: usize = self.digits().parse().ok().filter(|&length| length > 0)?;
        let (name, rest) = (self.rest.get(..length)?, self.rest.get(length..)?);
        self.rest = rest;
        std::str::from_utf8(name).ok()
    }

    /// `5saxpy` or `St7complex`.
    fn unscoped(&mut self) -> Option<Arc<Type>> {
        let inside = self.take(b"St").then(standard);
        let name = self.source_name()?;
        Some(Arc::new(Type::Named { inside, name, arguments: None }))
    }

    /// What follows `N`, up to its `E`. Each step is a substitution, the whole as the last.
    fn nested(&mut self) -> Option<Arc<Type>> {
        let mut current: Option<Arc<Type>> = None;
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
                    self.remember(Type::Named { inside: current, name, arguments: None })
                }
            });
        }
        current
    }

    /// A template with the arguments that follow.
    fn template_of(&mut self, template: &Type) -> Option<Arc<Type>> {
        let Type::Named { inside, name, arguments: None } = template else { return None };
        if !self.take(b"I") {
            return None;
        }
        let mut arguments = Vec::new();
        while !self.take(b"E") {
            arguments.push(self.template_argument()?);
        }
        Some(Arc::new(Type::Named { inside: inside.clone(), name: name.clone(), arguments: Some(arguments) }))
    }

    fn template_argument(&mut self) -> Option<Argument> {
        if self.take(b"L") {
            return self.value().map(Argument::Value);
        }
        self.read_type().map(Argument::Type)
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
            Type::Builtin("b", _) if digits == "0" => "false".to_owned(),
            Type::Builtin("b", _) if digits == "1" => "true".to_owned(),
            Type::Builtin("i", _) => format!("{minus}{digits}"),
            Type::Builtin("j", _) => format!("{minus}{digits}u"),
            Type::Builtin("l", _) => format!("{minus}{digits}l"),
            Type::Builtin("m", _) => format!("{minus}{digits}ul"),
            Type::Builtin("x", _) => format!("{minus}{digits}ll"),
            Type::Builtin("y", _) => format!("{minus}{digits}ull"),
            other => format!("({other}){minus}{digits}"),
        })
    }
}

fn standard() -> Arc<Type> {
    Arc::new(Type::Named { inside: None, name: "std".to_owned(), arguments: None })
}

impl Type {
    /// Without `const` and its kind.
    pub(super) fn unqualified(&self) -> &Type {
        match self {
            Type::Qualified(inner, _) => inner.unqualified(),
            other => other,
        }
    }
}

/// As `c++filt` prints it. A type that substitutions made huge is cut off.
impl fmt::Display for Type {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 1024;
        let mut text = String::new();
        print(self, &mut text, MOST);
        if text.len() >= MOST {
            text.push_str("...");
        }
        formatter.write_str(&text)
    }
}

fn print(found: &Type, text: &mut String, most: usize) {
    if text.len() >= most {
        return;
    }
    match found {
        Type::Builtin(_, name) => text.push_str(name),
        Type::Named { inside, name, arguments } => {
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
                    Argument::Type(found) => print(found, text, most),
                    Argument::Value(value) => text.push_str(value),
                }
            }
            text.push_str(if text.ends_with('>') { " >" } else { ">" });
        }
        Type::Pointer(pointee, sign) => {
            // `const` of an array is of its elements.
            let (inner, words) = match &**pointee {
                Type::Qualified(inner, words) => (inner, words.as_str()),
                _ => (pointee, ""),
            };
            if let Type::Array(element, length) = &**inner {
                print(element, text, most);
                text.push_str(&format!("{words} ({sign}) [{length}]"));
                return;
            }
            print(pointee, text, most);
            text.push_str(sign);
        }
        Type::Qualified(inner, words) => {
            print(inner, text, most);
            text.push_str(words);
        }
        Type::Array(element, length) => {
            print(element, text, most);
            text.push_str(&format!(" [{length}]"));
        }
    }
}
