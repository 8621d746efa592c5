//! Drawing in the browser: plotly.js is loaded once, where a chart is, and draws
//! the figure that the server built, in the colours of the page.

use std::cell::RefCell;

use js_sys::{Function, JSON, Object, Promise, Reflect};
use leptos::{html::Div, prelude::*, task::spawn_local, web_sys};
use wasm_bindgen::{JsCast, JsValue, closure::Closure, prelude::wasm_bindgen};
use wasm_bindgen_futures::JsFuture;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(catch, js_namespace = Plotly, js_name = react)]
    fn plotly_react(
        element: &web_sys::HtmlElement,
        data: &JsValue,
        layout: &JsValue,
        config: &JsValue,
    ) -> Result<Promise, JsValue>;
    #[wasm_bindgen(catch, js_namespace = Plotly, js_name = purge)]
    fn plotly_purge(element: &web_sys::HtmlElement) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(catch, js_namespace = Plotly, js_name = toImage)]
    fn plotly_to_image(figure: &JsValue, options: &JsValue) -> Result<Promise, JsValue>;
}

thread_local! {
    static LOADING: RefCell<Option<Promise>> = const { RefCell::new(None) };
}

/// Changes whenever the page's colours do.
#[derive(Clone, Copy)]
pub struct Palette(RwSignal<u32>);

/// Width, height and scale of a PNG, in CSS pixels: sharp on a slide.
const PNG: (f64, f64, f64) = (1200.0, 675.0, 2.0);

/// Watches the theme for as long as the page lives, for all charts together.
pub fn provide_palette() {
    let version = RwSignal::new(0);
    provide_context(Palette(version));
    Effect::new(move |_| {
        let bump = Closure::<dyn Fn()>::new(move || version.update(|version| *version += 1));
        let function: &Function = bump.as_ref().unchecked_ref();
        if let Ok(Some(query)) = window().match_media("(prefers-color-scheme: dark)") {
            // Where it cannot be listened to, the next draw has the right colours.
            let _ = query.add_event_listener_with_callback("change", function);
        }
        if let (Ok(observer), Some(root)) = (
            web_sys::MutationObserver::new(function),
            document().document_element(),
        ) {
            let watched = web_sys::MutationObserverInit::new();
            watched.set_attributes(true);
            watched.set_attribute_filter(&js_sys::Array::of1(&"data-theme".into()));
            let _ = observer.observe_with_options(&root, &watched);
        }
        // One for the page's whole life.
        bump.forget();
    });
}

/// Keeps an element's plot equal to a figure: draws when the figure or the theme
/// changes, sets `drawn` after the first success, clears up at the end.
/// `revision` resets the zoom when it changes.
pub fn keep_drawn(
    element: NodeRef<Div>,
    figure: Signal<String>,
    revision: RwSignal<u32>,
    drawn: RwSignal<bool>,
) {
    let palette = use_context::<Palette>();
    Effect::new(move |_| {
        let Some(div) = element.get() else { return };
        let figure = figure.get();
        let revision = revision.get();
        if let Some(Palette(version)) = palette {
            version.track();
        }
        if figure.is_empty() {
            return;
        }
        let div: web_sys::HtmlElement = div.unchecked_into();
        spawn_local(async move {
            // Without plotly.js the picture from the server simply stays.
            if draw(&div, &figure, revision).await.is_ok() {
                let _ = drawn.try_set(true);
            }
        });
    });
    on_cleanup(move || {
        if let Some(Some(div)) = element.try_get_untracked() {
            let div: web_sys::HtmlElement = div.unchecked_into();
            // Nothing was drawn if plotly.js never came.
            let _ = plotly_purge(&div);
        }
    });
}

/// The figure as a PNG, as a `data:` address, on the page's ground and under its title.
///
/// # Errors
/// plotly.js could not be loaded or could not draw.
pub async fn png(figure: &str, title: &str) -> Result<String, JsValue> {
    load().await?;
    let figure = coloured(figure)?;
    let layout = Reflect::get(&figure, &"layout".into())?;
    let surface = JsValue::from_str(&colour("--surface"));
    Reflect::set(&layout, &"paper_bgcolor".into(), &surface)?;
    Reflect::set(&layout, &"plot_bgcolor".into(), &surface)?;
    // In the page the title stands above the chart; plotly reads some mark-up.
    let text = title.replace('&', "&amp;").replace('<', "&lt;");
    let heading =
        serde_json::json!({ "text": text, "x": 0.02, "xanchor": "left", "font": { "size": 20 } });
    Reflect::set(
        &layout,
        &"title".into(),
        &JSON::parse(&heading.to_string())?,
    )?;
    let margin = serde_json::json!({ "t": 80, "r": 40, "l": 80, "b": 60 });
    Reflect::set(
        &layout,
        &"margin".into(),
        &JSON::parse(&margin.to_string())?,
    )?;
    let (width, height, scale) = PNG;
    let options = Object::new();
    for (key, value) in [
        ("format", JsValue::from_str("png")),
        ("width", width.into()),
        ("height", height.into()),
        ("scale", scale.into()),
    ] {
        Reflect::set(&options, &key.into(), &value)?;
    }
    let address = JsFuture::from(plotly_to_image(&figure, &options)?).await?;
    address.as_string().ok_or(JsValue::NULL)
}

async fn draw(element: &web_sys::HtmlElement, figure: &str, revision: u32) -> Result<(), JsValue> {
    load().await?;
    if !element.is_connected() {
        return Err(JsValue::NULL);
    }
    let figure = coloured(figure)?;
    let part = |name: &str| Reflect::get(&figure, &name.into());
    let (data, layout, config) = (part("data")?, part("layout")?, part("config")?);
    let config = if config.is_object() {
        config
    } else {
        Object::new().into()
    };
    // The page has its own buttons, and the box its own size.
    Reflect::set(&config, &"displayModeBar".into(), &JsValue::FALSE)?;
    Reflect::set(&config, &"responsive".into(), &JsValue::TRUE)?;
    Reflect::set(
        &layout,
        &"uirevision".into(),
        &JsValue::from(revision.saturating_add(1)),
    )?;
    let own: &Object = layout.unchecked_ref();
    Reflect::delete_property(own, &"width".into())?;
    Reflect::delete_property(own, &"height".into())?;
    Reflect::set(&layout, &"autosize".into(), &JsValue::TRUE)?;
    JsFuture::from(plotly_react(element, &data, &layout, &config)?).await?;
    Ok(())
}

/// Loads plotly.js unless that was done; a failure may be tried again.
async fn load() -> Result<(), JsValue> {
    let promise = LOADING.with_borrow_mut(|loading| {
        loading
            .get_or_insert_with(|| {
                Promise::new(&mut |resolve, reject| {
                    if append_script(&resolve, &reject).is_none() {
                        // A promise's own function cannot fail.
                        let _ = reject.call0(&JsValue::NULL);
                    }
                })
            })
            .clone()
    });
    let outcome = JsFuture::from(promise).await;
    if outcome.is_err() {
        LOADING.with_borrow_mut(|loading| *loading = None);
    }
    outcome.map(drop)
}

fn append_script(resolve: &Function, reject: &Function) -> Option<()> {
    let document = document();
    let address = document
        .query_selector("meta[name=tokdyno-plotly]")
        .ok()??
        .get_attribute("content")
        .filter(|address| !address.is_empty())?;
    let script: web_sys::HtmlScriptElement =
        document.create_element("script").ok()?.dyn_into().ok()?;
    script.set_src(&address);
    script.set_onload(Some(resolve));
    script.set_onerror(Some(reject));
    document.head()?.append_child(&script).ok()?;
    Some(())
}

/// The figure with the page's colours in place of their names.
fn coloured(figure: &str) -> Result<JsValue, JsValue> {
    let mut text = figure.to_owned();
    for place in 1..=8 {
        text = text.replace(
            &format!("\"@series{place}\""),
            &quoted(&colour(&format!("--series-{place}"))),
        );
    }
    for name in ["ink", "muted", "grid", "surface"] {
        text = text.replace(
            &format!("\"@{name}\""),
            &quoted(&colour(&format!("--{name}"))),
        );
    }
    JSON::parse(&text.replace("\"@transparent\"", "\"rgba(0,0,0,0)\""))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A colour of the style sheet as it is now.
fn colour(property: &str) -> String {
    document()
        .document_element()
        .and_then(|root| window().get_computed_style(&root).ok().flatten())
        .and_then(|style| style.get_property_value(property).ok())
        .map(|value| value.trim().to_owned())
        .unwrap_or_default()
}
