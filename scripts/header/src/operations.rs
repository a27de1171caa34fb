//! The function of each elementwise operation, inline in the header: a call of the function that takes the operation's code.

use std::path::Path;

use crate::Message;

/// The text before the codes.
pub const HEAD: &str = "\
/* sv_exp(x, &result), sv_add(x, y, &result), sv_choose(mask, a, b, &result): a function for each code SV_OP_... below, by its
 * name in lower case, and sv_add_in_place(x, y) and so on. Macros at the end of this section define them. */
";

/// The text before the functions.
const INLINE: &str = "\
/* A function of the header itself. */
#if defined(__cplusplus)
#define SV_INLINE inline
#elif defined(__GNUC__)
#define SV_INLINE static __inline__ __attribute__((unused))
#elif defined(_MSC_VER)
#define SV_INLINE static __inline
#else
#define SV_INLINE static
#endif

/**
 * Returns an operand of its parts: a tensor, or with NULL a number of a kind.
 */
SV_INLINE sv_operand sv_operand_with(sv_tensor tensor, int32_t kind, int64_t integer, double real)
{
  sv_operand operand;
  operand.tensor = tensor;
  operand.number.kind = kind;
  operand.number.reserved = 0;
  operand.number.integer = integer;
  operand.number.real = real;
  operand.number.imaginary = 0;
  return operand;
}

/**
 * Returns a tensor as an operand.
 */
SV_INLINE sv_operand sv_operand_of(sv_tensor tensor)
{
  /* NULL would stand for a number. */
  return sv_operand_with(tensor ? tensor : SV_NO_TENSOR, SV_NUMBER_BOOL, 0, 0);
}

/**
 * Returns a real number as an operand.
 */
SV_INLINE sv_operand sv_operand_real(double number)
{
  return sv_operand_with(NULL, SV_NUMBER_REAL, 0, number);
}

/**
 * Returns an integer as an operand.
 */
SV_INLINE sv_operand sv_operand_integer(int64_t number)
{
  return sv_operand_with(NULL, SV_NUMBER_INTEGER, number, 0);
}
";

/// The text behind the lists: two functions for each operation.
const FUNCTIONS: &str = "\
/*
 * sv_exp(x, &result), sv_add(x, y, &result) and so on, a function for each row of the lists: sv_unary(), sv_binary() or
 * sv_ternary() of its code. sv_add_in_place(x, y) and so on are sv_operation_in_place() of it. The comments of the codes say what
 * each operation computes. The functions are not among the symbols of the library.
 */
#define SV_DEFINE_UNARY(name, code) \\
  SV_INLINE int32_t sv_##name(sv_tensor x, sv_tensor *result) \\
  { \\
    return sv_unary(SV_OP_##code, x, result); \\
  } \\
  SV_INLINE int32_t sv_##name##_in_place(sv_tensor x) \\
  { \\
    return sv_operation_in_place(SV_OP_##code, x, NULL, 0); \\
  }
#define SV_DEFINE_BINARY(name, code) \\
  SV_INLINE int32_t sv_##name(sv_tensor x, sv_tensor y, sv_tensor *result) \\
  { \\
    return sv_binary(SV_OP_##code, x, y, result); \\
  } \\
  SV_INLINE int32_t sv_##name##_in_place(sv_tensor x, sv_tensor y) \\
  { \\
    sv_operand other = sv_operand_of(y); \\
    return sv_operation_in_place(SV_OP_##code, x, &other, 1); \\
  }
#define SV_DEFINE_TERNARY(name, code) \\
  SV_INLINE int32_t sv_##name(sv_tensor x, sv_tensor y, sv_tensor z, sv_tensor *result) \\
  { \\
    return sv_ternary(SV_OP_##code, x, y, z, result); \\
  } \\
  SV_INLINE int32_t sv_##name##_in_place(sv_tensor x, sv_tensor y, sv_tensor z) \\
  { \\
    sv_operand others[2]; \\
    others[0] = sv_operand_of(y); \\
    others[1] = sv_operand_of(z); \\
    return sv_operation_in_place(SV_OP_##code, x, others, 2); \\
  }

SV_UNARY_OPERATIONS(SV_DEFINE_UNARY)
SV_BINARY_OPERATIONS(SV_DEFINE_BINARY)
SV_TERNARY_OPERATIONS(SV_DEFINE_TERNARY)

#undef SV_DEFINE_UNARY
#undef SV_DEFINE_BINARY
#undef SV_DEFINE_TERNARY
";

/// The longest line of a list.
const WIDTH: usize = 120;

/// Returns the lists of operations and their functions, from the file of codes.
pub fn inline(codes: &Path) -> Result<String, Message> {
    let text = std::fs::read_to_string(codes).map_err(|error| format!("{}: {error}", codes.display()))?;
    let mut names: [Vec<&str>; 3] = Default::default();
    let mut operands = None;
    for line in text.lines() {
        if let Some(count) = line.strip_prefix("// operands: ") {
            operands = count.parse::<usize>().ok();
        } else if let Some((name, _)) =
            line.strip_prefix("pub const SV_OP_").and_then(|rest| rest.split_once(':'))
        {
            let count = operands.take().filter(|count| (1..=3).contains(count));
            let count =
                count.ok_or_else(|| format!("{}: no number of operands before {name}", codes.display()))?;
            names[count - 1].push(name);
        }
    }
    let mut written = format!("{INLINE}\n");
    let lists = [
        ("SV_UNARY_OPERATIONS", "one tensor"),
        ("SV_BINARY_OPERATIONS", "two tensors"),
        ("SV_TERNARY_OPERATIONS", "three tensors"),
    ];
    for ((list, of), names) in lists.iter().zip(&names) {
        written.push_str(&format!(
            "/**\n * X(name, code) for each operation of {of}: its name, and the end of its code.\n */\n"
        ));
        written.push_str(&format!("#define {list}(X)"));
        let mut width = WIDTH;
        for name in names {
            let row = format!(" X({}, {name})", name.to_lowercase());
            if width + row.len() + 2 > WIDTH {
                written.push_str(" \\\n ");
                width = 1;
            }
            width += row.len();
            written.push_str(&row);
        }
        written.push_str("\n\n");
    }
    written.push_str(FUNCTIONS);
    Ok(written)
}
