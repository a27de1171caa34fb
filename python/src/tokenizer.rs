//! `selvedge.Tokenizer`: the tokenizer of a published model.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use selvedge::nn::{ChatTemplate, SubwordTokenizer, Tokenizer};

use crate::arguments::InRange;
use crate::error::Result;

/// A two-way map between texts and the ids of a published model.
///
/// `Tokenizer.load(folder)` loads `tokenizer.json`, or `vocab.json` with `merges.txt`.
#[pyclass(name = "Tokenizer", module = "selvedge", frozen)]
pub struct PyTokenizer {
    tokenizer: SubwordTokenizer,
    /// The folder of the chat template, which not every model has.
    folder: PathBuf,
}

impl PyTokenizer {
    /// Returns the tokenizer of Rust.
    pub fn tokenizer(&self) -> &dyn Tokenizer {
        &self.tokenizer
    }
}

/// Returns the ids of numbers of Python.
fn plain(ids: Vec<InRange<u32>>) -> Vec<u32> {
    ids.into_iter().map(|id| id.0).collect()
}

#[pymethods]
impl PyTokenizer {
    /// Loads the tokenizer of a folder as Hugging Face publishes it.
    #[staticmethod]
    fn load(py: Python<'_>, folder: PathBuf) -> Result<PyTokenizer> {
        let tokenizer = py.detach(|| SubwordTokenizer::from_folder(&folder))?;
        Ok(PyTokenizer { tokenizer, folder })
    }

    /// The number of ids.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.tokenizer.vocab_size()
    }

    /// The id that ends a text, None if the tokenizer names none.
    #[getter]
    fn end_id(&self) -> Option<u32> {
        self.tokenizer.end_id()
    }

    /// The ids of a text, with the special tokens of the tokenizer's template around them unless `add_special_tokens` is False.
    #[pyo3(signature = (text, *, add_special_tokens=true), text_signature = "($self, text, *, add_special_tokens=True)")]
    fn encode(&self, py: Python<'_>, text: &str, add_special_tokens: bool) -> Result<Vec<u32>> {
        Ok(py.detach(|| match add_special_tokens {
            true => self.tokenizer.encode_prompt(text),
            false => self.tokenizer.encode(text),
        })?)
    }

    /// The text of ids. Bytes that are not UTF-8 become U+FFFD.
    #[pyo3(signature = (ids, *, skip_special_tokens=false), text_signature = "($self, ids, *, skip_special_tokens=False)")]
    fn decode(&self, py: Python<'_>, ids: Vec<InRange<u32>>, skip_special_tokens: bool) -> Result<String> {
        let ids = plain(ids);
        Ok(py.detach(|| match skip_special_tokens {
            true => self.tokenizer.decode_skipping_special(&ids),
            false => self.tokenizer.decode(&ids),
        })?)
    }

    /// The text of a conversation as the model was trained on it, by the folder's chat template. `messages` is a list of
    /// dictionaries with `role` and `content`. Further keywords, such as `tools`, are variables of the template.
    ///
    /// The text has its special tokens: `encode(text, add_special_tokens=False)` gives its ids.
    #[pyo3(
        signature = (messages, *, add_generation_prompt=false, **variables),
        text_signature = "($self, messages, *, add_generation_prompt=False, **variables)"
    )]
    fn apply_chat_template(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        add_generation_prompt: bool,
        variables: Option<&Bound<'_, PyDict>>,
    ) -> Result<String> {
        let all = match variables {
            Some(variables) => variables.copy()?,
            None => PyDict::new(py),
        };
        all.set_item("messages", messages)?;
        all.set_item("add_generation_prompt", add_generation_prompt)?;
        let json: String = py.import("json")?.call_method1("dumps", (all,))?.extract()?;
        Ok(py.detach(|| ChatTemplate::from_folder(&self.folder)?.render_json(&json))?)
    }

    fn __repr__(&self) -> String {
        format!("Tokenizer(vocab_size={})", self.tokenizer.vocab_size())
    }
}
