//! Raw bindings, the symbol table and the loader.
