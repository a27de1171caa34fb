//! [`kernel!`](crate::kernel): a typed function from a kernel's declaration.
//!
//! `bind` compares the declaration with the kernel. Arguments are slices of device memory, so one signature serves buffers and
//! parts of them.

/// Declares kernels as typed functions.
///
/// Each declaration creates a type of its name. `bind` checks the declaration against a kernel, which is a [`Kernel`]
/// of a launcher or a [`Function`]: number, sizes and kinds of the parameters, and for C++ names the pointees. `run`
/// then launches it with arguments of exactly these types.
///
/// | declared | argument |
/// |---|---|
/// | `&[T]` | any memory of `T`: `&DeviceBuffer<T>`, `DeviceSlice<T>`, `&DeviceSliceMut<T>` |
/// | `&mut [T]` | writable memory of `T`: `&mut DeviceBuffer<T>`, `DeviceSliceMut<T>`, `&mut DeviceSliceMut<T>` |
/// | any other | the value: a scalar, a complex number, [`ByValue`] of a struct, [`RawAddress`] |
///
/// [`Kernel`]: crate::launcher::Kernel
/// [`Function`]: crate::driver::Function
/// [`ByValue`]: crate::driver::ByValue
/// [`RawAddress`]: crate::driver::RawAddress
///
/// ```no_run
/// use selvedge::driver::{Device, LaunchConfig};
/// use selvedge::launcher::Launcher;
///
/// selvedge::kernel! {
///     /// y = a x + y for n elements.
///     pub unsafe fn saxpy(x: &[f32], y: &mut [f32], a: f32, n: u32);
/// }
///
/// # fn main() -> selvedge::Result<()> {
/// # let source = "";
/// let launcher = Launcher::new(&Device::new(0)?)?;
/// let saxpy = saxpy::bind(launcher.compile("saxpy", source)?)?;
/// let stream = launcher.stream();
/// let (x, mut y) = (stream.upload(&[1.0f32; 1000])?, stream.zeros::<f32>(1000)?);
/// // SAFETY: saxpy touches n = 1000 elements of each.
/// unsafe { saxpy.run(stream, LaunchConfig::for_elements(1000), &x, &mut y, 2.0, 1000)? };
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! kernel {
    ($($(#[$attribute:meta])* $visibility:vis unsafe fn $name:ident($($parameters:tt)*);)*) => {$(
        $crate::launcher::__kernel! {
            [$(#[$attribute])* $visibility $name] [] [] [] $($parameters)*
        }
    )*};
}

/// Processes one parameter after the other: its form in the function, its type in the tuple, its value there.
#[doc(hidden)]
#[macro_export]
macro_rules! __kernel {
    ([$($head:tt)*] [$($form:tt)*] [$($type:ty,)*] [$($value:expr,)*]
     $name:ident: &mut [$element:ty] $(, $($rest:tt)*)?) => {
        $crate::launcher::__kernel! {
            [$($head)*]
            [$($form)* $name: impl ::core::convert::Into<$crate::driver::DeviceSliceMut<'memory, $element>>,]
            [$($type,)* $crate::driver::DeviceSliceMut<'static, $element>,]
            [$($value,)* ::core::convert::Into::<$crate::driver::DeviceSliceMut<'_, $element>>::into($name),]
            $($($rest)*)?
        }
    };
    ([$($head:tt)*] [$($form:tt)*] [$($type:ty,)*] [$($value:expr,)*]
     $name:ident: &[$element:ty] $(, $($rest:tt)*)?) => {
        $crate::launcher::__kernel! {
            [$($head)*]
            [$($form)* $name: impl ::core::convert::Into<$crate::driver::DeviceSlice<'memory, $element>>,]
            [$($type,)* $crate::driver::DeviceSlice<'static, $element>,]
            [$($value,)* ::core::convert::Into::<$crate::driver::DeviceSlice<'_, $element>>::into($name),]
            $($($rest)*)?
        }
    };
    ([$($head:tt)*] [$($form:tt)*] [$($type:ty,)*] [$($value:expr,)*]
     $name:ident: $scalar:ty $(, $($rest:tt)*)?) => {
        $crate::launcher::__kernel! {
            [$($head)*]
            [$($form)* $name: $scalar,]
            [$($type,)* $scalar,]
            [$($value,)* $name,]
            $($($rest)*)?
        }
    };
    ([$(#[$attribute:meta])* $visibility:vis $name:ident] [$($form:tt)*] [$($type:ty,)*] [$($value:expr,)*]) => {
        $(#[$attribute])*
        #[allow(non_camel_case_types)]
        #[derive(::core::clone::Clone, ::core::fmt::Debug)]
        $visibility struct $name {
            kernel: $crate::launcher::Kernel,
        }

        #[allow(dead_code)]
        impl $name {
            /// Checks the declaration against a kernel.
            ///
            /// # Errors
            ///
            /// The number of arguments differs, or one does not fit its parameter.
            $visibility fn bind(kernel: impl ::core::convert::Into<$crate::launcher::Kernel>) -> $crate::Result<$name> {
                let kernel = ::core::convert::Into::<$crate::launcher::Kernel>::into(kernel);
                kernel.accepts::<($($type,)*)>()?;
                $crate::Result::Ok($name { kernel })
            }

            /// The kernel.
            $visibility fn kernel(&self) -> &$crate::launcher::Kernel {
                &self.kernel
            }

            /// Runs the kernel on a stream.
            ///
            /// # Errors
            ///
            /// The errors of a launch; nothing is then launched.
            ///
            /// # Safety
            ///
            /// The buffers are as long as the kernel needs, and it writes only to those declared as `&mut`.
            #[allow(clippy::too_many_arguments, clippy::extra_unused_lifetimes)]
            $visibility unsafe fn run<'memory>(
                &self,
                stream: &$crate::driver::Stream,
                config: $crate::driver::LaunchConfig,
                $($form)*
            ) -> $crate::Result<$crate::launcher::LaunchOutcome> {
                // SAFETY: the caller vouches for it.
                unsafe { self.kernel.run(stream, config, ($($value,)*)) }
            }
        }
    };
}

#[doc(hidden)]
pub use __kernel;

#[cfg(test)]
mod tests {
    /// A scope in which prelude names mean something else, and parameters have the names of the macro's own items.
    mod crowded {
        #![allow(dead_code, non_snake_case, clippy::missing_safety_doc)]

        trait Into {}
        trait Clone {}
        fn Ok(_: u32) {}

        kernel! {
            pub(super) unsafe fn blend(stream: &[f32], config: &mut [f32], kernel: u64, arguments: u32);
        }
    }

    #[test]
    fn a_declaration_needs_no_names_around_it() {
        let _ = |function: crate::driver::Function| crowded::blend::bind(function);
        assert!(std::any::type_name::<crowded::blend>().ends_with("crowded::blend"));
    }
}
