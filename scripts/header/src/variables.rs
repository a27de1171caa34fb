//! The inline functions of the header for variables: operands, and operations of one and two variables.

/// The text behind the declarations of neural networks.
pub const INLINE: &str = "\
/**
 * Returns an operand of its parts: a variable, or with NULL a tensor or a number.
 */
SV_INLINE sv_variable_operand sv_variable_operand_with(sv_variable variable, sv_operand other)
{
  sv_variable_operand operand;
  operand.variable = variable;
  operand.other = other;
  return operand;
}

/**
 * Returns a variable as an operand.
 */
SV_INLINE sv_variable_operand sv_variable_operand_of(sv_variable variable)
{
  /* NULL would stand for a tensor or a number. */
  return sv_variable_operand_with(variable ? variable : SV_NO_VARIABLE, sv_operand_integer(0));
}

/**
 * Computes an elementwise operation of one variable; see sv_variable_operation().
 */
SV_INLINE int32_t sv_variable_unary(uint32_t operation, sv_variable x, sv_variable *result)
{
  sv_variable_operand operand = sv_variable_operand_of(x);
  return sv_variable_operation(operation, &operand, 1, result);
}

/**
 * Computes an elementwise operation of two variables; see sv_variable_operation().
 */
SV_INLINE int32_t sv_variable_binary(uint32_t operation, sv_variable x, sv_variable y, sv_variable *result)
{
  sv_variable_operand operands[2];
  operands[0] = sv_variable_operand_of(x);
  operands[1] = sv_variable_operand_of(y);
  return sv_variable_operation(operation, operands, 2, result);
}

/**
 * Computes an elementwise operation of a variable and a tensor or a number, as sv_operand_of() and sv_operand_real() return them;
 * see sv_variable_operation().
 */
SV_INLINE int32_t sv_variable_binary_with(uint32_t operation, sv_variable x, sv_operand y, sv_variable *result)
{
  sv_variable_operand operands[2];
  operands[0] = sv_variable_operand_of(x);
  operands[1] = sv_variable_operand_with(NULL, y);
  return sv_variable_operation(operation, operands, 2, result);
}
";
