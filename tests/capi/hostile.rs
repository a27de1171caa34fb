//! A C program that calls every function of the header with NULL, zero, released and foreign handles, written from the
//! header, so that no function is missed.

use std::fmt::Write;

/// Pointers that may be NULL, by their parameter's name.
const OPTIONAL: &[&str] = &["length", "user", "executor"];
/// Functions that may succeed with NULL and 0 for every argument, besides those that write a text.
const ALLOWS_NULL: &[&str] = &["sv_release", "sv_set_executor", "sv_tensor_meshgrid"];
/// Functions that take the handle 0 for a default.
const ALLOWS_ZERO: &[&str] = &["sv_release", "sv_permutation"];
/// Functions that take pointers of the driver or of other libraries, which get NULL alone: no check could know others.
const TRUSTS_POINTERS: &[&str] = &["_from_raw", "_from_dlpack"];
/// Structs with a size that only callbacks get.
const ONLY_OF_CALLBACKS: [&str; 1] = ["sv_classifier_epoch"];
/// Functions that look at handles before a struct, with a handle that they take.
const HANDLES_FIRST: [(&str, &str); 6] = [
    ("sv_simulation_create", "live_network"),
    ("sv_classifier_classify", "live_classifier"),
    ("sv_matmul", "live_tensor"),
    ("sv_tensor_scaled_dot_product_attention", "live_tensor"),
    ("sv_matmul_with_aux", "live_tensor"),
    ("sv_matmul_add_to", "live_tensor"),
];
/// Functions that refuse another argument of zeros, such as a code or a count, before they look at a handle.
const OTHERS_FIRST: &[&str] = &[
    "sv_simulation_add_sampler",
    "sv_simulation_add_rule",
    "sv_simulation_add_rule_with_edits",
    "sv_simulation_keep_ledger",
    "sv_simulation_set_parameter",
    "sv_simulation_set_area_parameter",
    "sv_expression_cast",
    "sv_gpt_trainer_run",
    "sv_unary",
    "sv_binary",
    "sv_ternary",
    "sv_operation_in_place",
    "sv_operation_into",
    // Null memory.
    "sv_buffer_from_raw",
];
/// Functions that end objects of others; they are called after all others.
const LAST: &[&str] = &["sv_device_reset", "sv_shutdown"];

pub struct Parameter {
    kind: String,
    name: String,
    is_handle: bool,
}

impl Parameter {
    fn is_pointer(&self) -> bool {
        self.kind.contains('*')
    }

    fn is_optional(&self) -> bool {
        OPTIONAL.contains(&self.name.as_str()) || self.kind.contains('(')
    }
}

pub struct Function {
    result: String,
    pub name: String,
    parameters: Vec<Parameter>,
}

/// Returns the types of handles that the header declares.
fn handles(header: &str) -> Vec<&str> {
    let opaque = header.lines().filter_map(|line| line.strip_prefix("typedef struct ")?.strip_suffix(';'));
    let opaque = opaque.filter_map(|line| Some(line.split_once("_object *")?.1));
    opaque.chain(["sv_object"]).collect()
}

/// Returns the header without its inline functions that no macro defines.
fn without_inline_functions(header: &str) -> String {
    let mut parts = header.split("\nSV_INLINE ");
    let mut rest = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        rest.push_str(part.split_once("\n}\n").map_or(part, |(_, after)| after));
    }
    rest
}

/// Returns the functions of the library that the header declares, in its order.
pub fn functions(header: &str) -> Vec<Function> {
    let handles = handles(header);
    let header = &without_inline_functions(header);
    let (before, after) = header.split_once("/* A function of the header itself. */").unwrap_or((header, ""));
    let after = after.split_once("#undef SV_DEFINE_TERNARY").map_or("", |(_, after)| after);
    let (mut code, header) = (String::new(), format!("{before}{after}"));
    for (number, part) in header.split("/*").enumerate() {
        code.push_str(if number == 0 { part } else { part.split_once("*/").map_or("", |(_, code)| code) });
    }
    let lines: Vec<&str> = code.lines().filter(|line| !line.starts_with('#')).collect();
    let code = lines.join(" ").replace("extern \"C\" {", "");
    code.split(';').filter_map(|declaration| function(declaration, &handles)).collect()
}

fn function(declaration: &str, handles: &[&str]) -> Option<Function> {
    let (head, parameters) = declaration.trim().split_once('(')?;
    let at = head.rfind("sv_").filter(|_| !head.starts_with("typedef"))?;
    let mut function = Function {
        result: head[..at].trim().to_owned(),
        name: head[at..].trim().to_owned(),
        parameters: Vec::new(),
    };
    let (mut depth, mut start) = (0, 0);
    let parameters = parameters.trim_end().strip_suffix(')')?;
    let ends = parameters.char_indices().filter(|(_, letter)| {
        depth += i32::from(*letter == '(') - i32::from(*letter == ')');
        *letter == ',' && depth == 0
    });
    let ends: Vec<usize> = ends.map(|(at, _)| at).chain([parameters.len()]).collect();
    for end in ends {
        let text = parameters[start..end].trim();
        start = end + 1;
        if text == "void" || text.is_empty() {
            continue;
        }
        let name = text.rfind(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(0);
        let (kind, name) = if text.contains("(*") { (text, "callback") } else { text.split_at(name + 1) };
        let (kind, name) = (kind.trim().to_owned(), name.to_owned());
        let is_handle = handles.contains(&kind.as_str());
        function.parameters.push(Parameter { kind, name, is_handle });
    }
    Some(function)
}

/// The values of the handles in a call.
#[derive(Clone, Copy, PartialEq)]
enum Handles {
    Live,
    Number(&'static str),
    Stale,
    /// The released object `kind` of `prepare_released`.
    Released,
    Foreign,
}

impl Function {
    fn is_exempt(&self, list: &[&str]) -> bool {
        list.iter().any(|name| self.name == *name || (name.starts_with('_') && self.name.contains(name)))
    }

    fn has_handles(&self) -> bool {
        self.parameters.iter().any(|parameter| parameter.is_handle)
    }

    /// Returns whether every argument may be NULL or 0. A text needs no memory if its capacity is 0.
    fn allows_null(&self) -> bool {
        let writes_text = self.parameters.iter().any(|parameter| parameter.name == "capacity");
        let is_fine = |parameter: &Parameter| {
            !parameter.is_pointer() || parameter.is_optional() || (writes_text && parameter.kind == "char *")
        };
        self.is_exempt(ALLOWS_NULL) || (!self.has_handles() && self.parameters.iter().all(is_fine))
    }

    fn call(&self, handles: Handles, is_null: impl Fn(&Parameter) -> bool) -> String {
        let values: Vec<String> = (self.parameters.iter().enumerate())
            .map(|(number, parameter)| {
                let is_event = parameter.name.contains("event") || self.name.starts_with("sv_event");
                let is_stream = parameter.name.contains("stream") || !is_event;
                if parameter.is_pointer() {
                    let only_null = parameter.kind.contains('(') || self.is_exempt(TRUSTS_POINTERS);
                    let null = only_null || is_null(parameter);
                    if null { "NULL".to_owned() } else { format!("(void *)memory[{}]", number % 8) }
                } else if parameter.is_handle {
                    let value = match handles {
                        Handles::Number(number) => number,
                        Handles::Released => "released[kind]",
                        Handles::Stale if is_stream => "stale_stream",
                        Handles::Stale => "stale_event",
                        Handles::Live if is_stream => "stream",
                        Handles::Live => "event",
                        Handles::Foreign if is_stream && parameter.name.contains("stream") => "event",
                        Handles::Foreign if is_event => "stream",
                        Handles::Foreign => "event",
                    };
                    format!("(void *){value}")
                } else {
                    // A count in a call with memory is one element, which the memory has.
                    let null = self.parameters.iter().filter(|other| other.is_pointer()).all(&is_null);
                    if parameter.kind == "size_t" && !null { "1".to_owned() } else { "0".to_owned() }
                }
            })
            .collect();
        format!("{}({})", self.name, values.join(", "))
    }
}

/// Writes calls with counts that no memory has and a handle that is none: the handle is looked at before the arrays, of which
/// the memory has one element.
fn large_calls(text: &mut String, function: &Function) {
    let is_count = |parameter: &Parameter| parameter.kind == "size_t";
    let has_count = function.has_handles() && function.parameters.iter().any(is_count);
    if !has_count || function.is_exempt(TRUSTS_POINTERS) {
        return;
    }
    let call = function.call(Handles::Number("0"), |_| false);
    let (name, arguments) = call.split_once('(').unwrap_or_default();
    let arguments: Vec<&str> = arguments.trim_end_matches(')').split(", ").collect();
    for count in ["(size_t)1 << 44", "(size_t)1 << 62"] {
        let arguments: Vec<&str> = (arguments.iter().zip(&function.parameters))
            .map(|(argument, parameter)| if is_count(parameter) { count } else { argument })
            .collect();
        let may_succeed = i32::from(function.is_exempt(ALLOWS_ZERO));
        writeln!(text, "    clear();").unwrap();
        writeln!(
            text,
            "    expect(\"{name}\", \"{count} elements\", {may_succeed}, {name}({}));",
            arguments.join(", ")
        )
        .unwrap();
    }
}

/// Returns the structs of the header that begin with their size.
fn sized_structures(header: &str) -> Vec<&str> {
    let structures = header.split("typedef struct ").skip(1).filter_map(|part| part.split_once('{'));
    let is_sized = |body: &str| body.split('}').next().is_some_and(|fields| fields.contains(" size_t size;"));
    structures.filter(|(_, body)| is_sized(body)).map(|(name, _)| name.trim()).collect()
}

/// Returns the struct of a pointer to one with its size.
fn structure_of<'a>(parameter: &Parameter, sized: &[&'a str]) -> Option<&'a str> {
    let kind = parameter.kind.trim_start_matches("const ").strip_prefix("struct ")?;
    sized.iter().copied().find(|name| kind.strip_suffix('*').is_some_and(|kind| kind.trim() == *name))
}

/// Writes calls with a released object of each kind. One of them at least must reach the check of its handle.
fn released_calls(text: &mut String, function: &Function, sized: &[&str]) {
    if function.result != "int32_t" || !function.has_handles() || function.is_exempt(&["sv_release"]) {
        return;
    }
    let names: Vec<&str> = function.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
    let (name, names) = (&function.name, names.join("|"));
    let call = function.call(Handles::Released, |_| false);
    writeln!(text, "    seen = 0;\n    for (size_t kind = 0; kind < released_count; kind++) {{").unwrap();
    writeln!(text, "        clear();").unwrap();
    set_sizes(text, function, sized);
    writeln!(text, "        seen |= expect_released(\"{name}\", \"|{names}|\", kind, {call});\n    }}")
        .unwrap();
    let is_first = i32::from(!function.is_exempt(OTHERS_FIRST));
    writeln!(text, "    expect_seen(\"{name}\", seen, {is_first});").unwrap();
}

/// Writes the sizes of a call's structs into its memory.
fn set_sizes(text: &mut String, function: &Function, sized: &[&str]) {
    for (number, parameter) in function.parameters.iter().enumerate() {
        if let Some(name) = structure_of(parameter, sized) {
            writeln!(text, "    *(size_t *)memory[{}] = sizeof({name});", number % 8).unwrap();
        }
    }
}

/// Writes calls with structs of every wrong size and of a later version. Returns the structs that the function takes.
fn size_calls<'a>(text: &mut String, function: &Function, sized: &[&'a str]) -> Vec<&'a str> {
    let first = HANDLES_FIRST.iter().find(|(name, _)| *name == function.name);
    let call = function.call(Handles::Number(first.map_or("0", |(_, handle)| handle)), |_| false);
    let mut taken = Vec::new();
    for (number, parameter) in function.parameters.iter().enumerate() {
        let Some(structure) = structure_of(parameter, sized) else { continue };
        taken.push(structure);
        let (function_name, name, at) = (&function.name, &parameter.name, number % 8);
        let own = format!("sizeof({structure})");
        for given in
            ["0", "1", &format!("{own} - 1"), &format!("{own} - 8"), "((size_t)1 << 16) + 1", "SIZE_MAX"]
        {
            writeln!(text, "    clear();").unwrap();
            set_sizes(text, function, sized);
            writeln!(text, "    *(size_t *)memory[{at}] = {given};").unwrap();
            writeln!(text, "    expect_size(\"{function_name}\", \"{name}\", {own}, {given}, {call});")
                .unwrap();
        }
        for is_set in [0, 1] {
            writeln!(text, "    clear();").unwrap();
            set_sizes(text, function, sized);
            writeln!(text, "    *(size_t *)memory[{at}] = {own} + 16;").unwrap();
            writeln!(text, "    memory[{at}][{own} + 15] = {is_set};").unwrap();
            writeln!(text, "    expect_later(\"{function_name}\", \"{name}\", {is_set}, {call});").unwrap();
        }
    }
    taken
}

/// Writes the program.
pub fn program(header: &str) -> String {
    let all = functions(header);
    for name in ALLOWS_NULL.iter().chain(LAST) {
        assert!(all.iter().any(|function| function.name == *name), "{name} is not in the header");
    }
    let (last, others): (Vec<&Function>, Vec<&Function>) =
        all.iter().partition(|function| function.is_exempt(LAST));
    let mut text = include_str!("hostile.c").to_owned();
    text.push_str("\nint main(int argc, char **argv)\n{\n    int seen = 0;\n\n    CHECK(argc == 2);\n    prepare();\n    prepare_released(argv[1]);\n");
    let sized = sized_structures(header);
    let mut taken = Vec::new();
    for function in &others {
        calls(&mut text, function);
        released_calls(&mut text, function, &sized);
        large_calls(&mut text, function);
        taken.extend(size_calls(&mut text, function, &sized));
    }
    let unseen: Vec<&str> = sized.iter().copied().filter(|name| !taken.contains(name)).collect();
    assert_eq!(unseen, ONLY_OF_CALLBACKS, "structs with a size that no function takes");
    text.push_str("    OK(sv_device_reset(0));\n    OK(sv_shutdown());\n");
    for function in others.iter().chain(&last).filter(|function| function.result == "int32_t") {
        let wanted = match function.name.as_str() {
            "sv_release" | "sv_shutdown" => "SV_OK",
            _ => "SV_ERROR_SHUT_DOWN",
        };
        let call = function.call(Handles::Number("0"), |_| true);
        writeln!(text, "    STATUS({wanted}, {call});").unwrap();
    }
    text.push_str("    return failures != 0;\n}\n");
    text
}

fn calls(text: &mut String, function: &Function) {
    if function.result != "int32_t" {
        writeln!(text, "    (void){};", function.call(Handles::Number("0"), |_| true)).unwrap();
        return;
    }
    let mut write = |what: &str, may_succeed: bool, call: String| {
        let (name, may_succeed) = (&function.name, i32::from(may_succeed));
        writeln!(text, "    clear();\n    expect(\"{name}\", \"{what}\", {may_succeed}, {call});").unwrap();
    };
    write("NULL and 0", function.allows_null(), function.call(Handles::Number("0"), |_| true));
    if function.has_handles() {
        let is_generic = function.parameters.iter().any(|parameter| parameter.kind == "sv_object");
        for (what, handles) in [
            ("handle 0", Handles::Number("0")),
            ("handle 1", Handles::Number("1")),
            ("handle of ones", Handles::Number("UINT64_MAX")),
            ("stale handles", Handles::Stale),
            ("foreign handles", Handles::Foreign),
        ] {
            let is_free = function.is_exempt(ALLOWS_ZERO) && handles == Handles::Number("0");
            if !(is_generic && handles == Handles::Foreign) {
                write(what, is_free, function.call(handles, |_| false));
            }
        }
    }
    for pointer in function.parameters.iter().filter(|parameter| parameter.is_pointer()) {
        let call = function.call(Handles::Live, |other| std::ptr::eq(other, pointer));
        write(&format!("NULL as {}", pointer.name), pointer.is_optional(), call);
    }
}

#[test]
fn the_header_is_understood() {
    let found = functions(
        "/* int32_t sv_no(void); */\n#define X 1\nextern \"C\" {\nconst char *sv_a(void);\n\
        typedef struct sv_stream_object *sv_stream;\nint32_t sv_b(sv_stream stream,\n  const float *x, void (*f)(void*, int), size_t count);\n}\n",
    );
    assert_eq!(found.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["sv_a", "sv_b"]);
    assert_eq!((found[0].result.as_str(), found[0].parameters.len()), ("const char *", 0));
    let call = found[1].call(Handles::Stale, |_| false);
    assert_eq!(call, "sv_b((void *)stale_stream, (void *)memory[1], NULL, 1)");
    assert_eq!(found[1].call(Handles::Foreign, |_| true), "sv_b((void *)event, NULL, NULL, 0)");
}
