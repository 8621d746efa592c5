//! Reading a chosen file as text.

use leptos::web_sys::HtmlInputElement;
use tokdyno_domain::prompts::MAX_FILE_BYTES;

/// Name and text of the file chosen in an input; none where none is chosen.
///
/// # Errors
/// It is too large or cannot be read; a sentence with cause and remedy.
pub(in crate::pages) async fn read_chosen(
    input: HtmlInputElement,
) -> Result<Option<(String, String)>, String> {
    #[cfg(feature = "hydrate")]
    {
        let Some(file) = input.files().and_then(|files| files.get(0)) else {
            return Ok(None);
        };
        let name = file.name();
        if file.size() > MAX_FILE_BYTES as f64 {
            return Err(format!(
                "The file `{name}` is larger than {} MiB. Use a smaller one.",
                MAX_FILE_BYTES >> 20
            ));
        }
        wasm_bindgen_futures::JsFuture::from(file.text())
            .await
            .ok()
            .and_then(|text| text.as_string())
            .map(|text| Some((name.clone(), text)))
            .ok_or_else(|| {
                format!("The file `{name}` could not be read. Check that it still exists, and choose it again.")
            })
    }
    #[cfg(not(feature = "hydrate"))]
    {
        let _ = (input, MAX_FILE_BYTES);
        std::future::ready(Ok(None)).await
    }
}
