//! Checks of pointers from C, before they are used.

use std::ffi::{CStr, c_char};
use std::mem::{align_of, size_of};

use super::error::{Failure, Result};
use super::status::SV_ERROR_LENGTH_MISMATCH;
use crate::Error;

/// The most bytes of a text from C.
const MAX_TEXT: usize = 1 << 30;

#[inline]
fn check<T>(pointer: *const T, name: &str) -> Result<()> {
    if !pointer.is_null() && pointer.is_aligned() {
        return Ok(());
    }
    Err(unusable(pointer.addr(), align_of::<T>(), name))
}

#[cold]
fn unusable(address: usize, alignment: usize, name: &str) -> Failure {
    if address == 0 {
        return Failure::argument(name, "NULL", "a pointer");
    }
    Failure::argument(name, format!("{address:#x}"), &format!("an address aligned to {alignment} bytes"))
}

/// The destination of a function's result: checked before its work, written after.
pub(super) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Writes the result.
    pub(super) fn write(self, value: T) {
        // SAFETY: `out` checked the pointer, and its caller vouched for the memory.
        unsafe { self.0.write(value) }
    }
}

/// Checks the pointer of a result.
///
/// # Safety
///
/// The pointer is NULL or points to memory for a `T` that this call alone may write.
#[inline]
pub(super) unsafe fn out<T>(pointer: *mut T, name: &str) -> Result<Out<T>> {
    check(pointer, name)?;
    Ok(Out(pointer))
}

/// Checks a struct that begins with its size, set by the caller. A larger one, of a later version, must be zero past the fields
/// of this one.
///
/// # Safety
///
/// The pointer is NULL or points to as many bytes as the struct says.
unsafe fn check_structure<T>(pointer: *const T, name: &str) -> Result<usize> {
    /// No version has a larger struct.
    const MAX_SIZE: usize = 1 << 16;
    check(pointer, name)?;
    // SAFETY: the pointer is not NULL and aligned, and each such struct begins with its size.
    let size = unsafe { pointer.cast::<usize>().read() };
    if size < size_of::<T>() || size > MAX_SIZE {
        let name = format!("{name}->size");
        return Err(Failure::argument(&name, size, &format!("{} bytes", size_of::<T>())));
    }
    // SAFETY: the caller vouches for that many bytes.
    let rest = unsafe {
        std::slice::from_raw_parts(pointer.cast::<u8>().add(size_of::<T>()), size - size_of::<T>())
    };
    if rest.iter().any(|byte| *byte != 0) {
        let found = format!("a struct of {size} bytes with fields that this library does not know");
        return Err(Failure::argument(name, found, "zeros in the fields of a later version"));
    }
    Ok(size)
}

/// Returns a setting, or its default where it is 0.
pub(super) fn or_default<T: Default + PartialEq>(setting: T, default: T) -> T {
    if setting == T::default() { default } else { setting }
}

/// Returns a struct that begins with its size.
///
/// # Safety
///
/// The pointer is NULL or points to as many bytes as the struct says, which nobody writes during `'a`.
pub(super) unsafe fn structure<'a, T>(pointer: *const T, name: &str) -> Result<&'a T> {
    check_structure(pointer, name)?;
    // SAFETY: the pointer is not NULL and aligned, and the struct has all fields.
    Ok(unsafe { &*pointer })
}

/// The destination of a struct that begins with its size.
pub(super) struct OutStructure<T> {
    pointer: *mut T,
    size: usize,
}

impl<T> OutStructure<T> {
    /// Writes the struct, with the size that the caller set.
    pub(super) fn write(self, value: T) {
        // SAFETY: `out_structure` checked the pointer, and its caller vouched for the memory.
        unsafe {
            self.pointer.write(value);
            self.pointer.cast::<usize>().write(self.size);
        }
    }
}

/// Checks the pointer of a result that is a struct with its size.
///
/// # Safety
///
/// The pointer is NULL or points to as many bytes as the struct says, which this call alone may write.
pub(super) unsafe fn out_structure<T>(pointer: *mut T, name: &str) -> Result<OutStructure<T>> {
    let size = check_structure(pointer.cast_const(), name)?;
    Ok(OutStructure { pointer, size })
}

/// Returns the elements at a pointer. NULL is no element where the count is 0.
///
/// # Safety
///
/// The pointer is NULL or points to `count` elements that nobody writes during `'a`.
pub(super) unsafe fn slice<'a, T>(pointer: *const T, count: usize, name: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    check(pointer, name)?;
    check_size::<T>(count, name)?;
    // SAFETY: the pointer is aligned and not NULL, the size fits, and the caller vouches for the memory.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Returns the elements at a pointer for writing. NULL is no element where the count is 0.
///
/// # Safety
///
/// The pointer is NULL or points to `count` initialised elements that nobody else uses during `'a`.
pub(super) unsafe fn slice_mut<'a, T>(pointer: *mut T, count: usize, name: &str) -> Result<&'a mut [T]> {
    if count == 0 {
        return Ok(&mut []);
    }
    check(pointer, name)?;
    check_size::<T>(count, name)?;
    // SAFETY: the pointer is aligned and not NULL, the size fits, and the caller vouches for the memory.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, count) })
}

fn check_size<T>(count: usize, name: &str) -> Result<()> {
    match count.checked_mul(size_of::<T>()) {
        Some(bytes) if bytes <= isize::MAX as usize => Ok(()),
        _ => Err(Failure::argument(name, format!("{count} elements"), "at most 2^63 - 1 bytes")),
    }
}

/// Returns a text that ends with a zero byte.
///
/// # Safety
///
/// The pointer is NULL or points to a zero-terminated text that nobody writes during `'a`.
pub(super) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str> {
    check(pointer, name)?;
    // SAFETY: the caller vouches for a zero-terminated text.
    let text = unsafe { CStr::from_ptr(pointer) };
    if text.count_bytes() > MAX_TEXT {
        return Err(Failure::argument(
            name,
            format!("{} bytes", text.count_bytes()),
            "at most 1 GiB of text",
        ));
    }
    text.to_str().map_err(|error| {
        let found = format!("a byte that is not UTF-8 at {}", error.valid_up_to());
        Failure::argument(name, found, "text in UTF-8")
    })
}

/// Collects `count` elements, whose number is the caller's: memory that the host lacks is an error.
pub(super) fn collected<T>(
    count: usize,
    name: &str,
    elements: impl IntoIterator<Item = T>,
) -> Result<Vec<T>> {
    let mut all = Vec::new();
    all.try_reserve_exact(count).map_err(|_| {
        let asked = format!("{count} elements of {name}");
        Error::host_memory(count.saturating_mul(size_of::<T>()), asked)
    })?;
    all.extend(elements.into_iter().take(count));
    Ok(all)
}

/// Copies elements of the caller.
pub(super) fn copied<T: Copy>(elements: &[T], name: &str) -> Result<Vec<T>> {
    collected(elements.len(), name, elements.iter().copied())
}

/// Copies as many elements as fit to the caller's array.
///
/// # Safety
///
/// As [`slice_mut`].
pub(super) unsafe fn write_some<T: Copy>(
    elements: &[T],
    pointer: *mut T,
    capacity: usize,
    name: &str,
) -> Result<()> {
    let memory = slice_mut(pointer, capacity, name)?;
    let fits = elements.len().min(capacity);
    memory[..fits].copy_from_slice(&elements[..fits]);
    Ok(())
}

/// Returns an error unless a field that is kept for later versions is 0.
pub(super) fn check_reserved(name: &str, found: impl Into<i64>) -> Result<()> {
    match found.into() {
        0 => Ok(()),
        found => Err(Failure::argument(name, found, "0")),
    }
}

/// Returns an error if a field is set whose flag or kind says that it is not read: the caller means it to have an effect.
pub(super) fn check_unused(name: &str, found: f64, reads: &str) -> Result<()> {
    if found == 0.0 { Ok(()) } else { Err(Failure::argument(name, found, &format!("0, or {reads}"))) }
}

/// Returns an error unless an array of the caller has this many elements.
pub(super) fn check_count(name: &str, found: usize, wanted: usize) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    let message = format!("{name}: found {found}; wanted {wanted}");
    Err(Failure { status: SV_ERROR_LENGTH_MISMATCH, message })
}

/// Copies a text with its zero byte into memory of the caller, as `snprintf` does: the text is cut to fit, and `length` gets
/// the bytes of the whole text without the zero. A capacity of 0 asks for the length alone.
///
/// # Safety
///
/// `pointer` is NULL or points to `capacity` bytes, and `length` is NULL or points to a number, that this call alone uses.
pub(super) unsafe fn write_text(
    text: &str,
    pointer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Result<()> {
    let buffer = slice_mut(pointer.cast::<u8>(), capacity, "text")?;
    if let Some((last, _)) = buffer.split_last_mut() {
        *last = 0;
        let mut fits = text.len().min(capacity - 1);
        while !text.is_char_boundary(fits) {
            fits -= 1;
        }
        buffer[..fits].copy_from_slice(&text.as_bytes()[..fits]);
        buffer[fits] = 0;
    }
    if !length.is_null() {
        // SAFETY: the pointer is checked below before it is written, and the caller vouches for the memory.
        unsafe { out(length, "length")? }.write(text.len());
    }
    Ok(())
}
