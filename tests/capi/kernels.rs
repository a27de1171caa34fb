//! Kernels of a C program: fused expressions, products, custom operations, DLPack and streams.

use std::ffi::c_void;

use selvedge::capi::custom::{self, sv_array, sv_array_type, sv_custom_operation};
use selvedge::capi::library::sv_release;
use selvedge::capi::matmul::{self, sv_matmul_options};
use selvedge::capi::status::*;
use selvedge::capi::tensor::operations::*;
use selvedge::capi::tensor::{SV_DTYPE_F32, SV_DTYPE_I64, elementwise, views};
use selvedge::capi::{dlpack, fused, stream};

use super::{CPU, check, elements, fails, floats, number, ok, real, take, tensor};

#[test]
fn fused_functions_are_built_from_expressions() {
    unsafe {
        let [x, y] = [0, 1].map(|index| ok(|r| fused::sv_expression_input(index, r)));
        let one = ok(|r| fused::sv_expression_number(&real(1.0), r));
        let apply = |code, operands: &[u64]| {
            ok(|r| fused::sv_expression_operation(code, operands.as_ptr(), operands.len(), r))
        };
        let product = apply(SV_OP_MUL, &[x, y]);
        let sum = apply(SV_OP_ADD, &[one, product]);
        let whole = ok(|r| fused::sv_expression_cast(sum, SV_DTYPE_I64, r));
        let position = ok(|r| fused::sv_expression_index(0, r));
        let outputs = [sum, whole, apply(SV_OP_ADD, &[position, whole])];
        let mut function = 0;
        check(fused::sv_fused_create(outputs.as_ptr(), 3, &mut function));
        for expression in [x, y, one, product, sum, whole, position] {
            check(sv_release(expression));
        }
        let (mut operands, mut results) = (0, 0);
        check(fused::sv_fused_counts(function, &mut operands, &mut results));
        assert_eq!((operands, results), (2, 3));
        let a = floats(&[1.5, 2.0], &[2]);
        for (second, wanted) in [(number(real(3.0)), [5.5, 7.0]), (tensor(a), [3.25, 5.0])] {
            let given = [tensor(a), second];
            let mut found = [0; 3];
            check(fused::sv_fused_run(function, given.as_ptr(), 2, found.as_mut_ptr(), 3));
            assert_eq!(take::<f32>(found[0]), wanted);
            let whole = wanted.map(|x| x as i64);
            assert_eq!(take::<i64>(found[1]), whole);
            assert_eq!(take::<i64>(found[2]), [whole[0], whole[1] + 1]);
        }
        let mut found = [0; 3];
        let short = [tensor(a)];
        let status = fused::sv_fused_run(function, short.as_ptr(), 1, found.as_mut_ptr(), 3);
        fails(status, SV_ERROR_LENGTH_MISMATCH, "2");
        let numbers = [number(real(1.0)); 2];
        let status = fused::sv_fused_run(function, numbers.as_ptr(), 2, found.as_mut_ptr(), 3);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "no tensors");
        let mut deep = ok(|r| fused::sv_expression_input(0, r));
        let mut status = SV_OK;
        for _ in 0..1100 {
            let mut next = 0;
            status = fused::sv_expression_operation(SV_OP_NEG, &deep, 1, &mut next);
            if status != SV_OK {
                break;
            }
            check(sv_release(deep));
            deep = next;
        }
        fails(status, SV_ERROR_INVALID_ARGUMENT, "split the function");
    }
}

#[test]
fn products_have_epilogues() {
    unsafe {
        let a = floats(&[1.0, 2.0, 3.0, 4.0], &[2, 2]);
        let bias = floats(&[-8.0, 1.0], &[2]);
        assert_eq!(
            take::<f32>(ok(|r| matmul::sv_matmul(a, a, std::ptr::null(), r))),
            [7.0, 10.0, 15.0, 22.0]
        );
        let mut options = sv_matmul_options {
            size: size_of::<sv_matmul_options>(),
            bias,
            residual: 0,
            activation: matmul::SV_ACTIVATION_RELU,
            result_dtype: 0,
            conjugate_left: 0,
            conjugate_right: 0,
            has_alpha: 1,
            reserved: 0,
            alpha: real(1.0),
        };
        assert_eq!(take::<f32>(ok(|r| matmul::sv_matmul(a, a, &options, r))), [0.0, 11.0, 7.0, 23.0]);
        let (mut result, mut aux) = (0, 0);
        check(matmul::sv_matmul_with_aux(a, a, &options, &mut result, &mut aux));
        assert_eq!(take::<f32>(aux), [-1.0, 11.0, 7.0, 23.0]);
        assert_eq!(take::<f32>(result), [0.0, 11.0, 7.0, 23.0]);
        options.activation = matmul::SV_ACTIVATION_SILU;
        let found = take::<f32>(ok(|r| matmul::sv_matmul(a, a, &options, r)));
        let wanted = [-0.268_941_43, 10.999_816, 6.993_623, 23.0];
        assert!(found.iter().zip(wanted).all(|(x, y)| (x - y).abs() < 1e-5), "{found:?}");
        let c = floats(&[1.0; 4], &[2, 2]);
        check(matmul::sv_matmul_add_to(c, &real(10.0), a, a, std::ptr::null()));
        assert_eq!(take::<f32>(c), [17.0, 20.0, 25.0, 32.0]);
        options.size = 8;
        fails(
            matmul::sv_matmul(a, a, &options, &mut result),
            SV_ERROR_INVALID_ARGUMENT,
            "options->size: found 8",
        );
        #[repr(C)]
        struct Newer(sv_matmul_options, u64);
        options.size = size_of::<Newer>();
        let newer = Newer(options, 0);
        let known = take::<f32>(ok(|r| matmul::sv_matmul(a, a, (&raw const newer).cast(), r)));
        assert_eq!(known, found);
        let newer = Newer(options, 1);
        let status = matmul::sv_matmul(a, a, (&raw const newer).cast(), &mut result);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "does not know");
    }
}

/// Writes each input's element times the user's number.
unsafe extern "C" fn scale(
    user: *mut c_void,
    inputs: *const sv_array,
    inputs_count: usize,
    outputs: *const sv_array,
    outputs_count: usize,
) -> i32 {
    assert_eq!((inputs_count, outputs_count), (1, 1));
    unsafe {
        let (input, output) = (&*inputs, &*outputs);
        let factor = *user.cast::<f32>();
        if factor == 0.0 {
            return 42;
        }
        let count = (output.bytes / 4) as usize;
        assert_eq!((input.bytes, output.dtype, output.rank, *output.shape), (8, SV_DTYPE_F32, 1, 2));
        for at in 0..count {
            *output.data.cast::<f32>().add(at) = factor * *input.data.cast::<f32>().add(at);
        }
    }
    SV_OK
}

#[test]
fn custom_operations_run_callbacks() {
    unsafe {
        let x = floats(&[1.0, 2.0, 3.0, 4.0], &[2, 2]);
        let column = ok(|r| views::sv_tensor_select(x, 1, 1, r));
        let mut factor = 3.0f32;
        let user = &raw mut factor;
        let operation = sv_custom_operation {
            size: size_of::<sv_custom_operation>(),
            host: Some(scale),
            cuda: None,
            user: user.cast(),
        };
        let shape = [2i64];
        let output = sv_array_type { dtype: SV_DTYPE_F32, rank: 1, shape: shape.as_ptr() };
        let mut result = 0;
        check(custom::sv_custom_run(&operation, CPU, &column, 1, &output, 1, &mut result));
        assert_eq!(take::<f32>(result), [6.0, 12.0]);
        *user = 0.0;
        let status = custom::sv_custom_run(&operation, CPU, &column, 1, &output, 1, &mut result);
        fails(status, SV_ERROR_INVALID_ARGUMENT, "returned 42");
        let none = sv_custom_operation { host: None, ..operation };
        let status = custom::sv_custom_run(&none, CPU, &column, 1, &output, 1, &mut result);
        fails(status, SV_ERROR_UNSUPPORTED, "no callback for the CPU");
    }
}

#[test]
fn tensors_go_through_dlpack_and_back() {
    unsafe {
        let x = floats(&[1.0, 2.0], &[2]);
        type Export = unsafe extern "C" fn(u64, u32, i64, *mut *mut c_void) -> i32;
        type Import = unsafe extern "C" fn(*mut c_void, *mut u64) -> i32;
        let pairs: [(Export, Import); 2] = [
            (dlpack::sv_tensor_to_dlpack, dlpack::sv_tensor_from_dlpack),
            (dlpack::sv_tensor_to_dlpack_legacy, dlpack::sv_tensor_from_dlpack_legacy),
        ];
        for (export, import) in pairs {
            for flags in [0, dlpack::SV_DLPACK_COPY, dlpack::SV_DLPACK_WRITABLE] {
                let mut managed = std::ptr::null_mut();
                check(export(x, flags, dlpack::SV_DLPACK_NO_STREAM, &mut managed));
                assert_eq!(take::<f32>(ok(|r| import(managed, r))), [1.0, 2.0]);
            }
            let mut managed = std::ptr::null_mut();
            fails(export(x, 9, -1, &mut managed), SV_ERROR_INVALID_ARGUMENT, "flags: found 9");
            assert!(managed.is_null());
            let mut result = 0;
            fails(import(managed, &mut result), SV_ERROR_INVALID_ARGUMENT, "managed: found NULL");
        }
        let mut managed = std::ptr::null_mut();
        check(dlpack::sv_tensor_to_dlpack(x, dlpack::SV_DLPACK_WRITABLE, -1, &mut managed));
        // DLManagedTensorVersioned: the version, two pointers, flags, then the tensor, which begins with its address.
        let elements_at = managed.cast::<u8>().add(32).cast::<*mut f32>().read();
        elements_at.write(9.0);
        assert_eq!(elements::<f32>(x), [9.0, 2.0], "the consumer's writes are shown");
        let imported = ok(|r| dlpack::sv_tensor_from_dlpack(managed, r));
        check(elementwise::sv_tensor_assign(imported, &number(real(7.0))));
        assert_eq!(elements::<f32>(x), [9.0, 2.0], "a tensor writes to a copy of imported elements");
        check(sv_release(x));
        assert_eq!(take::<f32>(imported), [7.0, 7.0]);
    }
}

#[test]
fn streams_are_of_cuda_devices() {
    unsafe {
        let mut stream = 0;
        fails(stream::sv_stream_current(CPU, &mut stream), SV_ERROR_INVALID_ARGUMENT, "CPU");
        fails(stream::sv_stream_push(0), SV_ERROR_INVALID_HANDLE, "stream: found 0");
        fails(stream::sv_stream_pop(), SV_ERROR_INVALID_ARGUMENT, "no stream");
    }
}
