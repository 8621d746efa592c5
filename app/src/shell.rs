//! The HTML document around every page.

use http::{HeaderValue, header::CONTENT_SECURITY_POLICY};
use leptos::{nonce::use_nonce, prelude::*};
use leptos_axum::ResponseOptions;
use leptos_meta::MetaTags;

use crate::{App, Assets, Surface, browser, components::theme::THEME_KEY};

/// The document. Its scripts carry the request's nonce; the policy in the header
/// lets no other inline script run.
pub fn shell(options: LeptosOptions) -> impl IntoView {
    // Names of files come from `Assets`, which know their hashes.
    drop(options);
    let assets = use_context::<Assets>().unwrap_or_default();
    let surface = browser::surface();
    send_policy();
    let nonce = use_nonce();
    let first_paint = format!(
        "try{{var t=localStorage.getItem('{THEME_KEY}');if(t==='light'||t==='dark')\
         document.documentElement.setAttribute('data-theme',t)}}catch(e){{}}"
    );
    let start = format!(
        "import init,{{hydrate}} from {js};await init({{module_or_path:{wasm}}});hydrate();",
        js = quoted(&assets.js),
        wasm = quoted(&assets.wasm),
    );
    let reload = (is_developed() && surface == Surface::Full).then(|| {
        view! {
            <script nonce=nonce.clone()>
                "let b;new EventSource('/dev/reload').addEventListener('build',e=>{if(b&&b!==e.data)location.reload();b=e.data});"
            </script>
        }
    });
    view! {
        <!DOCTYPE html>
        <html
            lang="en"
            data-surface=match surface {
                Surface::Full => "full",
                Surface::Shared => "shared",
            }
        >
            <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1"/>
                <meta name="color-scheme" content="light dark"/>
                <meta name="theme-color" content="#f6f8f7" media="(prefers-color-scheme: light)"/>
                <meta name="theme-color" content="#0e1110" media="(prefers-color-scheme: dark)"/>
                <meta name="tokdyno-plotly" content=assets.plotly.clone()/>
                <script nonce=nonce.clone() inner_html=first_paint></script>
                <link rel="stylesheet" href=assets.css.clone()/>
                <link rel="icon" type="image/svg+xml" href="/favicon.svg"/>
                <link rel="modulepreload" href=assets.js.clone()/>
                <link
                    rel="preload"
                    href=assets.wasm.clone()
                    r#as="fetch"
                    r#type="application/wasm"
                    crossorigin="anonymous"
                />
                <script type="module" nonce=nonce inner_html=start></script>
                {reload}
                <MetaTags/>
            </head>
            <body>
                <App/>
            </body>
        </html>
    }
}

/// What this page may load: from here alone, and no inline script without the
/// nonce. plotly.js makes a style element without text (whose hash stands here)
/// and fills it through the object model, which a policy does not restrict.
fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'self' 'nonce-{nonce}' 'wasm-unsafe-eval'; \
         style-src 'self' {EMPTY_STYLE}; connect-src 'self'; img-src 'self' data: blob:; \
         font-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; \
         frame-ancestors 'none'"
    )
}

/// SHA-256 of no bytes at all.
const EMPTY_STYLE: &str = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='";

fn send_policy() {
    if let (Some(response), Some(nonce)) = (use_context::<ResponseOptions>(), use_nonce())
        && let Ok(value) = HeaderValue::from_str(&policy(&nonce))
    {
        response.insert_header(CONTENT_SECURITY_POLICY, value);
    }
}

/// A text inside a script element: quoted for the language, and harmless for HTML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text)
        .to_string()
        .replace('<', "\\u003c")
}

/// `make dev` sets this; the page then loads itself anew with every build.
fn is_developed() -> bool {
    std::env::var_os("TOKDYNO_DEV").is_some_and(|value| value == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_scripts_with_the_nonce_run() {
        let policy = policy("n0");
        assert!(policy.contains("script-src 'self' 'nonce-n0' 'wasm-unsafe-eval';"));
        assert!(!policy.contains("unsafe-inline") && !policy.contains("'unsafe-eval'"));
    }

    #[test]
    fn a_script_cannot_be_closed_by_a_name() {
        assert_eq!(quoted("</script>"), "\"\\u003c/script>\"");
    }
}
