//! The public names that the sources of each face have.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::super::{METHOD_TOPICS, tensor_methods};
use super::{read, root};

/// Public items and their members, by face.
pub struct Names {
    /// `module::Item`, of `src`.
    rust: BTreeSet<String>,
    /// The names that `src/lib.rs` exports from a module, with their paths.
    at_root: BTreeMap<String, String>,
    /// The text of each module, for members of its types.
    modules: BTreeMap<String, String>,
    tensor_methods: BTreeSet<String>,
    c: BTreeSet<String>,
    c_functions: BTreeSet<String>,
    /// Classes with their text, and functions without one.
    cpp: BTreeMap<String, String>,
    /// Items, and members as `module.Class.member`.
    python: BTreeSet<String>,
    python_items: BTreeSet<String>,
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Returns whether the text has this word.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_word) && !text[at + word.len()..].starts_with(is_word))
}

fn first_word(text: &str) -> &str {
    text.split(|letter| !is_word(letter)).next().unwrap_or("")
}

/// The sources below a folder, in the order of their paths.
fn texts(folder: &Path, ending: &str, found: &mut Vec<String>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            texts(&path, ending, found);
        } else if path.extension().is_some_and(|found| found == ending) {
            found.push(fs::read_to_string(&path).expect("sources are text"));
        }
    }
}

/// The names that a module exports: `pub use path::{A, B};`, `pub use path::A;`, `pub fn a`, `pub struct A`, `pub mod a`.
fn exports(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_hidden = false;
    for statement in text.split_inclusive([';', '{', '}']).collect::<String>().split("\npub ").skip(1) {
        if let Some(path) = statement.strip_prefix("use ") {
            let path = path.split(';').next().unwrap_or("");
            let list = path.split_once('{').map_or(path.rsplit("::").next().unwrap_or(""), |(_, list)| list);
            names.extend(list.split([',', '}']).map(|name| first_word(name.trim()).to_owned()));
        } else {
            let mut words = statement.split_whitespace().skip_while(|word| *word == "unsafe");
            let is_item = ["fn", "struct", "enum", "trait", "mod", "const", "static", "type"]
                .contains(&words.next().unwrap_or(""));
            if is_item && !is_hidden {
                names.push(first_word(words.next().unwrap_or("")).to_owned());
            }
        }
        is_hidden = statement.trim_end().ends_with("#[doc(hidden)]");
    }
    names.retain(|name| !name.is_empty() && !name.starts_with("__"));
    names
}

/// The blocks of a module's text whose first line is of this type: `impl`, `pub trait`, `pub enum` and `pub struct`.
fn blocks_of<'a>(text: &'a str, kind: &'a str) -> impl Iterator<Item = &'a str> {
    let heads = ["impl", "pub trait ", "pub enum ", "pub struct "];
    let mut lines = text.lines();
    let mut is_inside = false;
    std::iter::from_fn(move || {
        loop {
            let line = lines.next()?;
            if line == "}" {
                is_inside = false;
            } else if heads.iter().any(|head| line.starts_with(head)) {
                is_inside = has_word(line, kind) && line.ends_with('{');
            } else if is_inside {
                return Some(line);
            }
        }
    })
}

/// A line of a block without the words before its name.
fn declared(line: &str) -> &str {
    let mut code = line.trim_start();
    for word in ["pub ", "const ", "unsafe ", "fn ", "struct ", "enum ", "trait "] {
        code = code.strip_prefix(word).unwrap_or(code);
    }
    first_word(code)
}

impl Names {
    pub fn of_sources() -> Names {
        let library = read("src/lib.rs");
        let (mut rust, mut at_root, mut modules) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
        for module in exports(&library) {
            let folder = root().join("src").join(&module);
            if module == "capi" || module == "sys" || !folder.is_dir() {
                continue;
            }
            let head = ["src/NAME/mod.rs", "src/NAME.rs"].map(|path| path.replace("NAME", &module));
            let head = head.into_iter().find(|path| root().join(path).exists()).expect("a module has a file");
            rust.extend(exports(&read(&head)).into_iter().map(|item| format!("{module}::{item}")));
            let mut sources = vec![read(&head)];
            texts(&folder, "rs", &mut sources);
            modules.insert(module, sources.join("\n"));
        }
        for statement in library.split("\npub use ").skip(1) {
            let path = statement.split(';').next().unwrap_or("");
            let (module, list) = path.split_once("::").expect("a path has a module");
            for name in list.split([',', '{', '}']).map(str::trim).filter(|name| !name.is_empty()) {
                at_root.insert(name.to_owned(), format!("{module}::{name}"));
            }
        }
        rust.extend(at_root.values().cloned());

        let (mut c, mut c_functions) = (BTreeSet::new(), BTreeSet::new());
        for line in read("include/selvedge.symbols").lines() {
            let (kind, text) = line.split_once(' ').expect("a kind and a declaration");
            let head = text.split_once('(').map_or(text, |(head, _)| head);
            let words: Vec<&str> =
                head.split(|letter| !is_word(letter)).filter(|word| !word.is_empty()).collect();
            if kind == "function" {
                c_functions.insert((*words.last().expect("a function has a name")).to_owned());
            }
            c.extend(words.into_iter().map(str::to_owned));
        }

        let mut cpp = BTreeMap::new();
        let mut headers = Vec::new();
        texts(&root().join("include/selvedge"), "hpp", &mut headers);
        for header in &headers {
            classes(header, &mut cpp);
        }

        let (mut python, mut python_items) = (BTreeSet::new(), BTreeSet::new());
        for entry in fs::read_dir(root().join("python/package/selvedge")).expect("the package is there") {
            let path = entry.expect("a readable folder").path();
            if path.extension().is_some_and(|ending| ending == "pyi") {
                let stem = path.file_stem().expect("a name").to_string_lossy().replace("__init__", "sv");
                let stub = fs::read_to_string(&path).expect("stubs are text");
                stub_names(&stub, &stem, &mut python, &mut python_items);
            }
        }
        let topics = METHOD_TOPICS.iter().flat_map(|(_, sources)| sources.iter());
        let tensor_methods = topics.flat_map(|path| tensor_methods(path)).collect();
        Names { rust, at_root, modules, tensor_methods, c, c_functions, cpp, python, python_items }
    }

    /// Returns whether the sources of a face have a name, or one that a pattern stands for.
    pub fn has(&self, face: usize, name: &str) -> bool {
        if let Some(start) = name.strip_suffix('*') {
            return self.items(face).iter().any(|item| item.starts_with(start))
                || start.strip_suffix("::").is_some_and(|module| face == 0 && self.rust.contains(module));
        }
        match face {
            0 => self.has_rust(&self.whole(0, name)),
            1 => self.c.contains(name),
            2 => self.has_cpp(name),
            3 => self.python.contains(name),
            _ => has_command(name),
        }
    }

    /// The items that need a row.
    pub fn items(&self, face: usize) -> BTreeSet<String> {
        match face {
            // The shapes of schedules have rows of their own.
            0 => self.rust.iter().cloned().chain(self.shapes_of_schedules()).collect(),
            1 => self.c_functions.clone(),
            2 => {
                let is_public = |name: &str| !name.split("::").any(|space| space == "detail");
                let classes = self.cpp.iter().filter(|(name, text)| !text.is_empty() && is_public(name));
                classes.map(|(name, _)| name.clone()).collect()
            }
            3 => self.python_items.clone(),
            _ => {
                let options = read("src/bin/selvedge/options/mod.rs");
                let (_, rest) = options.split_once("pub enum Command {").expect("the program has commands");
                let block = rest.split("\n}").next().unwrap_or("");
                commands(&format!("pub enum Command {{{block}")).into_keys().collect()
            }
        }
    }

    /// A name with the module of a Rust item that the crate exports at its root.
    pub fn whole(&self, face: usize, name: &str) -> String {
        let (head, rest) = name.split_once("::").map_or((name, ""), |(head, _)| (head, &name[head.len()..]));
        match self.at_root.get(head) {
            Some(path) if face == 0 => format!("{path}{rest}"),
            _ => name.to_owned(),
        }
    }

    fn shapes_of_schedules(&self) -> Vec<String> {
        let text = self.modules.get("nn").map_or("", String::as_str);
        let lines = blocks_of(text, "ScheduleShape").filter(|line| {
            line.starts_with("    ")
                && line[4..].starts_with(char::is_uppercase)
                && line.ends_with([',', '{'])
        });
        lines.map(|line| format!("nn::ScheduleShape::{}", first_word(line.trim()))).collect()
    }

    fn has_rust(&self, name: &str) -> bool {
        let parts: Vec<&str> = name.split("::").collect();
        let Some(text) = self.modules.get(parts[0]) else {
            let is_macro = |name: &str| self.modules["launcher"].contains(&format!("macro_rules! {name} {{"));
            return self.rust.contains(name) || name.strip_suffix('!').is_some_and(is_macro);
        };
        match parts[..] {
            [_, _] => self.rust.contains(name),
            ["tensor", "Tensor", method] if self.tensor_methods.contains(method) => true,
            [module, kind, member] if self.rust.contains(&format!("{module}::{kind}")) => {
                // An item of a module within, or a member of a type.
                text.lines().any(|line| line.starts_with("pub ") && declared(&line[4..]) == member)
                    && kind.starts_with(char::is_lowercase)
                    || blocks_of(text, kind).any(|line| declared(line) == member)
            }
            _ => false,
        }
    }

    fn has_cpp(&self, name: &str) -> bool {
        if self.cpp.contains_key(name) {
            return true;
        }
        let Some((class, member)) = name.rsplit_once("::") else {
            return false;
        };
        let Some(text) = self.cpp.get(class) else {
            return false;
        };
        // The names that a class has from the classes that its head names.
        let head = text.split('{').next().unwrap_or("");
        let space = class.rsplit_once("::").map_or("", |(space, _)| space);
        let bases = head.split(|letter| !is_word(letter)).filter_map(|word| {
            let paths = [format!("{space}::{word}"), format!("detail::{word}"), word.to_owned()];
            paths.into_iter().filter(|path| path != class).find_map(|path| self.cpp.get(&path))
        });
        has_word(text, member) || bases.into_iter().any(|text| has_word(text, member))
    }
}

/// Adds the classes and functions of a header, by their names in the namespace `selvedge`.
fn classes(header: &str, found: &mut BTreeMap<String, String>) {
    let mut spaces: Vec<&str> = Vec::new();
    let mut depth = 0usize;
    let mut class: Option<(String, String)> = None;
    for line in header.lines() {
        let code = line.split("//").next().unwrap_or("");
        let (opened, closed) = (code.matches('{').count(), code.matches('}').count());
        if let Some(space) = code.strip_prefix("namespace ").and_then(|rest| rest.strip_suffix(" {")) {
            spaces.push(space);
            depth += 1;
            continue;
        }
        let is_outside = depth == spaces.len();
        if is_outside && code.starts_with('}') {
            spaces.pop();
            depth = depth.saturating_sub(1);
            continue;
        }
        let qualified = |name: &str| spaces.iter().copied().chain([name]).collect::<Vec<_>>().join("::");
        if is_outside && class.is_none() {
            let words = ["class ", "struct ", "enum class "];
            let declaration = words.iter().find_map(|word| code.strip_prefix(word));
            let declaration = declaration.map(|rest| rest.trim_start_matches("[[nodiscard]] "));
            if let Some(declaration) = declaration.filter(|_| !code.trim_end().ends_with(';') || opened > 0) {
                class = Some((qualified(first_word(declaration)), String::new()));
            } else if let Some((head, arguments)) = code.split_once('(')
                && code.starts_with(char::is_alphabetic)
            {
                // A macro makes a function of the name of its first argument.
                let is_macro = head.starts_with("SELVEDGE_");
                let name = head.rsplit(|letter| !is_word(letter)).next().unwrap_or("");
                if is_macro {
                    found.entry(qualified(first_word(arguments))).or_default();
                } else if head.contains(' ') && !head.contains("::~") {
                    found.entry(qualified(name)).or_default();
                }
            }
        }
        depth = (depth + opened).saturating_sub(closed);
        if let Some((name, text)) = &mut class {
            *text += code;
            *text += "\n";
            if depth == spaces.len() && text.contains('{') {
                *found.entry(name.clone()).or_default() += text;
                class = None;
            }
        }
    }
}

/// Adds the names of a stub; `items` has its public classes and functions alone.
fn stub_names(stub: &str, module: &str, names: &mut BTreeSet<String>, items: &mut BTreeSet<String>) {
    let mut class = "";
    for line in stub.lines() {
        let code = line.trim_start();
        let declaration = ["class ", "def "].iter().find_map(|word| code.strip_prefix(word));
        let name = first_word(declaration.unwrap_or(code));
        let is_value = code[name.len()..].starts_with([':', ' ']);
        if name.is_empty() || declaration.is_none() && !is_value {
            continue;
        }
        if line.starts_with("    ") {
            names.insert(format!("{module}.{class}.{name}"));
        } else {
            names.insert(format!("{module}.{name}"));
            if declaration.is_some() && !name.starts_with('_') {
                items.insert(format!("{module}.{name}"));
            }
            class = if code.starts_with("class ") { name } else { "" };
        }
    }
}

/// The commands that enumerations of a file of options have, with the struct of each one's options.
fn commands(options: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut renamed = None;
    let mut is_inside = false;
    for line in options.lines() {
        if line.starts_with("pub enum ") {
            is_inside = true;
        } else if line == "}" {
            is_inside = false;
        } else if let Some((_, rest)) = line.split_once("#[command(name = \"").filter(|_| is_inside) {
            renamed = rest.split('"').next();
        } else if let Some((variant, inside)) = line.trim().split_once('(').filter(|_| is_inside)
            && variant.starts_with(char::is_uppercase)
        {
            let mut kebab = String::new();
            for (at, letter) in variant.chars().enumerate() {
                if letter.is_uppercase() && at > 0 {
                    kebab.push('-');
                }
                kebab.extend(letter.to_lowercase());
            }
            let options = inside.trim_start_matches("Box<").trim_end_matches([')', ',', '>']);
            found.insert(renamed.take().map_or(kebab, str::to_owned), options.to_owned());
        }
    }
    found
}

/// Returns whether the program has a command, with the commands and options within it: `train --lora`, `burst run`.
fn has_command(text: &str) -> bool {
    let mut files = Vec::new();
    texts(&root().join("src/bin/selvedge/options"), "rs", &mut files);
    let mut options = read("src/bin/selvedge/options/mod.rs");
    text.split(' ').all(|word| match word.strip_prefix("--") {
        Some(option) => {
            let field = format!("    pub {}:", option.replace('-', "_"));
            options.contains(&field) || options.contains(&format!("long = \"{option}\""))
        }
        None => commands(&options).get(word).is_some_and(|name| {
            let file = files.iter().find(|file| file.contains(&format!("pub struct {name} {{")));
            file.map(|file| options.clone_from(file)).is_some()
        }),
    })
}
