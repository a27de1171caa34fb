//! Parameter types from a kernel's mangled name, and the arguments that they accept.
//!
//! Launches check arguments against this declaration in addition to the image's parameters, which have only sizes and
//! kinds:
//!
//! | declared | takes |
//! |---|---|
//! | pointer to a number | memory of such numbers; signed and unsigned are one, as are `long` and `long long` |
//! | pointer to `void`, `char` or `unsigned char` | memory of anything |
//! | pointer to anything else, such as a class | memory of anything |
//! | `__half`, `__nv_bfloat16`, complex | that number, if the argument is a float or complex |
//!
//! Memory of `u8` has a type known only at run time, and is accepted by every pointer. So is memory of a type that is
//! not a number, such as a struct or an array. A refused argument is therefore always a mistake.

use std::any::TypeId;
use std::fmt;

use half::{bf16, f16};
use num_complex::Complex;

use super::mangled::{self, CxxType, TemplateArgument};
use super::parameter::{ArgumentKind, Parameter, ParameterKind};
use crate::error::{Error, Result};

/// A Rust type, as an argument carries it: the type of its memory's elements, or of the value itself.
#[derive(Clone, Copy)]
pub struct ValueType {
    id: fn() -> TypeId,
    name: fn() -> &'static str,
}

impl ValueType {
    /// The type `T`.
    pub const fn of<T: 'static>() -> ValueType {
        ValueType { id: TypeId::of::<T>, name: std::any::type_name::<T> }
    }

    /// Returns whether it is `T`.
    pub fn is<T: 'static>(self) -> bool {
        (self.id)() == TypeId::of::<T>()
    }

    /// The name, with its path.
    pub fn name(self) -> &'static str {
        (self.name)()
    }

    /// The number type; `None` for other types, and for `u8`, which is untyped memory.
    fn number(self) -> Option<NumberType> {
        NUMBERS
            .iter()
            .find(|(rust, _)| rust.iter().any(|known| (known.id)() == (self.id)()))
            .map(|(_, it)| *it)
    }
}

impl PartialEq for ValueType {
    fn eq(&self, other: &ValueType) -> bool {
        (self.id)() == (other.id)()
    }
}

impl fmt::Debug for ValueType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The type of an argument.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ArgumentType {
    /// The argument's kind.
    pub kind: ArgumentKind,
    /// The size in bytes.
    pub size: usize,
    /// The type of the memory's elements, or of the value itself, if known.
    pub value: Option<ValueType>,
}

impl ArgumentType {
    /// An argument of this kind, size in bytes and type.
    pub const fn new(kind: ArgumentKind, size: usize, value: Option<ValueType>) -> ArgumentType {
        ArgumentType { kind, size, value }
    }
}

/// The number types that are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NumberType {
    /// An integer of this many bytes.
    Integer(usize),
    /// A float of this many bytes.
    Float(usize),
    Half,
    Brain,
    /// A complex number with parts of this many bytes.
    Complex(usize),
}

/// The Rust types of each number; the first one is used in messages.
const NUMBERS: &[(&[ValueType], NumberType)] = &[
    (&[ValueType::of::<i8>()], NumberType::Integer(1)),
    (&[ValueType::of::<u16>(), ValueType::of::<i16>()], NumberType::Integer(2)),
    (&[ValueType::of::<u32>(), ValueType::of::<i32>()], NumberType::Integer(4)),
    (
        &[ValueType::of::<u64>(), ValueType::of::<i64>(), ValueType::of::<usize>(), ValueType::of::<isize>()],
        NumberType::Integer(8),
    ),
    (&[ValueType::of::<u128>(), ValueType::of::<i128>()], NumberType::Integer(16)),
    (&[ValueType::of::<f32>()], NumberType::Float(4)),
    (&[ValueType::of::<f64>()], NumberType::Float(8)),
    (&[ValueType::of::<f16>()], NumberType::Half),
    (&[ValueType::of::<bf16>()], NumberType::Brain),
    (&[ValueType::of::<Complex<f32>>()], NumberType::Complex(4)),
    (&[ValueType::of::<Complex<f64>>()], NumberType::Complex(8)),
];

impl NumberType {
    /// Returns the number that a C++ type is; `None` for any other type, and for the character types of untyped memory.
    fn of(found: &CxxType) -> Option<NumberType> {
        Some(match found.unqualified() {
            CxxType::Builtin(letters, _) => match *letters {
                "a" | "b" | "Du" => NumberType::Integer(1),
                "s" | "t" | "Ds" => NumberType::Integer(2),
                "i" | "j" | "w" | "Di" => NumberType::Integer(4),
                "l" | "m" | "x" | "y" => NumberType::Integer(8),
                "n" | "o" => NumberType::Integer(16),
                "f" | "DF32_" => NumberType::Float(4),
                "d" | "DF64_" => NumberType::Float(8),
                "Dh" | "DF16_" => NumberType::Half,
                "DF16b" => NumberType::Brain,
                "Cf" => NumberType::Complex(4),
                "Cd" => NumberType::Complex(8),
                _ => return None,
            },
            // Device addresses.
            CxxType::Pointer(..) => NumberType::Integer(8),
            CxxType::Named { inside, name, arguments: None } => {
                match (inside.as_ref().map(|it| it.to_string()), name.as_str()) {
                    (None, "__half") => NumberType::Half,
                    (None, "__nv_bfloat16" | "__bf16") => NumberType::Brain,
                    // Of this crate's headers.
                    (Some(space), "f16") if space == "selvedge" => NumberType::Half,
                    (Some(space), "bf16") if space == "selvedge" => NumberType::Brain,
                    _ => return None,
                }
            }
            // Of `std`, `cuda::std`, `thrust` or this crate's header, which all consist of two numbers.
            CxxType::Named { name, arguments: Some(arguments), .. } if name == "complex" => {
                let [TemplateArgument::Type(part)] = arguments.as_slice() else { return None };
                match NumberType::of(part)? {
                    NumberType::Float(bytes) => NumberType::Complex(bytes),
                    _ => return None,
                }
            }
            _ => return None,
        })
    }

    /// Returns the Rust type to reinterpret memory as.
    fn rust(self) -> &'static str {
        let found = NUMBERS.iter().find(|(_, number)| *number == self);
        let name = found.and_then(|(rust, _)| rust.first()).map_or("u8", |first| first.name());
        match self {
            NumberType::Complex(4) => "Complex<f32>",
            NumberType::Complex(_) => "Complex<f64>",
            // Without the path of its crate.
            _ => name.rsplit("::").next().unwrap_or(name),
        }
    }
}

/// A parameter as declared in the source.
#[derive(Debug)]
struct Declared {
    /// The type in C++ notation.
    text: String,
    /// The number type of the parameter, or of its pointee.
    number: Option<NumberType>,
    /// The kind that an image would give.
    kind: Option<ParameterKind>,
}

/// A kernel's parameters as declared in the source.
#[derive(Debug)]
pub struct Declaration {
    name: String,
    parameters: Vec<Declared>,
}

impl Declaration {
    /// Parses a mangled name. Returns `None` for any other name, such as that of an `extern "C"` kernel, and for a name
    /// with unsupported types.
    ///
    /// ```
    /// use selvedge::driver::image::Declaration;
    /// let declaration = Declaration::of("_ZN6shapes5weighIfEEvPKT_PS1_i").unwrap();
    /// assert_eq!(declaration.to_string(), "weigh(float const*, float*, int)");
    /// assert!(Declaration::of("weigh").is_none());
    /// ```
    pub fn of(name: &str) -> Option<Declaration> {
        let function = mangled::parse(name)?;
        let parameters = function.parameters.iter().map(|found| {
            let kind = match found.unqualified() {
                CxxType::Pointer(..) => Some(ParameterKind::Address),
                CxxType::Builtin(..) => match NumberType::of(found) {
                    Some(NumberType::Integer(_)) => Some(ParameterKind::Integer),
                    Some(NumberType::Float(_)) => Some(ParameterKind::Float),
                    // Character types are ordinary values.
                    None if matches!(found.unqualified(), CxxType::Builtin("c" | "h", _)) => {
                        Some(ParameterKind::Integer)
                    }
                    _ => None,
                },
                _ => None,
            };
            let number = match found.unqualified() {
                CxxType::Pointer(pointee, _) => NumberType::of(pointee),
                _ => NumberType::of(found),
            };
            Declared { text: found.to_string(), number, kind }
        });
        Some(Declaration { name: function.name, parameters: parameters.collect() })
    }

    /// The kernel's name without namespaces and template arguments.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds the kinds that the image lacks, if it has as many parameters.
    pub(crate) fn refine(&self, parameters: &mut [Parameter]) {
        for (parameter, declared) in parameters.iter_mut().zip(&self.parameters) {
            let Some(kind) = declared.kind else { continue };
            let plain_pointer = parameter.kind == ParameterKind::Integer && parameter.size == 8;
            if parameter.kind == ParameterKind::Unknown || (plain_pointer && kind == ParameterKind::Address) {
                parameter.kind = kind;
            }
        }
    }

    /// The number of parameters.
    pub(crate) fn len(&self) -> usize {
        self.parameters.len()
    }

    /// Checks the type of argument `index` of a launch of `kernel`, beyond its kind and size.
    pub(crate) fn check(&self, kernel: &str, index: usize, argument: ArgumentType) -> Result<()> {
        let Some(declared) = self.parameters.get(index) else { return Ok(()) };
        let (Some(wanted), Some(value)) = (declared.number, argument.value) else { return Ok(()) };
        let Some(found) = value.number() else { return Ok(()) };
        let is_pointer = declared.kind == Some(ParameterKind::Address);
        // The image's kind covers values; this covers numbers of equal kind and size.
        let bits = matches!(found, NumberType::Integer(_)) && !is_pointer;
        if found == wanted || bits || is_pointer != (argument.kind == ArgumentKind::Address) {
            return Ok(());
        }
        let found = if is_pointer {
            let rust = wanted.rust();
            format!("memory of {} (if it holds {rust}, pass reinterpret::<{rust}>() of it)", value.name())
        } else {
            format!("a value of {}", value.name())
        };
        Err(Error::ArgumentMismatch {
            kernel: kernel.to_owned(),
            index,
            wanted: format!("'{}'", declared.text),
            found,
        })
    }
}

/// C++ notation, without namespaces.
impl fmt::Display for Declaration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters: Vec<&str> = self.parameters.iter().map(|declared| declared.text.as_str()).collect();
        write!(formatter, "{}({})", self.name, parameters.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names, and the output of `c++filt` for them, without the namespaces and template arguments of the function.
    const NAMES: &[(&str, &str)] = &[
        ("_Z3foov", "foo()"),
        ("_Z5saxpyPKfPff", "saxpy(float const*, float*, float)"),
        // Names by NVRTC.
        ("_Z3addPKfS0_Pfj", "add(float const*, float const*, float*, unsigned int)"),
        (
            "_Z10every_kindPyahstijxyN8selvedge3f16ENS0_4bf16EfdbNS0_7complexIfEENS3_IdEE5Mixed",
            "every_kind(unsigned long long*, signed char, unsigned char, short, unsigned short, int, unsigned int, long long, unsigned long long, selvedge::f16, selvedge::bf16, float, double, bool, selvedge::complex<float>, selvedge::complex<double>, Mixed)",
        ),
        ("_Z5scaleIfEvPT_S0_", "scale(float*, float)"),
        ("_ZN6shapes5weighIfEEvPKT_PS1_i", "weigh(float const*, float*, int)"),
        ("_Z10add_arrays5ArrayIKiES1_S_IiE", "add_arrays(Array<int const>, Array<int const>, Array<int>)"),
        ("_Z3fooPSt7complexIfES1_", "foo(std::complex<float>*, std::complex<float>*)"),
        ("_Z1kPA4_fPKA3_d", "k(float (*) [4], double const (*) [3])"),
        ("_Z1gPVKfrPKd", "g(float const volatile*, double const* restrict)"),
        ("_Z1hIfLi4ELb1ELj3ELln2EEvPT_", "h(float*)"),
        ("_Z1fP6__halfP13__nv_bfloat16", "f(__half*, __nv_bfloat16*)"),
        ("_Z1fPDF16_PDF16bPDh", "f(_Float16*, std::bfloat16_t*, half*)"),
        ("_Z1fPN4cuda3std3__47complexIdEE", "f(cuda::std::__4::complex<double>*)"),
        ("_ZL4fooaPf", "fooa(float*)"),
        ("_ZN12_GLOBAL__N_13fooEPf", "foo(float*)"),
        ("_Z1fPPfRKdOi", "f(float**, double const&, int&&)"),
        ("_Z1ePf5ColorPN2ns4EnumE", "e(float*, Color, ns::Enum*)"),
        ("_Z1fIN2ns1AIfEEEvPT_PS0_", "f(ns::A<float>*, ns*)"),
        ("_Z1fPvPKvPcPhPa", "f(void*, void const*, char*, unsigned char*, signed char*)"),
        ("_Z1fPCfPu6__bf16", "f(float _Complex*, __bf16*)"),
        ("_Z1fIfEvP3FooIT_Li4EE", "f(Foo<float, 4>*)"),
        ("_Z1fPK3FooILln2ELb1ELm3EE", "f(Foo<-2l, true, 3ul> const*)"),
        ("_Z1fP5OuterIS_IfEE", "f(Outer<Outer<float> >*)"),
        ("_ZN2ns1fEPNS_1AENS_1BIfEE", "f(ns::A*, ns::B<float>)"),
        ("_Z1fI3FooIS0_IfEEEvT_", "f(Foo<Foo<float> >)"),
        ("_Z1fPKPKf", "f(float const* const*)"),
        ("_ZN1a1bIiE1cIdEEvPT_NS0_IS2_EE", "c(double*, a::b<a::b<int>::c>)"),
        ("_Z3fooB5cxx11Pl", "foo[abi:cxx11](long*)"),
        (
            "_Z1fPbPsPtPjPmPxPyPnPoPdPePwPDi",
            "f(bool*, short*, unsigned short*, unsigned int*, unsigned long*, long long*, unsigned long long*, __int128*, unsigned __int128*, double*, long double*, wchar_t*, char32_t*)",
        ),
        (
            "_Z1fP1AP1BP1CP1DP1EP1FP1GP1HP1IP1JP1KP1LP1MP1NP1OP1PP1QP1RP1SP1TS0_SG_S12_",
            "f(A*, B*, C*, D*, E*, F*, G*, H*, I*, J*, K*, L*, M*, N*, O*, P*, Q*, R*, S*, T*, A*, I*, T*)",
        ),
    ];

    #[test]
    fn names_read_as_cxxfilt_prints_them() {
        for (name, wanted) in NAMES {
            let found = Declaration::of(name).map(|declaration| declaration.to_string());
            assert_eq!(found.as_deref(), Some(*wanted), "{name}");
        }
    }

    #[test]
    fn what_is_not_read_is_left_alone() {
        for name in [
            "",
            "saxpy",
            "_Z",
            "_Z5saxpy",
            "_Z9saxpyPf",
            "_Z1fPS9_",
            "_Z1fIJfdEEvDpPT_",
            "_Z1fIfEvNSt9enable_ifIXLb1EET_E4typeE",
            "_Z1fPFvvE",
            "_Z1fIZ4mainEUlvE_EvT_",
            "_ZN1AC1Ev",
            "_Z1fPU3AS1f",
            "_Z1fT_",
            "_Z0f",
            "_Z99999999999999999999f",
            "_Z1f\u{e9}",
            "_Z2\u{e9}i\u{e9}",
        ] {
            assert!(Declaration::of(name).is_none(), "{name}");
        }
    }

    #[test]
    fn damaged_names_are_read_to_their_end() {
        let mut random = 7u64;
        for (name, _) in NAMES {
            for cut in 0..name.len() {
                let _ = Declaration::of(&name[..cut]).map(|declaration| declaration.to_string());
            }
            for _ in 0..200 {
                let mut letters = name.as_bytes().to_vec();
                for _ in 0..3 {
                    random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let (at, letter) = (
                        (random >> 33) as usize % letters.len(),
                        b"_SNTIEPK09Zf"[(random >> 58) as usize % 12],
                    );
                    letters[at] = letter;
                }
                if let Ok(name) = std::str::from_utf8(&letters) {
                    let _ = Declaration::of(name).map(|declaration| declaration.to_string());
                }
            }
        }
    }

    #[test]
    fn hostile_names_are_answered_soon() {
        let deep = format!("_Z1f{}f", "P".repeat(4000));
        assert!(Declaration::of(&deep).is_none());
        let long = format!("_Z1f{}", "i".repeat(5000));
        assert!(Declaration::of(&long).is_none());
        // Each is twice as long as the one before, once printed.
        let mut doubling = "_Z1f1AIffE".to_owned();
        let mut digits = (0u32..300).map(|index| match index {
            0 => String::new(),
            _ => std::char::from_digit((index - 1) % 36, 36).unwrap_or('0').to_ascii_uppercase().to_string(),
        });
        let _ = digits.next();
        for digit in digits.take(35) {
            doubling += &format!("S_IS{digit}_S{digit}_E");
        }
        let text = Declaration::of(&doubling).expect("it is well formed").to_string();
        assert!(text.len() < 100_000, "{}", text.len());
        // A chain of pointers to earlier types.
        let chain = format!(
            "_Z1fPi{}",
            (0..36)
                .map(|index| match index {
                    0 => "PS_".to_owned(),
                    _ => format!(
                        "PS{}_",
                        std::char::from_digit(index - 1, 36).unwrap_or('0').to_ascii_uppercase()
                    ),
                })
                .collect::<String>()
        );
        assert!(Declaration::of(&chain).is_some());
    }

    fn memory<T: 'static>() -> ArgumentType {
        ArgumentType::new(ArgumentKind::Address, 8, Some(ValueType::of::<T>()))
    }

    #[derive(Clone, Copy)]
    struct Own;

    #[test]
    fn memory_fits_pointers_to_its_numbers() {
        let fits = |letters: &str, argument: ArgumentType| {
            let name = format!("_Z1f{letters}");
            let declaration = Declaration::of(&name).unwrap_or_else(|| panic!("{name}"));
            declaration.check(&name, 0, argument).is_ok()
        };
        macro_rules! table {
            ($($letters:literal: $($type:ty)*;)*) => {
                [$(($letters, vec![$(ValueType::of::<$type>()),*])),*]
            };
        }
        // Every row also accepts u8 and types that are not numbers.
        let table = table! {
            "Pf": f32;
            "PKd": f64;
            "Pi": u32 i32;
            "PVj": u32 i32;
            "Ps": u16 i16;
            "Pt": u16 i16;
            "Pl": u64 i64 usize isize;
            "Px": u64 i64 usize isize;
            "Py": u64 i64 usize isize;
            "PPf": u64 i64 usize isize;
            "Pa": i8;
            "Pb": i8;
            "Pn": u128 i128;
            "P6__half": f16;
            "PDF16_": f16;
            "P13__nv_bfloat16": bf16;
            "PN8selvedge3f16E": f16;
            "PKN8selvedge4bf16E": bf16;
            "PN8selvedge7complexIdEE": Complex<f64>;
            "PSt7complexIfE": Complex<f32>;
            "PKN4cuda3std3__47complexIdEE": Complex<f64>;
            "PN6thrust7complexIfEE": Complex<f32>;
        };
        macro_rules! all {
            ($($type:ty)*) => { [$(ValueType::of::<$type>()),*] };
        }
        let all =
            all!(i8 u16 i16 u32 i32 u64 i64 usize isize u128 i128 f16 bf16 f32 f64 Complex<f32> Complex<f64>);
        for (letters, takes) in &table {
            for value in all {
                let argument = ArgumentType::new(ArgumentKind::Address, 8, Some(value));
                assert_eq!(fits(letters, argument), takes.contains(&value), "{letters} and {value:?}");
            }
            for value in [memory::<u8>(), memory::<Own>(), memory::<[f32; 4]>()] {
                assert!(fits(letters, value), "{letters} and {value:?}");
            }
            assert!(fits(letters, ArgumentType::new(ArgumentKind::Address, 8, None)), "{letters}");
        }
        for letters in [
            "Pv",
            "PKv",
            "Pc",
            "Ph",
            "P6float2",
            "P3f16",
            "P3Own",
            "PN2ns4EnumE",
            "PA4_f",
            "PT_",
            "PSt6vectorIfE",
        ] {
            let letters = if letters == "PT_" { "I3OwnEvPT_" } else { letters };
            for value in all {
                let argument = ArgumentType::new(ArgumentKind::Address, 8, Some(value));
                assert!(fits(letters, argument), "{letters} and {value:?}");
            }
        }
    }

    #[test]
    fn values_of_equal_kind_and_size_are_told_apart() {
        let check = |letters: &str, kind, value: ValueType, size| {
            let argument = ArgumentType::new(kind, size, Some(value));
            Declaration::of(letters).expect("a name").check(letters, 0, argument)
        };
        let (float, bytes, integer) = (ArgumentKind::Float, ArgumentKind::Bytes, ArgumentKind::Integer);
        assert!(check("_Z1f6__half", float, ValueType::of::<f16>(), 2).is_ok());
        assert!(check("_Z1f6__half", integer, ValueType::of::<u16>(), 2).is_ok());
        let error = check("_Z1f6__half", float, ValueType::of::<bf16>(), 2).unwrap_err().to_string();
        assert!(
            error.contains("'__half'") && error.contains("a value of half::") && error.contains("bf16"),
            "{error}"
        );
        assert!(check("_Z1f13__nv_bfloat16", float, ValueType::of::<f16>(), 2).is_err());
        assert!(check("_Z1fSt7complexIfE", bytes, ValueType::of::<Complex<f32>>(), 8).is_ok());
        assert!(check("_Z1fSt7complexIfE", bytes, ValueType::of::<[f32; 2]>(), 8).is_ok());
    }

    #[test]
    fn an_error_names_both_types_and_the_way_out() {
        let declaration = Declaration::of("_Z5saxpyPKfPff").expect("a name");
        let error = declaration.check("_Z5saxpyPKfPff", 1, memory::<Complex<f64>>()).unwrap_err().to_string();
        for words in ["argument 1", "_Z5saxpyPKfPff", "'float*'", "Complex<f64>", "reinterpret::<f32>()"] {
            assert!(error.contains(words), "'{words}' is not in: {error}");
        }
    }

    #[test]
    fn a_name_tells_the_kinds_that_a_cubin_does_not() {
        use ParameterKind as P;
        let declaration = Declaration::of("_Z1fPfldi6__halfc3Own").expect("a name");
        let parameter = |kind, size| Parameter { kind, size, offset: 0 };
        let mut found: Vec<Parameter> =
            [8, 8, 8, 4, 2, 1, 8].map(|size| parameter(P::Unknown, size)).into_iter().collect();
        declaration.refine(&mut found);
        let kinds: Vec<P> = found.iter().map(|parameter| parameter.kind).collect();
        assert_eq!(kinds, [P::Address, P::Integer, P::Float, P::Integer, P::Unknown, P::Integer, P::Unknown]);
        // PTX has one notation for pointers and integers of 8 bytes.
        let mut found = vec![parameter(P::Integer, 8), parameter(P::Integer, 8)];
        declaration.refine(&mut found);
        assert_eq!([found[0].kind, found[1].kind], [P::Address, P::Integer]);
    }
}
